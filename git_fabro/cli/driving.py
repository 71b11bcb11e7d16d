"""What commands that drive a run share: progress, the terminal's questions, detaching, the summary."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render
from git_fabro.errors import FabroError, RequestError
from git_fabro.jobs.run.desk import Prompter
from git_fabro.workflow import engine
from git_fabro.workflow.diagnostic import Diagnostic
from git_fabro.workflow.records import (
    AttemptFailed,
    BranchFinished,
    NodeFinished,
    NodeStarted,
    QuestionAsked,
    Record,
    RunNotice,
)
from git_fabro.workflow.state import BLOCKED, FAIL, PARTIAL, SUCCESS, Gate, RunState
from git_fabro.workflows import WorkflowError

BLOCKED_STATUS, STOPPED_STATUS = 3, 130
_POLL_S = 0.2


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """``K=V`` options as a table.

    Raises:
        RequestError: one has no ``=``, or no key.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise RequestError(f"{option} takes K=V, not: {text}")
        found[key] = value
    return found


def show_diagnostics(diagnostics: Sequence[Diagnostic], *, infos: bool = False) -> None:
    """Warnings (and infos) of a workflow, on standard error."""
    for one in diagnostics:
        if infos or one.severity != "info":
            render.say(one.render())


def prompter() -> Prompter | None:
    """Asks at the terminal; None where standard input or standard error is none."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    return _ask


def _ask(question: str, gate: Gate, over: Callable[[], bool]) -> str | None:
    render.say(f"\n{question}: {gate.text}")
    for option in gate.options:
        render.say(f"  [{option.key}] {option.label or option.target}")
    if gate.freeform:
        render.say("  or type an answer")
    sys.stderr.write("> ")
    sys.stderr.flush()
    while not over():
        ready, _, _ = select.select([sys.stdin], [], [], _POLL_S)
        if ready:
            typed = sys.stdin.readline()
            return typed.rstrip("\n") if typed else None
    return None


class Progress:
    """One line a finished node, on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def on_record(self, record: Record) -> None:
        text = progress_line(record)
        if text is not None and not self._quiet:
            render.say(text)


def progress_line(record: Record) -> str | None:
    """What a record says to somebody who watches; None if nothing."""
    event, position = record.event, record.position
    where = f"{position.branch}: {position}" if position and position.branch else str(position)
    if isinstance(event, NodeStarted) and event.handler not in ("start", "exit", "conditional"):
        return f"{where} ..."
    if isinstance(event, NodeFinished) and event.handler not in ("start", "exit"):
        reason = f": {event.outcome.failure.message}" if event.outcome.failure else ""
        return f"{where} {event.outcome.text} ({render.duration(event.duration_ms)}){reason}"
    if isinstance(event, AttemptFailed):
        reason = event.outcome.failure.message if event.outcome.failure else event.outcome.status
        return f"{where} attempt failed, next in {render.duration(event.delay_ms)}: {reason}"
    if isinstance(event, BranchFinished):
        return f"{position.branch if position else ''} {event.status}"
    if isinstance(event, QuestionAsked):
        return f"{event.question} asks: {event.text}"
    if isinstance(event, RunNotice) and event.level != "info":
        return f"{event.level}: {event.message}"
    return None


class Drive:
    """Drives a run and tells what it came to."""

    def __init__(
        self,
        start: Callable[[Callable[[RunId], None]], RunState],
        progress: Progress,
        *,
        as_json: bool,
    ) -> None:
        self._start = start
        self._progress = progress
        self._as_json = as_json
        self._run: RunId | None = None

    def here(self, began: Callable[[RunId], None] = lambda run: None) -> int:
        """Drives in this process; gives the exit status."""

        def noted(run: RunId) -> None:
            self._run = run
            if not self._as_json:
                render.say(f"run {run}")
            began(run)

        try:
            state = self._start(noted)
        except WorkflowError as exc:
            show_diagnostics(exc.diagnostics)
            raise
        assert self._run is not None
        if self._as_json:
            render.document(summary(self._run, state))
        else:
            _tell(self._run, state)
        return exit_status(state)


def exit_status(state: RunState) -> int:
    """0 for success, 1 for failure, 3 while a person is waited for, 130 after a stop (cli, 1)."""
    if state.status in (SUCCESS, PARTIAL):
        return 0
    if state.status == FAIL:
        return 1
    if state.status == BLOCKED:
        return BLOCKED_STATUS
    return STOPPED_STATUS if state.status == "stopped" else 0


def summary(run: RunId, state: RunState) -> dict[str, object]:
    """The end of a run as JSON."""
    gates = [question for question, gate in state.gates.items() if gate.answer is None]
    return {
        "run_id": run,
        "status": state.status,
        "reason": state.reason,
        "nodes": len(state.line.completed_nodes),
        "node": state.line.current_node,
        "branch": f"fabro/run/{run}",
        "questions": sorted(gates),
        "unhandled": list(state.line.unhandled),
    }


def _tell(run: RunId, state: RunState) -> None:
    """The summary for people: status, nodes, duration, branch, next commands."""
    spent = ""
    if state.started_at and state.timestamp:
        length = engine.moment(state.timestamp) - engine.moment(state.started_at)
        spent = f" in {render.duration(max(0, int(length.total_seconds() * 1000)))}"
    nodes = len(state.line.completed_nodes)
    why = f": {state.reason}" if state.reason and state.status not in (SUCCESS, PARTIAL) else ""
    render.out(f"{run} {state.status}{why}")
    render.out(f"{nodes} node{'' if nodes == 1 else 's'}{spent}, branch fabro/run/{run}")
    for command in next_commands(run, state):
        render.out(f"  {command}")


def next_commands(run: RunId, state: RunState) -> list[str]:
    """The commands that make sense now."""
    if state.status == BLOCKED:
        open_gates = [question for question, gate in state.gates.items() if gate.answer is None]
        answers = [f"git fabro answer {run} {question} CHOICE" for question in sorted(open_gates)]
        return [*answers, f"git fabro resume {run}"]
    if state.status in (SUCCESS, PARTIAL):
        return [f"git log fabro/run/{run}", f"git merge fabro/run/{run}"]
    return [f"git log fabro/run/{run}", f"git fabro resume {run}"]


def detached(drive: Drive, home: Path, run: RunId) -> int:
    """Drives in a process of its own; prints the run's id once the run exists.

    Raises:
        FabroError: it could not be begun.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _drive_alone(drive, home / run, writing)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        said = answer.read()
    word, _, text = said.partition(" ")
    if word != "began":
        raise FabroError(text.strip() or "the run could not be begun")
    render.out(text.strip())
    return 0


def _drive_alone(drive: Drive, folder: Path, writing: int) -> None:
    """The life of the process in the background: never returns."""
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    status = 128
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        log = os.open(folder / "driver.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(number, target)

        def began(run: RunId) -> None:
            os.write(writing, f"began {run}".encode())
            os.close(writing)

        status = drive.here(began)
    except FabroError as exc:
        render.error(exc)
        _try_to_tell(writing, exc.message)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _try_to_tell(writing: int, message: str) -> None:
    try:
        os.write(writing, f"failed {message}".encode())
    except OSError:
        # The run had begun, and whoever started it is gone: the log has the error.
        return


def environment() -> Mapping[str, str]:
    """The environment of this process."""
    return dict(os.environ)
