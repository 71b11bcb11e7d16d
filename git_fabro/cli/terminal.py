"""Asking a person at the terminal."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable

from git_fabro.cli import render
from git_fabro.gates import Reply, answer_event
from git_fabro.jobs.run.desk import Prompter
from git_fabro.workflow.state import Gate

_POLL_S = 0.2


def prompter() -> Prompter | None:
    """Asks at the terminal; None where standard input or standard error is none."""
    return ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def ask(question: str, gate: Gate, over: Callable[[], bool]) -> str | None:
    """What a person chose; None at the end of input, or once the question is over."""
    for text in ("", *question_lines(question, gate)):
        render.say(text)
    while True:
        sys.stderr.write("> ")
        sys.stderr.flush()
        typed = _line(over)
        if typed is None:
            render.say("")
            return None
        if answer_event(question, gate, Reply(text=typed)) is not None:
            return typed
        if typed.strip():
            render.say(f"no choice of {question}: {render.line(typed)}")


def _line(over: Callable[[], bool]) -> str | None:
    while not over():
        ready, _, _ = select.select([sys.stdin], [], [], _POLL_S)
        if ready:
            typed = sys.stdin.readline()
            return typed.rstrip("\n") if typed else None
    return None


def question_lines(question: str, gate: Gate) -> list[str]:
    """A question and its choices, for people."""
    choices = [f"  [{one.key}] {one.label or one.target}" for one in gate.options]
    if gate.freeform:
        choices.append("  or any text" if choices else "  any text")
    if gate.deadline is not None:
        choices.append(f"  until {gate.deadline}, then {gate.default or 'the gate fails'}")
    return [f"{question}: {gate.text}", *choices]
