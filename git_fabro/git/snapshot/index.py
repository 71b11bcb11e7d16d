"""The private index as bytes: what stands in it, and which stat data can no longer be trusted.

Git compares files with its index by size and times; on some builds times count by the second. A
program that keeps modification times can swap in another file of the same size within that second,
and git keeps the stale blob (traps: WT24). So entries that changed shortly before the last snapshot
are compared here as finely as the index records them, by nanoseconds and inode; where that does not
settle it, the stat data is dropped, and git reads the file again.

Source: gitformat-index(5), versions 2 and 3.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from git_fabro.errors import BusyError, GitError

#: How far before the last snapshot a ctime could be that of a later change: file systems stamp by
#: the tick.
_TICK_NS = 50_000_000

#: How long a lock has to stand as it is before it counts as left behind.
_LEFT_S = 0.1

_NS = 1_000_000_000
_STAT_LENGTH = 40
_INODE_AT, _MODE_AT = 20, 24
_GITLINK = 0o160000
_ASSUME_VALID, _EXTENDED, _NAME_MASK = 0x8000, 0x4000, 0x0FFF


@dataclass(frozen=True, slots=True)
class Young:
    """An entry that git's own comparison could be wrong about."""

    at: int  # where it begins
    name: bytes
    ctime_ns: int
    inode: int  # its lower 32 bits

    def may_be_stale(self, top: bytes, last_ns: int) -> bool:
        """Whether the file could be another one than the entry says, unseen by git.

        Args:
            top: The top of the work tree.
            last_ns: When the last snapshot began.
        """
        if self.ctime_ns % _NS == 0 or self.ctime_ns >= last_ns - _TICK_NS:
            return True
        try:
            found = os.lstat(os.path.join(top, self.name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return found.st_ctime_ns != self.ctime_ns or found.st_ino & 0xFFFFFFFF != self.inode


@dataclass(frozen=True, slots=True)
class Contents:
    """What a scan of an index file found."""

    newest_s: int  # the youngest ctime that an entry carries; 0: none carries one
    gitlinks: frozenset[bytes]
    young: tuple[Young, ...]  # the entries whose ctime is not before the limit
    is_split: bool  # most entries are in another file


def first_doubtful_s(last_ns: int) -> int:
    """From which second on a ctime in the index could be that of a change git cannot see.

    A change after the last snapshot has a ctime of that second or a later one (less a tick), so an
    entry of an earlier second differs from it even where only seconds are compared.
    """
    return (last_ns - _TICK_NS) // _NS


def is_readable(data: bytes) -> bool:
    """Whether the file is an index of a version that is parsed here."""
    return data[:4] == b"DIRC" and int.from_bytes(data[4:8]) in (2, 3)


def scan(data: bytes, object_format: str, *, since_s: int) -> Contents:
    """The entries of an index, those with a ctime of ``since_s`` or later by their place.

    Raises:
        GitError: the index is damaged.
    """
    oid_length = 20 if object_format == "sha1" else 32
    fixed = _STAT_LENGTH + oid_length + 2
    unpack = struct.Struct(f">I{_MODE_AT - 4}xI{fixed - 2 - _MODE_AT - 4}xH").unpack_from
    newest, at = 0, 12
    gitlinks, young = [], []
    try:
        for _ in range(int.from_bytes(data[8:12])):
            ctime, mode, flags = unpack(data, at)
            start = fixed + 2 if flags & _EXTENDED else fixed
            length = flags & _NAME_MASK
            if length == _NAME_MASK:
                length = data.index(b"\0", at + start) - at - start
            if mode == _GITLINK:
                gitlinks.append(data[at + start : at + start + length])
            elif not flags & _ASSUME_VALID:
                if ctime > newest:
                    newest = ctime
                if ctime >= since_s:
                    young.append(_young(data, at, data[at + start : at + start + length]))
            # Padded with one to eight NULs to a multiple of eight bytes.
            at += (start + length + 8) & ~7
    except (struct.error, ValueError) as exc:
        raise GitError(f"index is damaged near byte {at}") from exc
    is_split = b"link" in _extensions(data, at, len(data) - oid_length)
    return Contents(newest, frozenset(gitlinks), tuple(young), is_split)


def _young(data: bytes, at: int, name: bytes) -> Young:
    seconds, nanoseconds = struct.unpack_from(">II", data, at)
    (inode,) = struct.unpack_from(">I", data, at + _INODE_AT)
    return Young(at, name, seconds * _NS + nanoseconds, inode)


def _extensions(data: bytes, at: int, end: int) -> Iterator[bytes]:
    while at + 8 <= end:
        yield data[at : at + 4]
        at += 8 + int.from_bytes(data[at + 4 : at + 8])


def without_stat(data: bytes, entries: Sequence[Young], object_format: str) -> bytes:
    """The index with the stat data of these entries dropped, modes kept, checksum renewed."""
    patched = bytearray(data)
    for at in (entry.at for entry in entries):
        patched[at : at + _MODE_AT] = bytes(_MODE_AT)
        patched[at + _MODE_AT + 4 : at + _STAT_LENGTH] = bytes(_STAT_LENGTH - _MODE_AT - 4)
    length = 20 if object_format == "sha1" else 32
    # index.skipHash leaves zeros where the checksum would stand.
    if any(patched[-length:]):
        body = memoryview(patched)[:-length]
        checksum = hashlib.new(object_format, body, usedforsecurity=False).digest()
        body.release()
        patched[-length:] = checksum
    return bytes(patched)


def replace_index(index: Path, data: bytes) -> None:
    """Put new bytes in an index's place under its lock, its modification time kept (traps: WT23).

    Raises:
        BusyError: another process holds the index's lock.
    """
    before = index.stat()
    lock = lock_of(index)
    try:
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError as exc:
        raise BusyError(f"another process holds {lock.name}") from exc
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.utime(lock, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.rename(lock, index)
    except BaseException:
        lock.unlink(missing_ok=True)
        raise


def lock_of(index: Path) -> Path:
    return index.with_name(f"{index.name}.lock")


def remove_left(lock: Path) -> bool:
    """Remove a lock that nobody works on: for a tenth of a second it stays as it is."""
    found = _identity(lock)
    deadline = time.monotonic() + _LEFT_S
    while time.monotonic() < deadline:
        if found is None or _identity(lock) != found:
            return False
        time.sleep(0.01)
    lock.unlink(missing_ok=True)
    return True


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Stamp:
    """When the last snapshot of an index began: the time of an empty file beside it.

    The clock is the file system's own, so that a file server's clock does not matter.
    """

    def __init__(self, index: Path) -> None:
        self._index = index
        self._file = index.with_name(f"{index.name}.recorded")
        self._next = index.with_name(f"{index.name}.recording")

    def last_ns(self) -> int:
        """Nanoseconds since the epoch; without a snapshot so far, when git wrote the index."""
        for path in (self._file, self._index):
            try:
                return path.stat().st_mtime_ns
            except FileNotFoundError:
                continue
        return 0

    def begin(self) -> None:
        """Take the time; nothing counts before ``finish``."""
        self._next.unlink(missing_ok=True)
        self._next.touch()

    def finish(self) -> None:
        """The snapshot that began is the last one."""
        os.replace(self._next, self._file)

    def as_old_as_index(self) -> None:
        """The index is a copy: what was so when git wrote it is all that is known."""
        self._file.touch()
        before = self._index.stat()
        os.utime(self._file, ns=(before.st_atime_ns, before.st_mtime_ns))
