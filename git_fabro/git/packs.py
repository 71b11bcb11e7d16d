"""The packs of one ``objects`` folder, read through Dulwich. Loose objects are elsewhere."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dulwich.errors import FileFormatException
from dulwich.object_format import get_object_format
from dulwich.object_store import DiskObjectStore
from dulwich.objects import ObjectID
from dulwich.pack import Pack, PackFileDisappeared

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RecordError

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
# What Dulwich raises on a pack that is damaged.
_DULWICH_ERRORS = (OSError, ValueError, AssertionError, FileFormatException, zlib.error)
_OFS_DELTA, _REF_DELTA = 6, 7
#: Of the header of an entry and the beginning of its content; more than both sizes ever take.
_HEAD_BYTES = 256
T = TypeVar("T")


class PackFolder:
    """The packs of one ``objects`` folder, through Dulwich; a miss looks for new ones."""

    def __init__(self, folder: Path, object_format: str) -> None:
        known = get_object_format(object_format)
        self._store = DiskObjectStore(str(folder), object_format=known)
        self._packs: list[Pack] = []
        self._folder = os.path.join(folder, "pack")
        #: The time of the folder when ``freshen`` listed it last.
        self._listed = -1

    def close(self) -> None:
        self._stand_on([])
        self._listed = -1
        self._store.close()

    def _stand_on(self, packs: list[Pack]) -> None:
        # A pack that Dulwich let go is opened anew by whoever asks it, and then nobody closes it.
        kept = set(map(id, packs))
        for pack in self._packs:
            if id(pack) not in kept:
                pack.close()
        self._packs = packs

    def find(self, oid: Oid) -> Pack | None:
        """The pack that holds an object, None if none does now.

        Raises:
            RecordError: a pack is damaged.
        """
        return self._packs[0] if self._ask(oid, _holding(oid)) else None

    def read(self, oid: Oid) -> tuple[str, bytes] | None:
        """Kind and bytes of an object, None if it does not lie here.

        Raises:
            RecordError: it is damaged.
        """
        name = ObjectID(oid.encode())
        found = self._ask(oid, lambda pack: pack.get_raw(name))
        return None if found is None else (_KINDS[found[0]], found[1])

    def size(self, oid: Oid) -> int | None:
        """The size of an object, None if it does not lie here; its content is not unpacked.

        Raises:
            RecordError: it is damaged.
        """
        name = ObjectID(oid.encode())
        return self._ask(oid, lambda pack: _size_at(pack, pack.index.object_offset(name), oid))

    def _ask(self, oid: Oid, question: Callable[[Pack], T | None]) -> T | None:
        """The first answer of a pack, which is first in line from then on; KeyError is none."""
        answer = self._ask_known(oid, question)
        if answer is None:
            # Listing the folder is the cost of a miss; another process may have packed meanwhile.
            self._stand_on(self._store.packs)
            answer = self._ask_known(oid, question)
        return answer

    def _list_if_changed(self) -> None:
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except FileNotFoundError:
            changed = 0
        if changed != self._listed:
            self._stand_on(self._store.packs)
            self._listed = changed

    def _ask_known(self, oid: Oid, question: Callable[[Pack], T | None]) -> T | None:
        for place, pack in enumerate(self._packs):
            try:
                answer = question(pack)
            except (KeyError, PackFileDisappeared, FileNotFoundError):
                # Not there, or a repack took the pack away under us.
                continue
            except _DULWICH_ERRORS as exc:
                raise RecordError(f"object is damaged: {oid}", hint="git fsck --full") from exc
            if answer is not None:
                if place:
                    self._packs.insert(0, self._packs.pop(place))
                return answer
        return None

    def freshen(self, oid: Oid) -> bool:
        """Whether an object lies here; its pack's time is now, so that no gc takes it for old.

        A pack that came in the same tick of the clock as the one before may be unknown; whoever
        asks writes the object once more then, and no harm is done.
        """
        self._list_if_changed()
        try:
            pack = self._packs[0] if self._ask_known(oid, _holding(oid)) else None
            if pack is not None:
                os.utime(pack.data.path)
        except (RecordError, FileNotFoundError):
            # A damaged pack cannot be relied on, nor one that is just going.
            return False
        except PermissionError:
            # Another user's pack in a shared repository.
            return True
        return pack is not None


def _holding(oid: Oid) -> Callable[[Pack], bool | None]:
    name = ObjectID(oid.encode())
    # A repack may have removed the file, which is still mapped here.
    return lambda pack: (name in pack and _lies_there(pack)) or None


def _size_at(pack: Pack, offset: int, oid: Oid) -> int:
    """The size that the header of an entry names, or that of what a delta makes.

    Source: gitformat-pack(5), "pack-*.pack files" and "Deltified representation"
    """
    with open(pack.data.path, "rb") as file:
        file.seek(offset)
        head = file.read(_HEAD_BYTES)
    kind, at = head[0] >> 4 & 7, 1
    size, shift = head[0] & 15, 4
    while head[at - 1] & 0x80:
        size |= (head[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    if kind == _OFS_DELTA:
        while head[at] & 0x80:
            at += 1
        at += 1
    elif kind == _REF_DELTA:
        at += len(oid) // 2
    else:
        return size
    delta = zlib.decompressobj().decompress(head[at:], _HEAD_BYTES)
    # The size of the base comes first; both are numbers of seven bits a byte, the lowest first.
    base_end = next(index for index, byte in enumerate(delta) if byte < 0x80) + 1
    size = shift = 0
    for byte in delta[base_end:]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size
    raise ValueError("a delta without its size")


def _lies_there(pack: Pack) -> bool:
    return os.path.exists(pack.data.path)
