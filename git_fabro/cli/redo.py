"""``git fabro redo``: the last undo taken back."""

from __future__ import annotations

import typer

from git_fabro.cli import history, naming, options, render
from git_fabro.cli.undo import told
from git_fabro.jobs.history import undo as job


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(redo)


def redo(as_json: options.AsJson = False) -> int:
    """Take back the last undo."""
    here = naming.here()
    try:
        taken = job.redo(history.repository(here), here.home, here.environment)
    except job.NothingError as exc:
        render.say(exc.message)
        return 1
    return told(taken, "redone", as_json=as_json)
