"""``git fabro stop``."""

from __future__ import annotations

import typer

from git_fabro.cli import control


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(control.stop)
