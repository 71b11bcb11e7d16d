"""What an index tracks, as the folders that a scan begins with or goes on with."""

from __future__ import annotations

import os
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.git.objects import Objects
from git_fabro.git.snapshot.entries import IndexFile
from git_fabro.git.snapshot.folders import Folder, Known
from git_fabro.git.snapshot.model import UncoveredError


def seeded(index: IndexFile, top: Path, objects: Objects) -> Folder:
    """The folders that an index tracks files in; nothing of them was looked at yet.

    Raises:
        UncoveredError: git would read attributes from the index.
    """
    root = Folder(b"", None)
    folders = {b"": root}
    for path, entry in index.entries.items():
        parent, slash, name = path.rpartition(b"/")
        folder = folders.get(parent + slash)
        if folder is None:
            folder = folders[parent + slash] = _entered(root, parent)
        folder.files[name] = Known(None, b"%o" % entry.mode, entry.oid)
        if name == b".gitattributes" and not _is_there(top, path):
            raise UncoveredError("a tracked .gitattributes is not there")
    for path, tree in index.trees.items():
        known = root.at(path)
        if known is not None and objects.exists(Oid(tree.hex())):
            known.tree = tree
    return root


def _is_there(top: Path, path: bytes) -> bool:
    return os.path.lexists(os.path.join(os.fsencode(top), path))


def _entered(root: Folder, path: bytes) -> Folder:
    folder = root
    for name in path.split(b"/") if path else ():
        folder = folder.enter(name)
    return folder


def reconcile(root: Folder, index: IndexFile) -> tuple[dict[bytes, Known | None], bool]:
    """Another program wrote the index: what it tracks now counts, for ignored names too.

    Returns:
        The recorded files that the index does not hold as they were recorded, and whether it tracks
        other names.
    """
    differing: dict[bytes, Known | None] = {}
    other_names = False
    for folder in list(root.walk()):
        for name in [name for name in folder.files if folder.path + name not in index.entries]:
            # Untracked now: the next listing tells whether it is ignored.
            folder.forget(name)
            folder.stat = None
            other_names = True
    for path, entry in index.entries.items():
        parent, _, name = path.rpartition(b"/")
        folder = _entered(root, parent)
        known = folder.files.get(name)
        if known is None:
            folder.know(name, Known(None, b"%o" % entry.mode, entry.oid))
            other_names = True
        elif known.oid != entry.oid or int(known.mode, 8) != entry.mode:
            differing[path] = known
    return differing, other_names
