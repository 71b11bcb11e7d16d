"""``git fabro answer``: answer a question of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.checkpoint import shape
from git_fabro.cli import driving, naming, render
from git_fabro.doors import Doors
from git_fabro.errors import RequestError
from git_fabro.gates import Reply
from git_fabro.jobs import answer as job
from git_fabro.jobs.answer import Place
from git_fabro.workflow.state import Gate


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(answer)


def answer(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[RUN] [GATE] [CHOICE]", help="without CHOICE: what is asked"),
    ] = [],  # noqa: B006
    run: Annotated[
        str | None, typer.Option(help="the run, where the first word could be both")
    ] = None,
    refuse: Annotated[bool, typer.Option("--refuse", help="decline the question")] = False,
    reason: Annotated[str, typer.Option(help="why it is declined")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """Answer a question of a run, or list what is asked."""
    place, rest = _place(words, run)
    if len(rest) > (1 if refuse else 2):
        raise RequestError("too many arguments; quote a text of several words")
    if not rest or (len(rest) == 1 and not refuse):
        return _show(place, rest[0] if rest else None, as_json=as_json)
    reply = Reply(
        text=reason if refuse else rest[1], refused=refuse, principal=job.principal_of(place.doors)
    )
    how = job.answer(place, rest[0], reply)
    if as_json:
        render.document({"run_id": place.run, "question": rest[0], "answer": how})
    elif how == "left":
        render.out(f"answer left for the driver: {rest[0]}")
    else:
        render.out(f"answered: {rest[0]}")
        render.hint(f"git fabro resume {place.run}")
    return 0


def _place(words: list[str], run: str | None) -> tuple[Place, list[str]]:
    """The run and the other words: the first one names the run unless it names a gate."""
    doors, folder, environment = Doors.open(), Path.cwd(), driving.environment()
    home = rundir.home(doors.repository, folder, environment)
    rest = list(words)
    if run is None and rest and "@" not in rest[0]:
        run = rest.pop(0)
    chosen = naming.find_run(doors, home, run)
    return Place(doors=doors, run=chosen, folder=folder, environment=environment), rest


def _show(place: Place, question: str | None, *, as_json: bool) -> int:
    gates = job.open_questions(place)
    shown = {name: gate for name, gate in gates.items() if question in (None, name)}
    if as_json:
        listed = {name: shape.to_json(gate) for name, gate in sorted(shown.items())}
        render.document({"run_id": place.run, "questions": listed})
    elif not shown:
        render.out("no question is open")
    for name, gate in () if as_json else sorted(shown.items()):
        _print(name, gate)
    return 0 if shown else 1


def _print(name: str, gate: Gate) -> None:
    render.out(f"{name}: {gate.text}")
    for option in gate.options:
        render.out(f"  [{option.key}] {option.label or option.target}")
    if gate.freeform:
        render.out("  or any text")
    if gate.deadline is not None:
        render.out(f"  until {gate.deadline}, then {gate.default or 'the gate fails'}")
