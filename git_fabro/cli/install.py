"""``git fabro install``: the hooks of this repository, beside what is there."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import naming, options, render
from git_fabro.jobs.hooks import installing
from git_fabro.jobs.hooks.installing import Report

Server = Annotated[
    bool, typer.Option("--server", help="the hook of a server, in a bare repository")
]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(install)


def install(server: Server = False, as_json: options.AsJson = False) -> int:
    """Put the hooks in place that record commits by hand and push records along."""
    report = installing.install(naming.here().reading().repository, server=server)
    if as_json:
        render.document(to_json(report))
    else:
        _tell(report)
    return 0 if report.is_whole else 1


def _tell(report: Report) -> None:
    for one in report.hooks:
        first = "; the hook that was there runs first" if one.beside is not None else ""
        render.out(f"{one.what} {one.name}{first}")
    if report.is_shared and report.hooks:
        render.say(f"all repositories that use {report.folder} have these hooks now")
    manager = report.manager
    if manager is not None and manager.lacks():
        render.say(f"{manager.name} owns {', '.join(manager.lacks())} here; add this to its files:")
        render.out(manager.to_add().rstrip("\n"))


def to_json(report: Report) -> dict[str, object]:
    """What a report is as a document; uninstall gives the same."""
    manager = report.manager
    return {
        "folder": str(report.folder),
        "shared": report.is_shared,
        "hooks": [
            {
                "name": one.name,
                "what": one.what,
                "beside": None if one.beside is None else str(one.beside),
            }
            for one in report.hooks
        ],
        "manager": None if manager is None else manager.name,
        "add": manager.to_add() if manager is not None and manager.lacks() else None,
    }
