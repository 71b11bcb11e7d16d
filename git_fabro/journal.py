"""The journal of a run directory: records that no meta commit holds yet, one wrapped a line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError, RecordError
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line: a record, the run tip that it stands on, and the tree of a finished node.

    ``merged`` are further parents of the commit to come, where a join took branches.
    ``more`` counts the lines of the same batch that follow; a torn batch is cut as a whole.
    """

    record: Record
    on: Oid | None
    tree: Oid | None = None
    merged: tuple[Oid, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Journal:
    """What a journal file holds: its whole entries, and how many bytes of it they are.

    ``torn_bytes`` is the length of a last line or batch that was never finished.
    """

    entries: tuple[Entry, ...]
    good_bytes: int = 0
    torn_bytes: int = 0


def read(path: Path) -> Journal:
    """The journal as a reader may see it; it is never cut or moved here.

    Raises:
        RecordError: a whole line does not parse.
        GitError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return Journal(())
    except OSError as exc:
        raise GitError(f"cannot read the journal: {path}: {exc.strerror}") from exc
    try:
        return parse(data, where=str(path.name))
    except RecordError as exc:
        raise RecordError(
            f"the journal is damaged: {path}: {exc.message}",
            hint=f"move it aside, as what it holds is not in Git: mv {path} {path}.damaged",
        ) from exc


def parse(data: bytes, *, where: str) -> Journal:
    """Entries up to the last whole batch."""
    entries: list[Entry] = []
    batch: list[Entry] = []
    good = position = 0
    while True:
        end = data.find(b"\n", position)
        if end < 0:
            break
        batch.append(_entry(data[position:end], where))
        position = end + 1
        if batch[-1].more == 0:
            entries += batch
            batch, good = [], position
    return Journal(tuple(entries), good, len(data) - good)


def _entry(line: bytes, where: str) -> Entry:
    value = codec.parse_json(line, where)
    if not isinstance(value, dict):
        raise RecordError(f"{where}: a line is no object")
    on, tree, more = value.get("on"), value.get("tree"), value.get("more", 0)
    return Entry(
        record=codec.record_from_json(value.get("record"), where),
        on=Oid(on) if isinstance(on, str) else None,
        tree=Oid(tree) if isinstance(tree, str) else None,
        merged=tuple(Oid(head) for head in value.get("merged", ())),
        more=more if isinstance(more, int) else 0,
    )


def line(entry: Entry) -> bytes:
    """An entry as its line."""
    value: dict[str, Json] = {
        "on": entry.on,
        "record": codec.record_to_json(entry.record),
        "tree": entry.tree,
    }
    if entry.merged:
        value["merged"] = list(entry.merged)
    if entry.more:
        value["more"] = entry.more
    return codec.document(value)


class JournalWriter:
    """Appends to the journal of a run; one writer, the holder of the lease."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = self._open()

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise GitError(f"cannot open the journal: {self.path}: {exc.strerror}") from exc

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        """Writes a batch at the end, all of it or nothing.

        Args:
            entries: In order; ``more`` is set here.
            sync: Whether the disk must have it before this returns.

        Raises:
            GitError: the file system refuses; what was written of the batch is cut off again.
        """
        last = len(entries) - 1
        data = b"".join(
            line(replace(entry, more=last - index)) for index, entry in enumerate(entries)
        )
        before = os.fstat(self._file).st_size
        try:
            if os.write(self._file, data) != len(data):
                raise OSError(28, os.strerror(28))
            if sync:
                os.fdatasync(self._file)
        except OSError as exc:
            os.ftruncate(self._file, before)
            raise GitError(f"cannot write the journal: {self.path}: {exc.strerror}") from exc

    def cut(self, size_bytes: int) -> None:
        """Drops what lies behind a length: an unfinished batch, or everything."""
        try:
            os.ftruncate(self._file, size_bytes)
        except OSError as exc:
            raise GitError(f"cannot cut the journal: {self.path}: {exc.strerror}") from exc

    def set_aside(self, name: str) -> None:
        """Renames the file, so that its history stays to be read, and begins an empty one."""
        try:
            self.path.rename(self.path.with_name(name))
        except OSError as exc:
            raise GitError(f"cannot set the journal aside: {self.path}: {exc.strerror}") from exc
        os.close(self._file)
        self._file = self._open()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
