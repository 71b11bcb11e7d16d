"""Doors that die: each does what the real one does, and ends the process at a given write."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, TreeEntry
from git_fabro.doors import Doors, WorkTree
from git_fabro.git.batch import Batch
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.refs import Refs
from git_fabro.journal import Entry, JournalWriter
from git_fabro.rundir import RunDirectory


@dataclass(slots=True)
class Fuse:
    """Counts writes; after ``last`` of them the process is killed, as by the kernel.

    None never kills. The count stands in a file, so that another process can read it.
    """

    last: int | None
    file: Path
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def burn(self) -> None:
        with self.lock:
            self.count += 1
            if self.last is None:
                self.file.write_text(str(self.count))
            elif self.count >= self.last:
                os.kill(os.getpid(), signal.SIGKILL)


class DyingBatch(Batch):
    """What is stored together is one write of the run."""

    fuse: Fuse

    def store(self) -> None:
        super().store()
        self.fuse.burn()


class DyingObjects(Objects):
    """Objects, each written one a write of the run."""

    fuse: Fuse

    def write_blob(self, data: bytes) -> Oid:
        oid = super().write_blob(data)
        self.fuse.burn()
        return oid

    def write_tree(self, entries: Mapping[bytes, TreeEntry]) -> Oid:
        oid = super().write_tree(entries)
        self.fuse.burn()
        return oid

    def batch(self) -> Batch:
        made = DyingBatch(self._raw)
        made.fuse = self.fuse
        return made

    def write_new_blob(self, data: bytes) -> Oid:
        oid = super().write_new_blob(data)
        self.fuse.burn()
        return oid

    def write_new_tree(self, entries: Mapping[bytes, TreeEntry]) -> Oid:
        oid = super().write_new_tree(entries)
        self.fuse.burn()
        return oid

    def write_commit(self, commit: Commit) -> Oid:
        oid = super().write_commit(commit)
        self.fuse.burn()
        return oid


class DyingRefs(Refs):
    """Refs, each transaction one write of the run."""

    fuse: Fuse

    def move(self, moves: Sequence[Move], message: str, *, patience_s: float | None = None) -> None:
        super().move(moves, message, patience_s=patience_s)
        self.fuse.burn()


class DyingDoors(Doors):
    """The doors of a repository; the index of a snapshot and the files of a merge are writes."""

    def snapshot(self, work: WorkTree) -> tuple[Oid, list[tuple[str, str]]]:
        taken = super().snapshot(work)
        fuse_of(self).burn()
        return taken

    def settle(self, work: WorkTree, tree: Oid) -> None:
        super().settle(work, tree)
        fuse_of(self).burn()

    def set_files(self, work: WorkTree, tree: Oid) -> None:
        super().set_files(work, tree)
        fuse_of(self).burn()

    def annotate(self, texts: Mapping[str, str], by: Identity, when: int) -> None:
        super().annotate(texts, by, when)
        fuse_of(self).burn()


def fuse_of(doors: Doors) -> Fuse:
    assert isinstance(doors.refs, DyingRefs)
    return doors.refs.fuse


class DyingJournal(JournalWriter):
    """A journal, each batch and each cut one write of the run."""

    fuse: Fuse

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        super().append(entries, sync=sync)
        self.fuse.burn()

    def cut(self, size_bytes: int) -> None:
        super().cut(size_bytes)
        self.fuse.burn()


class DyingDirectory(RunDirectory):
    """A run directory, each file that is replaced one write of the run."""

    def open_journal(self) -> JournalWriter:
        opened = DyingJournal(self.journal)
        opened.fuse = FUSES[self.path]
        return opened

    def write(self, name: str, data: bytes) -> None:
        super().write(name, data)
        FUSES[self.path].burn()

    def write_trace(self, visit: str, files: Mapping[str, bytes]) -> None:
        super().write_trace(visit, files)
        FUSES[self.path].burn()


#: The fuse of a run directory: the value itself is frozen.
FUSES: dict[Path, Fuse] = {}


def dying_doors(path: Path, fuse: Fuse) -> DyingDoors:
    """The doors of a repository, on this fuse."""
    repository = open_repository(path)
    objects = open_objects(repository)
    objects.__class__ = DyingObjects
    assert isinstance(objects, DyingObjects)
    objects.fuse = fuse
    refs = DyingRefs(repository, objects)
    refs.fuse = fuse
    return DyingDoors(repository=repository, objects=objects, refs=refs)


def dying_directory(path: Path, fuse: Fuse) -> DyingDirectory:
    """A run directory on this fuse."""
    FUSES[path] = fuse
    return DyingDirectory(path)
