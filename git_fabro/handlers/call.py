"""What a handler is given, and what it gives back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from git_fabro.checkpoint.secrets import Mask
from git_fabro.workflow.graph import Edge, Graph, Node
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Json, Outcome, Position


class Stop:
    """A request to end what runs, with its reason: ``stop``, ``join_policy``, ``stall``, ``lease``.

    The first reason stands. Handlers wait on it; whoever sets it wakes all of them.
    """

    def __init__(self) -> None:
        self._event = threading.Event()
        self.reason = ""

    def set(self, reason: str) -> None:
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        return self._event.wait(timeout_s)


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning that never changes a run's course (records, ``run.notice``)."""

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
    itself has a ``status.json``, which is then neither read nor removed (dialect, 7.2).
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
    """

    outcome: Outcome
    trace: Mapping[str, bytes] = field(default_factory=dict)


class Handler(Protocol):
    """Runs one attempt. A node that fails is an outcome; raising means that we failed.

    Raises:
        Interrupted: ``call.stop`` was set before the node ended.
    """

    def __call__(self, call: Call) -> Result: ...


class Interrupted(Exception):  # noqa: N818 - no error: the visit has no outcome
    """The attempt was ended by ``Stop`` and has no outcome."""
