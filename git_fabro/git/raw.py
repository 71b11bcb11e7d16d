"""Objects as kind and bytes: loose ones by our own code, packed ones through Dulwich.

Nothing is answered from a cache that another process could make wrong: packs that appear during a
run are seen, packs that a repack removes are let go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError, MissingObjectError, RecordError
from git_fabro.git.encoding import object_name
from git_fabro.git.loose import LooseFolder
from git_fabro.git.memory import Held, Memory, is_gc_at_work, wait_for_gc
from git_fabro.git.program import Git

if TYPE_CHECKING:
    from git_fabro.git.packs import PackFolder

#: How long the last look waits for a clean-up that runs.
GC_PATIENCE_S = 10.0

_ALTERNATES_DEPTH = 5


class RawObjects:
    """The objects of one repository and its alternates; new ones go to the first folder."""

    def __init__(
        self,
        folders: tuple[Path, ...],
        object_format: str,
        *,
        level: int | None,
        durable: bool,
        lazy: Git | None,
        git_dir: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._format = object_format
        self._level = level
        self._durable = durable
        #: How many packs ``write_all`` made.
        self._made = 0
        self._lazy = lazy
        self._git_dir = git_dir
        self._folders = tuple(dict.fromkeys(_with_alternates(folders, _ALTERNATES_DEPTH)))
        self._loose = [
            LooseFolder(folder, object_format, level=level, durable=durable)
            for folder in self._folders
        ]
        self._opened: list[PackFolder] = []
        self._ahead: dict[Oid, tuple[str, bytes]] = {}
        self._memory = Memory()
        self._clock = clock

    def close(self) -> None:
        """Let go of the packs and of what was read ahead; the value stays usable."""
        self._ahead = {}
        for packs in self._opened:
            packs.close()

    def __del__(self) -> None:
        # Dulwich warns of packs that are open at the end; nothing of ours is lost with them.
        for packs in getattr(self, "_opened", ()):
            packs.close()

    @property
    def object_format(self) -> str:
        return self._format

    @property
    def _packs(self) -> list[PackFolder]:
        if not self._opened:
            # Imported with the first object that is not loose: 30 ms that hooks and most looking
            # commands at a live run do not pay.
            from git_fabro.git.packs import PackFolder

            self._opened = [PackFolder(folder, self._format) for folder in self._folders]
        return self._opened

    def write(self, kind: str, data: bytes) -> Oid:
        """Store an object, unless it is there whole; its time is now either way."""
        oid = object_name(kind, data, self._format)
        if self.freshen_packed(oid, kind, data):
            return oid
        return self._write_loose(oid, kind, data)

    def freshen_packed(self, oid: Oid, kind: str, data: bytes) -> bool:
        """Whether a pack holds an object; its time is now then."""
        if not any(packs.freshen(oid) for packs in self._packs):
            return False
        self._memory.keep(oid, Held(kind, data))
        return True

    def write_new(self, kind: str, data: bytes) -> Oid:
        """Store an object that hardly can be there already.

        The packs are not asked, which costs more than the writing where there are many of them; at
        worst a pack has the object too.
        """
        return self._write_loose(object_name(kind, data, self._format), kind, data)

    def write_all(self, objects: Mapping[Oid, tuple[str, bytes]]) -> None:
        """Store objects, kind and bytes by name: few of them loose, many as one pack.

        Raises:
            GitError: the disk refuses one.
        """
        new = {oid: one for oid, one in objects.items() if not self._loose[0].freshen(oid)}
        if not self._is_packed(new):
            for oid, (kind, data) in new.items():
                self._loose[0].write(oid, kind, data)
        for oid, (kind, data) in objects.items():
            self._memory.keep(oid, Held(kind, data))

    def _is_packed(self, new: Mapping[Oid, tuple[str, bytes]]) -> bool:
        # Imported here: only snapshots write as many.
        from git_fabro.git import batch

        # Many packs make every look longer.
        if len(new) < batch.PACK_OBJECTS or self._made >= batch.MOST_PACKS:
            return False
        try:
            batch.write_pack(
                self._folders[0], new, self._format, level=self._level, durable=self._durable
            )
        except FileNotFoundError:
            # A clean-up took the temporary file. Loose files are patient with it.
            return False
        except OSError as exc:
            raise GitError(f"cannot write a pack: {exc.strerror}") from exc
        self._made += 1
        return True

    def _write_loose(self, oid: Oid, kind: str, data: bytes) -> Oid:
        if not self._loose[0].freshen(oid):
            self._loose[0].write(oid, kind, data)
        self._memory.keep(oid, Held(kind, data))
        return oid

    def hold(self, oid: Oid) -> bool:
        """Remember an object that another program wrote; whether it could be had."""
        held = self._memory.get(oid)
        if held is not None:
            self._memory.keep(oid, Held(held.kind, held.data))
            self._write_back([(oid, held)])
            return True
        held = self._found(oid) or self._found(oid)
        if held is not None:
            self._memory.keep(oid, held)
        return held is not None

    def _found(self, oid: Oid) -> Held | None:
        file = next(filter(None, (folder.file_of(oid) for folder in self._loose)), None)
        if file is not None:
            return Held(None, file)
        packed = next(filter(None, (packs.read(oid) for packs in self._packs)), None)
        return None if packed is None else Held(*packed)

    def look_again(self) -> int:
        """Write what is gone of the objects that refs now reach; how many were gone.

        Cheap: each object is looked at twice, ``SETTLED_S`` apart, unless a clean-up is at work.
        """
        # Asked first: one that ends later still has deleted before we look.
        at_work = is_gc_at_work(self._git_dir)
        now = self._clock()
        due = self._memory.every() if at_work else self._memory.due(now)
        gone = self._write_back(due)
        for oid, held in due:
            if oid in gone:
                # New again, so that those never seen are always the newest.
                self._memory.keep(oid, Held(held.kind, held.data))
            elif held.seen is None:
                held.seen = now
            elif held.is_due(now) and not at_work:
                self._memory.drop(oid, held)
        if gone and not at_work:
            return len(gone | self._write_back(self._memory.every()))
        return len(gone)

    def look_for_all(self) -> int:
        """The same once more for all that are remembered, after a clean-up that runs has ended."""
        wait_for_gc(self._git_dir, GC_PATIENCE_S)
        return self.bring_back()

    @property
    def turn(self) -> int:
        return self._memory.turn

    def bring_back(self, *, since: int = 0) -> int:
        """Write what is gone of all remembered objects, on refs or not; nothing is forgotten."""
        return len(self._write_back(self._memory.every(since=since)))

    def _write_back(self, some: Iterable[tuple[Oid, Held]]) -> set[Oid]:
        gone = {oid: held for oid, held in some if not self._lies_here(oid)}
        for oid, held in gone.items():
            if held.kind is None:
                self._loose[0].put(oid, held.data)
            else:
                self._loose[0].write(oid, held.kind, held.data)
        return set(gone)

    def _is_remembered(self, oid: Oid) -> bool:
        """Whether the object is in memory; then it is in the repository again."""
        held = self._memory.get(oid)
        if held is not None:
            self._write_back([(oid, held)])
        return held is not None

    def exists(self, oid: Oid) -> bool:
        """Whether the object is in the repository now."""
        return (
            self._lies_here(oid)
            or self._lies_here(oid)
            or self._is_remembered(oid)
            or self._fetch(oid) is not None
        )

    def _lies_here(self, oid: Oid) -> bool:
        return any(folder.has(oid) for folder in self._loose) or any(
            packs.find(oid) is not None for packs in self._packs
        )

    def read(self, oid: Oid, *, limit_bytes: int | None = None) -> tuple[str, bytes]:
        """Kind and bytes of an object.

        Raises:
            MissingObjectError: it is not in the repository.
            RecordError: it is damaged, or larger than the limit.
        """
        # Twice: a repack may have moved it from one place to the other between two looks.
        found = self._ahead.get(oid) or self._look(oid, limit_bytes) or self._look(oid, limit_bytes)
        if found is None and self._is_remembered(oid):
            found = self._look(oid, limit_bytes)
        found = found or self._fetch(oid)
        if found is None:
            raise MissingObjectError(f"object is missing: {oid}", hint="git fsck")
        if limit_bytes is not None and len(found[1]) > limit_bytes:
            raise RecordError(f"object {oid} has {len(found[1])} bytes, more than {limit_bytes}")
        return found

    def read_ahead(self, git: Git, names: Sequence[str]) -> None:
        """Have git read many objects at once; the next ones take their place."""
        from git_fabro.git import ahead

        self._ahead = ahead.read(git, self._git_dir, names)

    def size(self, oid: Oid) -> int:
        """The size of an object, without its content where that can be had so; raises as read."""
        for folder in self._loose:
            size = folder.size(oid)
            if size is not None:
                return size
        for packs in self._packs:
            size = packs.size(oid)
            if size is not None:
                return size
        return len(self.read(oid)[1])

    def _look(self, oid: Oid, limit_bytes: int | None) -> tuple[str, bytes] | None:
        damage: RecordError | None = None
        for folder in self._loose:
            try:
                found = folder.read(oid, limit_bytes=limit_bytes)
            except RecordError as exc:
                # A good copy may lie in a pack.
                damage = exc
                continue
            if found is not None:
                return found
        packed = next(filter(None, (packs.read(oid) for packs in self._packs)), None)
        if packed is None and damage is not None:
            raise damage
        return packed

    def _fetch(self, oid: Oid) -> tuple[str, bytes] | None:
        # In a partial clone git fetches what is absent; Dulwich cannot. traps: OB10
        if self._lazy is None:
            return None
        asked = f"{oid}\n".encode()
        answer = self._lazy.run(["cat-file", "--batch"], git_dir=self._git_dir, input=asked)
        header, _, rest = answer.partition(b"\n")
        _, kind, *size = header.decode("ascii").split(" ")
        return (kind, rest[: int(size[0])]) if size else None


def _with_alternates(folders: tuple[Path, ...], depth: int) -> Iterator[Path]:
    for folder in folders:
        yield folder
        if depth == 0:
            continue
        try:
            text = os.fsdecode((folder / "info" / "alternates").read_bytes())
        except FileNotFoundError:
            continue
        named = [line for line in text.splitlines() if line and not line.startswith("#")]
        below = tuple(Path(os.path.normpath(folder / line)) for line in named)
        yield from _with_alternates(below, depth - 1)
