"""What a handler is given, and what it gives back."""

from __future__ import annotations

import math
import os
import select
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.secrets import Mask
from git_fabro.workflow.graph import Edge, Graph, Node
from git_fabro.workflow.records import Event
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Json, Outcome, Position, RunState


class Stop:
    """A request to end what runs, with its reason: ``stop``, ``join_policy``, ``stall``, ``lease``.

    The first reason stands. Handlers wait on it; whoever sets it, be it a signal handler, wakes all
    of them: a byte that nobody reads keeps ``fileno()`` readable from then on.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._is_set = False
        self.reason = ""
        weakref.finalize(self, _close, self._read, self._write)

    def fileno(self) -> int:
        """A descriptor that is readable once the request is there, for ``select`` and ``poll``."""
        return self._read

    def set(self, reason: str) -> None:
        if not self._is_set:
            self.reason, self._is_set = reason, True
            os.write(self._write, b"!")

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout_s: float | None = None) -> bool:
        if not self._is_set:
            poller = select.poll()
            poller.register(self._read, select.POLLIN)
            poller.poll(None if timeout_s is None else math.ceil(max(0.0, timeout_s) * 1000))
        return self._is_set


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning that never changes a run's course (git-fabro-format(5))."""

    code: str
    message: str
    level: str = "warning"
    details: Mapping[str, Json] = field(default_factory=dict)


class Groups(Protocol):
    """Keeps the process groups that must not outlive the driver."""

    def add(self, pid: int) -> None: ...
    def remove(self, pid: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt at one visit.

    ``text`` is the prompt with its preamble, or the script. ``environment`` is whole: the caller's
    without ``GIT_*``, the settings' and ``FABRO_*``. ``tracked_status_json`` says that the project
    itself has a ``status.json``, which is then neither read nor removed (git-fabro-workflow(7)).
    """

    graph: Graph
    node: Node
    position: Position
    context: Mapping[str, Json]
    text: str
    settings: Settings
    environment: Mapping[str, str]
    directory: Path
    logs: Path
    mask: Mask
    stop: Stop
    groups: Groups
    notice: Callable[[Notice], None]
    timeout_s: float | None = None
    deadline: float | None = None  # wait nodes: seconds since the epoch
    stall_timeout_s: float = 0.0
    thread: str = ""
    incoming: Edge | None = None
    tracked_status_json: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What a handler gives back: an outcome, and the trace files of the visit by name.

    ``trace`` holds masked bytes: ``{"response.md": b"...", "provider_used.json": b"{...}"}``.
    ``merged`` are the heads of the branches that a join took: further parents of the run commit.
    """

    outcome: Outcome
    trace: Mapping[str, bytes] = field(default_factory=dict)
    merged: tuple[Oid, ...] = ()


class Handler(Protocol):
    """Runs one attempt. A node that fails is an outcome; raising means that we failed.

    Raises:
        Interrupted: ``call.stop`` was set before the node ended.
    """

    def __call__(self, call: Call) -> Result: ...


class Interrupted(Exception):  # noqa: N818 - no error: the visit has no outcome
    """The attempt was ended by ``Stop`` and has no outcome."""


class Parked(Exception):  # noqa: N818 - no error: the line waits for a person
    """The line waits at an open question, and nobody is there to ask."""


class Driver(Protocol):
    """What the kinds that need more than a process may ask of whoever drives the run."""

    @property
    def state(self) -> RunState: ...

    @property
    def git(self) -> bool:
        """Whether the run has Git: refs, work trees, merges."""
        ...

    def note(self, event: Event, position: Position) -> None:
        """Appends a record that must survive."""
        ...

    def seal(self, subject: str, event: Event, position: Position) -> None:
        """Brings a record into Git before the run goes on."""
        ...

    def now(self) -> datetime: ...

    def tip(self, branch: str | None) -> Oid | None:
        """The last commit of a line: the run's (None) or a branch's."""
        ...

    def await_answer(self, question: str, call: Call) -> None:
        """Returns once the question has an answer.

        Raises:
            Parked: nobody can answer now.
            Interrupted: the run is stopped.
        """
        ...

    def run_branches(self, visit: str, names: Sequence[str], call: Call) -> None:
        """Drives branches of a fan-out until each has ended or waits.

        Args:
            visit: Of the parallel node, ``split@1``.
            names: The branches that have not ended, in file order.
            call: The call of the parallel node.

        Raises:
            Parked: those that have not ended wait for people.
            Interrupted: the run is stopped.
        """
        ...

    def resolve(self, value: Json) -> Json:
        """An offloaded value, or the value itself."""
        ...

    def take_trees(self, base: Oid, heads: Sequence[Oid], call: Call) -> tuple[str, ...]:
        """Puts the merge of branch heads into the line's work tree; gives the paths in conflict.

        One head is taken as it is. With a conflict the work tree stays as it was.
        """
        ...
