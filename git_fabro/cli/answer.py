"""``git fabro answer``: answer a question of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.checkpoint import shape
from git_fabro.cli import naming, options, render, terminal
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.gates import Reply
from git_fabro.jobs import answer as job
from git_fabro.jobs.answer import Place

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN] [GATE] [CHOICE]", help="without CHOICE: what is asked"),
]
Refuse = Annotated[bool, typer.Option("--refuse", help="decline the question")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="why it is declined")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(answer)


def answer(
    words: Words = None,
    run: options.RunOption = None,
    refuse: Refuse = False,
    reason: Reason = "",
    as_json: options.AsJson = False,
) -> int:
    """Answer a question of a run, or list what is asked."""
    if reason and not refuse:
        raise RequestError("--reason goes with --refuse", hint="git fabro answer -h")
    place, rest = _place(words or [], run)
    if len(rest) > (1 if refuse else 2):
        raise RequestError(
            f"too many arguments: {rest[-1]}; a text of several words is quoted",
            hint=f"git fabro answer {place.run} {rest[0]} 'TEXT'",
        )
    if refuse and not rest:
        raise RequestError("--refuse needs a question", hint=f"git fabro answer {place.run}")
    if not rest or (len(rest) == 1 and not refuse):
        return _show(place, rest[0] if rest else None, as_json=as_json)
    principal = job.principal_of(place.doors)
    reply = Reply(text=reason if refuse else rest[1], refused=refuse, principal=principal)
    _tell(place, rest[0], job.answer(place, rest[0], reply), as_json=as_json)
    return 0


def _tell(place: Place, question: str, how: str, *, as_json: bool) -> None:
    if as_json:
        render.document({"run_id": place.run, "question": question, "answer": how})
    elif how == "left":
        render.out(f"answer left for the driver: {question}")
    else:
        render.out(f"answered: {question}")
        render.hint(f"git fabro resume {place.run}")


def _place(words: list[str], run: str | None) -> tuple[Place, list[str]]:
    """The run and the other words: the first one names the run unless it names a gate."""
    here = naming.here()
    rest = list(words)
    if run is None and rest and "@" not in rest[0]:
        run = rest.pop(0)
    chosen = naming.find_run(here, run)
    place = Place(doors=here.doors, run=chosen, folder=here.folder, environment=here.environment)
    return place, rest


def _show(place: Place, question: str | None, *, as_json: bool) -> int:
    """What is asked, of one question or of all; 1 if nothing is."""
    gates = job.open_questions(place)
    if question is not None and question not in gates:
        known = f"open: {', '.join(sorted(gates))}" if gates else "no question is open"
        raise NotFoundError(
            f"no open question: {question} ({known})", hint=f"git fabro answer {place.run}"
        )
    shown = {name: gate for name, gate in sorted(gates.items()) if question in (None, name)}
    if as_json:
        listed = {name: shape.to_json(gate) for name, gate in shown.items()}
        render.document({"run_id": place.run, "questions": listed})
        return 0 if shown else 1
    if not shown:
        render.say(f"no question is open: {place.run}")
    for name, gate in shown.items():
        for text in terminal.question_lines(name, gate):
            render.out(text)
    return 0 if shown else 1
