"""``git fabro stop``."""

from __future__ import annotations

import typer

from git_fabro.cli import control, options


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(control.stop)
