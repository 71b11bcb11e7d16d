"""One job on many things, done by two processes where that is safe."""

from __future__ import annotations

import marshal
import os
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
Found = tuple[int, list[bytes]]


def in_two(work: Callable[[Sequence[T]], list[Found]], things: Sequence[T]) -> list[Found]:
    """What the work finds, each with its thing's place; the second half in a process of its own.

    Where another thread runs, or no process can be made, all is done here: a copy of a process with
    threads may hold locks that nobody opens.
    """
    half = len(things) // 2
    if half == 0 or not _is_single():
        return work(things)
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        return work(things)
    if child == 0:
        _answer(writer, work, things[half:])
    os.close(writer)
    with open(reader, "rb") as file:
        found = work(things[:half])
        answer = file.read()
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        # A parent that ignores SIGCHLD is not told.
        status = 1
    second = marshal.loads(answer) if status == 0 else work(things[half:])
    return found + [(half + place, names) for place, names in second]


def _answer(writer: int, work: Callable[[Sequence[T]], list[Found]], things: Sequence[T]) -> None:
    """The second process: it writes what it found, and ends without any of Python's own ending."""
    status = 1
    try:
        with open(writer, "wb") as file:
            marshal.dump(work(things), file)
        status = 0
    finally:
        os._exit(status)


def _is_single() -> bool:
    try:
        return threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False
