"""Work tree to tree: ``choose`` an engine, git's own way (``reference``), and its ``index``."""
