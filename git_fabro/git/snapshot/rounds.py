"""When a snapshot looks at every file, and when only at what the change journal tells of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from git_fabro.git.snapshot.folders import LINKS, Folder
from git_fabro.git.snapshot.model import Notice
from git_fabro.git.snapshot.watch import Happened, Journal

#: Every so many snapshots all files are looked at, and the journal has to agree.
ROUND = 50
#: Below so many files a look at all of them is cheap.
FEW_FILES = 500
#: The code of the notice that the journal cannot be relied on.
MISSED = "journal_missed"


class Rounds:
    """The rounds of one engine.

    A journal begins with the second full scan of a work tree that is worth it. It ends for good
    when a full scan finds what it did not tell of.
    """

    def __init__(self, top: os.PathLike[str], *, few_files: int = FEW_FILES) -> None:
        self._top = os.fsencode(top)
        self._few_files = few_files
        self._journal: Journal | None = None
        self._may_watch = False
        self._is_trusted = True
        self._since_full = 0
        self._told: Happened | None = None
        self._linked: set[tuple[bytes, bytes]] = set()

    def begin(self, *, everything: bool) -> Happened | None:
        """What happened since the last snapshot; None: all is to be looked at."""
        self._told = None
        happened = self._journal.read() if self._journal is not None else None
        if happened is None:
            self._renew()
            return None
        for path, name in self._linked:
            happened.setdefault(path, set()).add(name)
        if everything:
            return None
        if self._since_full + 1 >= ROUND:
            self._told = happened
            return None
        return happened

    def _renew(self) -> None:
        self.close()
        if self._may_watch and self._is_trusted:
            self._journal = Journal.begin(self._top)

    @property
    def watch(self) -> Callable[[bytes], None]:
        """To be called with a folder before it is looked at."""
        return self._journal.watch if self._journal is not None else _ignore

    def end(
        self, happened: Happened | None, changes: Iterable[bytes], root: Folder
    ) -> list[Notice]:
        """The snapshot succeeded, and these paths had changed."""
        if happened is not None:
            self._since_full += 1
            return []
        self._since_full = 0
        missed = [path for path in changes if self._told is not None and not self._is_told(path)]
        if missed:
            self._is_trusted = False
            self.close()
            text = "the system did not tell of a change; from now on all files are looked at"
            return [Notice(MISSED, text, missed[0])]
        sizes = [len(folder.files) for folder in root.walk()]
        self._may_watch = sum(sizes) > self._few_files
        if self._journal is not None:
            self._linked |= _linked(root)
        return []

    def look_always(self, folder: Folder, name: bytes) -> None:
        """This file has other names: the journal tells only of what happens to this one."""
        self._linked.add((folder.path, name))

    def _is_told(self, path: bytes) -> bool:
        """Whether something happened to this path, or to a folder on the way to it."""
        assert self._told is not None
        while path:
            parent, slash, name = path.rpartition(b"/")
            if name in self._told.get(parent + slash, ()):
                return True
            path = parent
        return False

    def fail(self) -> None:
        """The scan did not end: what the journal told of is lost."""
        self.close()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    @property
    def is_watching(self) -> bool:
        return self._journal is not None

    def make_full(self) -> None:
        """The next snapshot looks at every file, and the journal has to agree."""
        self._since_full = ROUND


def _linked(root: Folder) -> set[tuple[bytes, bytes]]:
    """The files with more names than one."""
    return {
        (folder.path, name)
        for folder in root.walk()
        for name, known in folder.files.items()
        if known.stat is not None and known.stat[LINKS] > 1
    }


def _ignore(path: bytes) -> None:
    """No journal: nothing is watched."""
