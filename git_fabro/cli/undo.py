"""``git fabro undo`` and ``git fabro redo``: the last operation taken back, and back again."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import history, naming, options, render
from git_fabro.jobs.history import undo as job
from git_fabro.jobs.history.undo import Taken

Which = Annotated[
    str | None, typer.Argument(metavar="[OP]", help="an operation, as op log names it")
]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(undo)


def undo(which: Which = None, as_json: options.AsJson = False) -> int:
    """Take back the last operation, or another one: refs, work tree and index."""
    here = naming.here()
    try:
        taken = job.undo(history.repository(here), here.home, here.environment, which)
    except job.NothingError as exc:
        render.say(exc.message)
        return 1
    return told(taken, "undone", as_json=as_json)


def told(taken: Taken, word: str, *, as_json: bool) -> int:
    """What was done, on standard output; what is to be known about it, beside."""
    for text in taken.said:
        render.say(render.line(text))
    if as_json:
        render.document({"operation": taken.operation.id, "command": taken.operation.command})
    else:
        render.out(render.line(f"{word}: {taken.operation.command}"))
    return 0
