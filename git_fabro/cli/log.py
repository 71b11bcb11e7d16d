"""``git fabro log``: the timeline of a run, newest first."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from git_fabro.cli import options
from git_fabro.cli.timeline import Wanted, tell

Oneline = Annotated[bool, typer.Option("--oneline", help="one short line each")]
Patch = Annotated[bool, typer.Option("-p", "--patch", help="and what each changed")]
Stat = Annotated[bool, typer.Option("--stat", help="and how many lines of which files")]
Graph = Annotated[bool, typer.Option("--graph", help="with forks and parallel branches")]
_MOST = sys.maxsize
Number = Annotated[
    int | None,
    typer.Option("-n", "--max-count", min=0, max=_MOST, metavar="N", help="only the newest N"),
]
Reverse = Annotated[bool, typer.Option("--reverse", help="the oldest first")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(log)


def log(
    run: options.RunOrNone = None,
    oneline: Oneline = False,
    patch: Patch = False,
    stat: Stat = False,
    graph: Graph = False,
    number: Number = None,
    reverse: Reverse = False,
    color: options.Color = None,
    as_json: options.AsJson = False,
) -> int:
    """Print the timeline of a run, newest first."""
    return tell(
        Wanted(
            run=run,
            oneline=oneline,
            patch=patch,
            stat=stat,
            graph=graph,
            number=number,
            reverse=reverse,
            color=color,
            as_json=as_json,
        )
    )
