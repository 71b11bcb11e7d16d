"""One folder of loose objects: reading them, and writing them so that nobody is ever in the way.

No lock is taken: a unique temporary file and a rename (traps: OB1, OB2), so any number of processes
write the same object at once, and one that dies leaves nothing that stops the next.
"""

from __future__ import annotations

import errno
import itertools
import os
import time
import zlib
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError, RecordError

#: How long a clean-up that takes folders and files away under a writer is written against.
PATIENCE_S = 5.0

_HEADER_LIMIT = 32
#: Of a file, to be sure of that many bytes of header.
_START_BYTES = 256
_BLOCK = 4096 - 100
_SMALL_WINDOW_BITS, _SMALL_MEMORY = 12, 5
_SMALL = 1 << _SMALL_WINDOW_BITS
_counter = itertools.count()


class LooseFolder:
    """The loose objects below one ``objects`` folder."""

    def __init__(
        self, folder: Path, object_format: str, *, level: int | None, durable: bool
    ) -> None:
        """The folder; ``level`` is zlib's, None is the fastest, and for trees none at all.

        A tree is names and hashes: to deflate it takes longer than to write it, and saves nothing
        on the disk, where a small file fills a block of its own. A pack compresses it in the end.
        """
        self._folder = str(folder)
        self._format = object_format
        self._level = level
        self._durable = durable

    def has(self, oid: Oid) -> bool:
        """Whether the object lies here, and is not a file that a crash left empty."""
        try:
            return os.stat(self._path(oid)).st_size > 0
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            raise GitError(f"cannot look up object {oid}: {exc.strerror}") from exc

    def read(self, oid: Oid, *, limit_bytes: int | None = None) -> tuple[str, bytes] | None:
        """Kind and bytes of an object, None if it does not lie here.

        Raises:
            RecordError: it is damaged, or larger than the limit.
        """
        try:
            with open(self._path(oid), "rb") as file:
                packed = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise GitError(f"cannot read object {oid}: {exc.strerror}") from exc
        return self._unpack(oid, packed, limit_bytes)

    def size(self, oid: Oid) -> int | None:
        """The size that an object's header names, None if it does not lie here.

        Raises:
            RecordError: it is damaged.
        """
        try:
            with open(self._path(oid), "rb") as file:
                start = zlib.decompressobj().decompress(file.read(_START_BYTES), _HEADER_LIMIT)
            return int(start.partition(b"\0")[0].split(b" ")[1])
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise GitError(f"cannot read object {oid}: {exc.strerror}") from exc
        except (zlib.error, ValueError, IndexError) as exc:
            raise RecordError(f"object is damaged: {oid}", hint="git fsck --full") from exc

    def _unpack(self, oid: Oid, packed: bytes, limit_bytes: int | None) -> tuple[str, bytes]:
        # Imported here: 3 ms that those do not pay who only follow commits.
        import hashlib

        try:
            inflate = zlib.decompressobj()
            start = inflate.decompress(packed, _HEADER_LIMIT)
            header, _, _ = start.partition(b"\0")
            kind, size = header.decode("ascii").split(" ")
            if limit_bytes is not None and int(size) > limit_bytes:
                raise RecordError(f"object {oid} has {size} bytes, more than {limit_bytes}")
            whole = start + inflate.decompress(inflate.unconsumed_tail)
        except (zlib.error, ValueError) as exc:
            raise RecordError(f"object is damaged: {oid}", hint="git fsck --full") from exc
        if (
            not inflate.eof
            or hashlib.new(self._format, whole, usedforsecurity=False).hexdigest() != oid
        ):
            raise RecordError(f"object is damaged: {oid}", hint="git fsck --full")
        return kind, whole[len(header) + 1 :]

    def freshen(self, oid: Oid) -> bool:
        """Whether the object lies here whole; its time is now, so that no gc takes it for old."""
        if not os.access(self._path(oid), os.F_OK):
            # Nearly always, and much cheaper than the exception of an open that fails.
            return False
        try:
            whole = self.read(oid) is not None
        except RecordError:
            # Empty or damaged is as good as absent: the caller writes it anew. traps: OB3
            return False
        if whole:
            try:
                os.utime(self._path(oid))
            except FileNotFoundError:
                return False
            except PermissionError:
                # Another user's file in a shared repository; a copy of ours would be as old.
                return True
        return whole

    def write(self, oid: Oid, kind: str, data: bytes) -> None:
        """Store an object under its name, whether or not it lies there already.

        Raises:
            GitError: the disk refuses it.
        """
        level = self._level
        if level is None:
            level = 0 if kind == "tree" and len(data) < _BLOCK else 1
        self.put(oid, _deflated(b"%s %d\0%s" % (kind.encode(), len(data), data), level))

    def file_of(self, oid: Oid) -> bytes | None:
        """The whole file of an object, as ``put`` takes it; None if it does not lie here."""
        try:
            with open(self._path(oid), "rb") as file:
                return file.read() or None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise GitError(f"cannot read object {oid}: {exc.strerror}") from exc

    def put(self, oid: Oid, packed: bytes) -> None:
        """Store the file of an object.

        Raises:
            GitError: the disk refuses it.
        """
        try:
            self._store(oid, packed)
        except OSError as exc:
            raise GitError(f"cannot write object {oid}: {exc.strerror}") from exc

    def _store(self, oid: Oid, packed: bytes) -> None:
        temporary = f"{self._folder}/tmp_obj_{os.getpid()}_{next(_counter)}_{os.urandom(4).hex()}"
        path = self._path(oid)
        try:
            self._write_file(temporary, packed)
            deadline = time.monotonic() + PATIENCE_S
            while not self._is_placed(temporary, path):
                if time.monotonic() > deadline:
                    raise FileNotFoundError(errno.ENOENT, "a clean-up takes it away")
                _make_fan_out(os.path.dirname(path))
                # Files that begin with tmp_ are the first that a gc --prune=now removes.
                if not os.path.exists(temporary):
                    self._write_file(temporary, packed)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _write_file(self, path: str, data: bytes) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            _write_all(handle, data)
            if self._durable:
                os.fsync(handle)
        finally:
            os.close(handle)

    def _is_placed(self, temporary: str, path: str) -> bool:
        """Whether the file could be renamed; its folder is new, or gc removed it just now."""
        try:
            os.rename(temporary, path)
            if self._durable:
                _sync_folder(os.path.dirname(path))
        except FileNotFoundError:
            return False
        return True

    def _path(self, oid: Oid) -> str:
        return f"{self._folder}/{oid[:2]}/{oid[2:]}"


def _deflated(data: bytes, level: int) -> bytes:
    if len(data) > _SMALL:
        return zlib.compress(data, level)
    # To set up a window of 32 kB takes ten times as long as to deflate a small object; a window as
    # large as the object gives the same bytes but for the first two. Source: RFC 1950, CINFO
    deflate = zlib.compressobj(level, zlib.DEFLATED, _SMALL_WINDOW_BITS, _SMALL_MEMORY)
    return deflate.compress(data) + deflate.flush()


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _make_fan_out(folder: str) -> None:
    try:
        os.mkdir(folder)
        # In a shared repository the folder above says who may write here, not our umask.
        os.chmod(folder, os.stat(os.path.dirname(folder)).st_mode & 0o7777)
    except (FileExistsError, FileNotFoundError):
        # Another writer made it, or gc removed it at once: the rename tells. traps: OB11
        return


def _sync_folder(folder: str) -> None:
    for name in (folder, os.path.dirname(folder)):
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
