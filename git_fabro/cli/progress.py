"""What somebody who watches a run is told, record by record."""

from __future__ import annotations

import sys

from git_fabro.cli import render
from git_fabro.workflow.records import (
    AttemptFailed,
    BranchFinished,
    NodeFinished,
    NodeStarted,
    QuestionAsked,
    QuestionRefused,
    Record,
    RunNotice,
)
from git_fabro.workflow.state import Position

_SILENT = frozenset({"start", "exit"})


class Progress:
    """One line a step on standard error, where that is a terminal or somebody asked for it."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self._wanted = verbose or (sys.stderr.isatty() and not quiet)

    def on_record(self, record: Record) -> None:
        """Tells what a record says; warnings are told to everybody."""
        text = line_of(record)
        if text is not None and (self._wanted or isinstance(record.event, RunNotice)):
            render.say(text)


def where(position: Position | None) -> str:
    """A visit, with its branch inside a fan-out: ``split@1/api: test@1``."""
    if position is None:
        return ""
    return f"{position.branch}: {position}" if position.branch else str(position)


def line_of(record: Record) -> str | None:
    """What a record says to somebody who watches; None if nothing."""
    event, position = record.event, record.position
    here = where(position)
    if isinstance(event, NodeStarted):
        return None if event.handler in (*_SILENT, "conditional") else f"{here} ..."
    if isinstance(event, NodeFinished):
        reason = f": {event.outcome.failure.message}" if event.outcome.failure else ""
        text = f"{here} {event.outcome.text} ({render.duration(event.duration_ms)}){reason}"
        return None if event.handler in _SILENT else text
    if isinstance(event, AttemptFailed):
        reason = event.outcome.failure.message if event.outcome.failure else event.outcome.status
        return f"{here} attempt failed, next in {render.duration(event.delay_ms)}: {reason}"
    if isinstance(event, BranchFinished):
        return f"{position.branch if position else event.id}: {event.status}"
    if isinstance(event, QuestionAsked):
        return f"{event.question} asks: {event.text}"
    if isinstance(event, QuestionRefused):
        return f"{event.question} refused" + (f": {event.reason}" if event.reason else "")
    if isinstance(event, RunNotice) and event.level != "info":
        return f"{event.level}: {event.message}"
    return None
