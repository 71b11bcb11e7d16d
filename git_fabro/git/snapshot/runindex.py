"""The index of a run's own work tree, brought up to a tree without asking git. Never the user's.

Kept as the bytes of each entry, so that a change costs one join and one write. What git adds to an
index for its own speed is left out; git puts it there again.

Source: gitformat-index(5), version 2.
"""

from __future__ import annotations

import bisect
import hashlib
import os
import random
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from git_fabro.errors import BusyError, GitError
from git_fabro.git.snapshot.folders import Known, signature_of
from git_fabro.git.snapshot.index import lock_of
from git_fabro.git.snapshot.reference import PATIENCE_S

_FIXED = struct.Struct(">10I20sH")
#: The one that is written here.
VERSION = 2
_HEADER = 12
_LONGEST = 0x0FFF
_LOW = 0xFFFFFFFF
_NS = 1_000_000_000

#: What a path of the index becomes; None: it is tracked no more.
Changes = Mapping[bytes, Known | None]


class RunIndex:
    """The entries of one index file, as bytes by path."""

    def __init__(self, file: Path, data: bytes, written_ns: int) -> None:
        """Take the entries of an index of version 2 that ``read_index`` has read well."""
        self._file = file
        self._rows: dict[bytes, bytes] = {}
        at = _HEADER
        for _ in range(int.from_bytes(data[8:_HEADER])):
            flags = int.from_bytes(data[at + 60 : at + 62])
            start, length = at + _FIXED.size, flags & _LONGEST
            if length == _LONGEST:
                length = data.index(b"\0", start) - start
            end = at + ((_FIXED.size + length + 8) & ~7)
            self._rows[data[start : start + length]] = data[at:end]
            at = end
        self._names = list(self._rows)
        #: The entries that git doubts, as they are not older than their index.
        self._young = self._not_before(written_ns // _NS, self._names)

    def change(self, changes: Changes, top: Path) -> None:
        """Make the entries what these files were recorded as, with their stat data if still so."""
        for path in self._young & self._rows.keys():
            self._rows[path] = _proved(self._rows[path], os.path.join(os.fsencode(top), path))
        self._young.update(changes)
        for path, known in changes.items():
            if known is not None:
                if path not in self._rows:
                    bisect.insort(self._names, path)
                self._rows[path] = _row(path, known, os.path.join(os.fsencode(top), path))
            elif self._rows.pop(path, None) is not None:
                del self._names[bisect.bisect_left(self._names, path)]

    def _not_before(self, second: int, names: Iterable[bytes]) -> set[bytes]:
        rows = self._rows
        return {name for name in names if int.from_bytes(rows.get(name, b"")[8:12]) >= second}

    def write(self) -> None:
        """Put the index in the place of the one that is there.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
            GitError: the disk refuses it.
        """
        head = struct.pack(">4sII", b"DIRC", VERSION, len(self._names))
        body = b"".join([head, *map(self._rows.__getitem__, self._names)])
        checksum = hashlib.sha1(body, usedforsecurity=False).digest()
        lock = lock_of(self._file)
        handle = _locked(lock)
        try:
            with open(handle, "wb") as file:
                file.write(body + checksum)
                file.flush()
                written_ns = os.fstat(handle).st_mtime_ns
            os.rename(lock, self._file)
        except BaseException as exc:
            lock.unlink(missing_ok=True)
            if not isinstance(exc, OSError):
                raise
            raise GitError(f"cannot write {self._file.name}: {exc.strerror}") from exc
        self._young = self._not_before(written_ns // _NS, self._young)


def _locked(lock: Path) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError as exc:
            if time.monotonic() > deadline:
                raise BusyError(f"another process holds {lock}") from exc
        except OSError as exc:
            raise GitError(f"cannot write {lock.name}: {exc.strerror}") from exc
        time.sleep(random.uniform(0.005, 0.02))


def _proved(row: bytes, file: bytes) -> bytes:
    """An entry without its stat data, if its file is not to the nanosecond as that says.

    Git may count only seconds. Then it sees a change in the second of the index by that alone,
    which an index that is written later takes away. traps: WT23
    """
    try:
        found = os.lstat(file)
    except OSError:
        return row
    fields = _FIXED.unpack_from(row)[:10]
    mode = fields[6]
    if fields == _stat_of(found, mode):
        return row
    return _FIXED.pack(*_unknown(mode), *_FIXED.unpack_from(row)[10:]) + row[_FIXED.size :]


def _row(path: bytes, known: Known, file: bytes) -> bytes:
    fields = _stat_fields(known, file)
    flags = min(len(path), _LONGEST)
    row = _FIXED.pack(*fields, known.oid, flags) + path
    return row + bytes(8 - len(row) % 8)


def _stat_fields(known: Known, file: bytes) -> tuple[int, ...]:
    """The ten numbers in front of an entry; zeros, which match no file, where it is in doubt."""
    mode = int(known.mode, 8)
    try:
        found = os.lstat(file)
    except OSError:
        return _unknown(mode)
    if known.stat is None or signature_of(found) != known.stat:
        return _unknown(mode)
    return _stat_of(found, mode)


def _unknown(mode: int) -> tuple[int, ...]:
    return (*[0] * 6, mode, 0, 0, 0)


def _stat_of(found: os.stat_result, mode: int) -> tuple[int, ...]:
    times = (*divmod(found.st_ctime_ns, _NS), *divmod(found.st_mtime_ns, _NS))
    rest = (found.st_dev, found.st_ino, mode, found.st_uid, found.st_gid, found.st_size)
    return tuple(number & _LOW for number in (*times, *rest))
