"""Going back: ``rewind`` a run to a checkpoint, and take operations back (``undo``)."""
