"""The stat cache: every recorded file of a work tree, with what it looked like when it was read.

It lives in memory while a run does; ``statcache`` keeps it between runs.
"""

from __future__ import annotations

import operator
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from git_fabro.git.snapshot.ignore import FolderRules

#: Modification and change time in nanoseconds, inode, size, mode, links.
Signature = tuple[int, ...]
signature_of: Callable[[os.stat_result], Signature] = operator.attrgetter(
    "st_mtime_ns", "st_ctime_ns", "st_ino", "st_size", "st_mode", "st_nlink"
)
MTIME, CTIME, INODE, SIZE, MODE, LINKS = range(6)

REGULAR, EXECUTABLE, SYMLINK, TREE = b"100644", b"100755", b"120000", b"40000"


class Known(NamedTuple):
    """A file as it was recorded."""

    stat: Signature | None  # None: it is read again, whatever it looks like
    mode: bytes  # as a tree has it: b"100644"
    oid: bytes  # twenty bytes; empty: untracked so far, and not read yet


def row(mode: bytes, name: bytes, oid: bytes) -> bytes:
    """An entry of a tree."""
    return b"%s %s\0%s" % (mode, name, oid)


def mode_of(st_mode: int) -> bytes | None:
    """The mode that a tree has for a file; None: not for a file of this kind."""
    if stat.S_ISLNK(st_mode):
        return SYMLINK
    if not stat.S_ISREG(st_mode):
        return None
    return EXECUTABLE if st_mode & stat.S_IXUSR else REGULAR


class Folder:
    """A folder of the work tree that is not ignored, or holds what is tracked all the same."""

    __slots__ = (
        "files",
        "folders",
        "gitignore",
        "guards",
        "name",
        "parent",
        "path",
        "rows",
        "rules",
        "stat",
        "tree",
    )

    def __init__(self, name: bytes, parent: Folder | None) -> None:
        self.name = name
        self.parent = parent
        #: From the top: ``b""`` or ``b"a/b/"``.
        self.path: bytes = parent.path + name + b"/" if parent is not None else b""
        #: None: its names are listed again.
        self.stat: Signature | None = None
        self.files: dict[bytes, Known] = {}
        self.folders: dict[bytes, Folder] = {}
        #: None: it is to be made anew. ``b""``: there is nothing to record.
        self.tree: bytes | None = None
        #: The entries of the tree in its order, by their sort key; None: to be made anew.
        self.rows: dict[bytes, bytes] | None = None
        #: The ``.gitignore`` and ``.gitattributes`` that lie here, recorded or not.
        self.guards: dict[bytes, Signature | None] = {}
        self.gitignore: bytes | None = None
        self.rules: FolderRules | None = None

    def touch(self) -> None:
        """Something below has changed: the trees from here up are made anew."""
        folder: Folder | None = self
        while folder is not None:
            folder.tree = None
            folder = folder.parent

    def forget(self, name: bytes) -> None:
        """What had this name is gone."""
        found = self.files.pop(name, None) or self.folders.pop(name, None)
        if found is not None:
            self.rows = None
            self.touch()

    def know(self, name: bytes, known: Known) -> bool:
        """A file is as it was recorded now; whether the tree has another entry for it then."""
        before = self.files.get(name)
        self.files[name] = known
        if before is not None and (known.mode, known.oid) == (before.mode, before.oid):
            return False
        if before is None or not before.oid:
            self.rows = None
        elif self.rows is not None:
            self.rows[name] = row(known.mode, name, known.oid)
        self.touch()
        return True

    def enter(self, name: bytes) -> Folder:
        """The folder of this name, made if it is not known yet."""
        below = self.folders.get(name)
        if below is None:
            below = self.folders[name] = Folder(name, self)
            self.rows = None
            self.touch()
        return below

    def entries(self, trees: Mapping[bytes, bytes]) -> bytes:
        """The tree of this folder; empty where there is nothing to record.

        Args:
            trees: Those of the folders in it, by name; ``b""``: nothing to record there.
        """
        below = {name + b"/": (name, tree) for name, tree in trees.items() if tree}
        size = len(self.files) + len(below)
        if self.rows is None or len(self.rows) != size or not below.keys() <= self.rows.keys():
            rows = {name: row(one.mode, name, one.oid) for name, one in self.files.items()}
            rows |= dict.fromkeys(below, b"")
            # A folder sorts as if its name ended in a slash. Source: tree.c, base_name_compare
            self.rows = dict(sorted(rows.items()))
        for key, (name, tree) in below.items():
            self.rows[key] = row(TREE, name, tree)
        return b"".join(self.rows.values())

    def at(self, path: bytes) -> Folder | None:
        """The known folder at a path that ends in a slash, None if there is none."""
        folder: Folder | None = self
        for name in path.split(b"/")[:-1]:
            if folder is None:
                return None
            folder = folder.folders.get(name)
        return folder

    def without_tree(self) -> Iterator[Folder]:
        """This folder and those below whose trees are to be made anew, as ``walk`` has them."""
        stack = [self] if self.tree is None else []
        while stack:
            folder = stack.pop()
            yield folder
            stack.extend(below for below in folder.folders.values() if below.tree is None)

    def walk(self) -> Iterator[Folder]:
        """This folder and all below, each before what is in it."""
        stack = [self]
        while stack:
            folder = stack.pop()
            yield folder
            stack.extend(folder.folders.values())
