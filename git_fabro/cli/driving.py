"""What commands that drive a run share: the exit status, the summary, and what can follow."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render
from git_fabro.workflow import engine
from git_fabro.workflow.diagnostic import Diagnostic
from git_fabro.workflow.state import (
    APPLIED,
    BLOCKED,
    PARTIAL,
    PAUSED,
    STOPPED,
    SUCCESS,
    RunState,
)

BLOCKED_STATUS = 3
_GOOD = (SUCCESS, PARTIAL, APPLIED)
_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

Began = Callable[[RunId], None]


def show_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """The warnings of a workflow, on standard error."""
    for one in diagnostics:
        if one.severity != "info":
            render.say(one.render())


class Drive:
    """Drives a run and tells what it came to."""

    def __init__(
        self, start: Callable[[Began], RunState], *, as_json: bool, has_branch: bool
    ) -> None:
        self._start = start
        self._as_json = as_json
        self._branch = has_branch
        self._run: RunId | None = None

    def here(self, began: Began = lambda run: None) -> int:
        """Drives in this process; gives the exit status."""

        def noted(run: RunId) -> None:
            self._run = run
            if not self._as_json:
                render.say(f"run {run}")
            began(run)

        with _signals_heard() as last_signal:
            state = self._start(noted)
            number = last_signal()
        assert self._run is not None
        try:
            self._tell(self._run, state)
            sys.stdout.flush()
        except BrokenPipeError:
            # The run went as it went; that nobody reads of it does not change its status.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
        return 128 + number if state.status == STOPPED and number else exit_status(state.status)

    def _tell(self, run: RunId, state: RunState) -> None:
        if self._as_json:
            render.document(summary(run, state, has_branch=self._branch))
        else:
            _tell(run, state, has_branch=self._branch)


@contextmanager
def _signals_heard() -> Iterator[Callable[[], int]]:
    """Gives a function that says which signal asked us to end, 0 for none.

    The driver has the handlers; the wake-up descriptor hears of the same signals.
    """
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
        fcntl.fcntl(end, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

    def last() -> int:
        try:
            heard = os.read(reading, 4096)
        except BlockingIOError:
            return 0
        return next((number for number in heard if number in _SIGNALS), 0)

    former = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield last
    finally:
        signal.set_wakeup_fd(former)
        os.close(reading)
        os.close(writing)


def exit_status(status: str) -> int:
    """0 for success; 3 while a person is waited for; 1 for every other way to rest."""
    if status in _GOOD:
        return 0
    return BLOCKED_STATUS if status in (BLOCKED, PAUSED) else 1


def summary(run: RunId, state: RunState, *, has_branch: bool) -> dict[str, object]:
    """The end of a run as JSON."""
    return {
        "run_id": run,
        "status": state.status,
        "reason": state.reason,
        "nodes": len(state.line.completed_nodes),
        "node": state.line.current_node,
        "branch": f"fabro/run/{run}" if has_branch else None,
        "questions": open_questions(state),
        "unhandled": list(state.line.unhandled),
    }


def open_questions(state: RunState) -> list[str]:
    """The ids of the gates that nobody has answered."""
    return sorted(name for name, gate in state.gates.items() if gate.answer is None)


def _tell(run: RunId, state: RunState, *, has_branch: bool) -> None:
    """The summary for people: status, nodes, duration, branch, next commands."""
    spent = ""
    if state.started_at and state.timestamp:
        length = engine.moment(state.timestamp) - engine.moment(state.started_at)
        spent = f" in {render.duration(max(0, int(length.total_seconds() * 1000)))}"
    nodes = len(state.line.completed_nodes)
    why = f": {state.reason}" if state.reason and state.status not in _GOOD else ""
    where = f"branch fabro/run/{run}" if has_branch else "no checkpoints"
    render.out(f"{run} {state.status}{why}")
    render.out(f"{nodes} node{'' if nodes == 1 else 's'}{spent}, {where}")
    for command in next_commands(run, state, has_branch=has_branch):
        render.out(f"  {command}")


def next_commands(run: RunId, state: RunState, *, has_branch: bool) -> list[str]:
    """The commands that make sense now."""
    log = f"git log --first-parent fabro/run/{run}" if has_branch else f"git fabro show {run}"
    if state.status == BLOCKED:
        answers = [f"git fabro answer {run} {name} CHOICE" for name in open_questions(state)]
        return [*answers, f"git fabro resume {run}"]
    if state.status in _GOOD:
        return [log, f"git merge fabro/run/{run}"] if has_branch else [log]
    return [log, f"git fabro resume {run}"]
