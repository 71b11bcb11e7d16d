"""What an index tracks, as the folders that a scan begins with or goes on with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.git.objects import Objects
from git_fabro.git.snapshot.entries import Entry, IndexFile
from git_fabro.git.snapshot.folders import CTIME, INODE, MTIME, SIZE, Folder, Known, Signature
from git_fabro.git.snapshot.model import UncoveredError

# An entry this much younger than the index could have been read before its last change.
_TICK_NS = 50_000_000
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Seed:
    """What an index knows of files that were not looked at yet, and when it was written."""

    entries: Mapping[bytes, Entry] = field(default_factory=dict)
    written_ns: int = 0
    is_first: bool = False

    def blob(self, path: bytes, found: Signature, mode: bytes) -> bytes | None:
        """The blob of a file that looks as the index says; None: it is to be read."""
        entry = self.entries.get(path)
        # Times without fractions are those of a git that does not record them.
        if entry is None or entry.ctime_ns % 1_000_000_000 == 0:
            return None
        young = max(entry.ctime_ns, entry.mtime_ns) >= self.written_ns - _TICK_NS
        same = (
            entry.ctime_ns == found[CTIME]
            and entry.mtime_ns == found[MTIME]
            and entry.inode == found[INODE] & _LOW
            and entry.size == found[SIZE] & _LOW
            and entry.mode == int(mode, 8)
        )
        return entry.oid if same and not young else None


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
            # A folder may have had the name.
            folder.forget(name)
            folder.know(name, Known(None, b"%o" % entry.mode, entry.oid))
            other_names = True
        elif known.oid != entry.oid or int(known.mode, 8) != entry.mode:
            differing[path] = known
    return differing, other_names
