"""Objects that were lately asked for, kept until no clean-up that runs now can still take them.

A ``git gc --prune=now`` lists what is reachable, and deletes the rest some time later: what came
onto a ref in between is deleted too. So an object stays here until it was seen in the repository
twice, with a pause between, after a ref reached it (traps: OB11).
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path

from git_fabro.checkpoint.model import Oid

#: How much is kept; the oldest goes first.
LIMIT_BYTES = 64 << 20
#: The least time between the two looks at an object. A clean-up by ``git gc`` is known by its
#: ``gc.pid`` and waited for however long it takes; this is for a bare ``git prune``.
SETTLED_S = 2.0
#: After which time git itself takes a gc.pid for a left-over. Source: builtin/gc.c
_STALE_S = 12 * 3600


class Held:
    """An object as it can be written again."""

    __slots__ = ("data", "kind", "seen", "turn")

    def __init__(self, kind: str | None, data: bytes) -> None:
        self.kind = kind  # None: data is the whole loose file
        self.data = data
        self.turn = 0  # the how many-th that was kept
        #: When it was first seen present, on a clock that only goes forward.
        self.seen: float | None = None

    def is_due(self, now: float) -> bool:
        """Whether it is to be looked at: never seen yet, or long enough ago."""
        return self.seen is None or now - self.seen >= SETTLED_S


class Memory:
    """Objects by name, the oldest first."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._size = 0
        #: How many objects were kept so far.
        self.turn = 0
        self._held: dict[Oid, Held] = {}
        self._lock = threading.Lock()

    def keep(self, oid: Oid, held: Held) -> None:
        """Remember an object; one that is known already is new again."""
        with self._lock:
            self._drop(oid)
            self.turn += 1
            held.turn = self.turn
            self._held[oid] = held
            self._size += len(held.data)
            while self._size > self._limit:
                self._drop(next(iter(self._held)))

    def get(self, oid: Oid) -> Held | None:
        return self._held.get(oid)

    def every(self, *, since: int = 0) -> list[tuple[Oid, Held]]:
        """All that were kept after that turn; cheap where they are few."""
        with self._lock:
            newest = reversed(self._held.items())
            some = list(itertools.takewhile(lambda item: item[1].turn > since, newest))
        return some[::-1]

    def due(self, now: float) -> list[tuple[Oid, Held]]:
        """Those to be looked at: kept since the last look, or seen long enough ago.

        What was kept later was seen later: the former are the newest, the latter the oldest.
        """
        with self._lock:
            seen = itertools.takewhile(
                lambda item: item[1].seen is not None and item[1].is_due(now), self._held.items()
            )
            old = list(seen)
            newest = reversed(self._held.items())
            new = list(itertools.takewhile(lambda item: item[1].seen is None, newest))
        return old + new[::-1]

    def drop(self, oid: Oid, held: Held) -> None:
        """Forget an object, unless it was asked for again since."""
        with self._lock:
            if self._held.get(oid) is held:
                self._drop(oid)

    def _drop(self, oid: Oid) -> None:
        held = self._held.pop(oid, None)
        self._size -= len(held.data) if held is not None else 0


def is_gc_at_work(common_dir: Path) -> bool:
    """Whether a ``git gc`` runs in this repository. Source: builtin/gc.c, lock_repo_for_gc."""
    path = common_dir / "gc.pid"
    try:
        pid, _, host = path.read_text(errors="replace").strip().partition(" ")
        # Imported here: 4 ms that are paid only where there is one.
        import socket

        # By the two clocks that also git compares: the file's and ours.
        if time.time() - path.stat().st_mtime > _STALE_S:
            return False
        if host != socket.gethostname() or not pid.isdecimal():
            return True
        os.kill(int(pid), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        # Another user's process, or a file that cannot be read: somebody is there.
        return True
    return True


def wait_for_gc(common_dir: Path, patience_s: float) -> None:
    """Return once no ``git gc`` runs, or after that time."""
    deadline = time.monotonic() + patience_s
    while is_gc_at_work(common_dir) and time.monotonic() < deadline:
        time.sleep(0.02)
