"""``git fabro uninstall``: the hooks out again, and what was there before put back."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import install, naming, options, render
from git_fabro.jobs.hooks import installing

Shared = Annotated[
    bool, typer.Option("--shared", help="also where other repositories use the hooks too")
]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(uninstall)


def uninstall(shared: Shared = False, as_json: options.AsJson = False) -> int:
    """Take the hooks out and put back what was there before, byte by byte."""
    report = installing.uninstall(naming.here().reading().repository, shared=shared)
    if as_json:
        render.document(install.to_json(report))
        return 0
    for one in report.hooks:
        render.out(f"{one.what} {one.name}")
        if one.beside is not None:
            render.warn(f"it is not all ours, so what was there before stays in {one.beside}")
    if not report.hooks:
        render.say(f"no hooks of git-fabro in {report.folder}")
    return 0
