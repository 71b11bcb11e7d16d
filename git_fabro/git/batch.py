"""New objects that are stored together: few as a file each, many as one pack.

To make a file costs ten times what it costs to deflate a small object, and a snapshot of a hundred
changed files makes more than a hundred. Git itself keeps a pack from a hundred objects on.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from git_fabro.checkpoint.model import Oid
from git_fabro.git.encoding import object_name

if TYPE_CHECKING:
    from git_fabro.git.raw import RawObjects

#: From how many objects on they become a pack. Source: git-config(1), transfer.unpackLimit
PACK_OBJECTS = 100
#: How many packs one process makes at most: ``git gc --auto`` comes at fifty.
MOST_PACKS = 20
#: What waits in memory; more of it is stored before the rest.
_LIMIT_BYTES = 32 << 20
_NUMBERS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}


class Batch:
    """Objects on the way; none can be read, and none may be named by a ref, before ``store``."""

    def __init__(self, raw: RawObjects) -> None:
        self._raw = raw
        self._waiting: dict[Oid, tuple[str, bytes]] = {}
        self._bytes = 0

    def write(self, kind: str, data: bytes) -> Oid:
        """Have an object stored, unless a pack holds it; its time is now either way.

        Raises:
            GitError: the disk refuses it.
        """
        oid = self._name(kind, data)
        return oid if self._raw.freshen_packed(oid, kind, data) else self._add(oid, kind, data)

    def write_new(self, kind: str, data: bytes) -> Oid:
        """Have an object stored that hardly can be in a pack already; raises as ``write``."""
        return self._add(self._name(kind, data), kind, data)

    def store(self) -> None:
        """Store what waits; raises as ``write``."""
        waiting, self._waiting, self._bytes = self._waiting, {}, 0
        self._raw.write_all(waiting)

    def _name(self, kind: str, data: bytes) -> Oid:
        return object_name(kind, data, self._raw.object_format)

    def _add(self, oid: Oid, kind: str, data: bytes) -> Oid:
        if oid not in self._waiting:
            self._waiting[oid] = (kind, data)
            self._bytes += len(data)
            if self._bytes > _LIMIT_BYTES:
                self.store()
        return oid


def write_pack(
    folder: Path,
    objects: Mapping[Oid, tuple[str, bytes]],
    object_format: str,
    *,
    level: int | None,
    durable: bool,
) -> None:
    """One pack of these objects, none of them a delta; its index comes last, and makes it count.

    Args:
        folder: The ``objects`` folder.
        objects: Kind and bytes by name.
        object_format: ``sha1`` or ``sha256``.
        level: Zlib's; None is the fastest.
        durable: Whether pack, index and folder are synced.

    Raises:
        OSError: the disk refuses it, or a clean-up took the file away before it had its name.
    """
    # Imported here: 30 ms that only those pay who write as many.
    from dulwich.object_format import get_object_format
    from dulwich.pack import UnpackedObject, write_pack_data, write_pack_index_v2

    records = (
        UnpackedObject(_NUMBERS[kind], decomp_chunks=[data], sha=bytes.fromhex(oid))
        for oid, (kind, data) in objects.items()
    )
    pack, index = io.BytesIO(), io.BytesIO()
    entries, checksum = write_pack_data(
        pack.write,
        records,
        get_object_format(object_format),
        num_records=len(objects),
        compression_level=1 if level is None else level,
    )
    rows = sorted((name, offset, crc) for name, (offset, crc) in entries.items())
    write_pack_index_v2(index, rows, checksum)
    packs = folder / "pack"
    packs.mkdir(exist_ok=True)
    files = {
        f"{packs}/pack-{checksum.hex()}{ending}": data.getvalue()
        for ending, data in ((".pack", pack), (".idx", index))
    }
    _place(files, durable=durable)
    if durable:
        _sync(packs)


def _place(files: Mapping[str, bytes], *, durable: bool) -> None:
    """Files under their names, in order, once all of them are written; or none of them."""
    written: dict[str, str] = {}
    placed: list[str] = []
    try:
        for path, data in files.items():
            # Git's own clean-up knows the name.
            name = f"tmp_pack_{os.getpid()}_{os.urandom(6).hex()}"
            written[path] = os.path.join(os.path.dirname(path), name)
            _write(written[path], data, durable=durable)
        for path, temporary in written.items():
            os.rename(temporary, path)
            placed.append(path)
    except BaseException:
        # A pack without an index is seen by nobody, and swept by nobody.
        for path in (*written.values(), *placed):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        raise


def _write(path: str, data: bytes, *, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    with open(handle, "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(handle)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
