"""``git fabro list``: the runs of a repository."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro import listing
from git_fabro.cli import naming, options
from git_fabro.cli.runs import Wanted, tell

All = Annotated[bool, typer.Option("-a", "--all", help="ended ones too")]
OfWorkflow = Annotated[
    str | None, typer.Option("--workflow", metavar="NAME", help="only runs of this workflow")
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="K=V", help="only runs with this label")
]
Before = Annotated[
    str | None, typer.Option("--before", metavar="TIME", help="only runs made before this time")
]
Ids = Annotated[bool, typer.Option("-q", "--quiet", help="ids only")]
Remote = Annotated[bool, typer.Option("--remote", help="only what remotes had when last fetched")]
Nul = Annotated[bool, typer.Option("-z", help="with -q: end each id with a NUL")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(list_runs)


def list_runs(
    show_all: All = False,
    workflow: OfWorkflow = None,
    labels: Labels = None,
    before: Before = None,
    remote: Remote = False,
    quiet: Ids = False,
    nul: Nul = False,
    color: options.Color = None,
    as_json: options.AsJson = False,
) -> int:
    """List runs: those that are active or can be resumed, or all."""
    options.only_with(nul, quiet, "-z", "git fabro list -q -z")
    return tell(
        Wanted(
            chosen=listing.Choice(
                show_all=show_all,
                workflow=workflow,
                labels=options.pairs(labels, "--label"),
                before=naming.moment(before, "--before") if before is not None else None,
                remote=remote,
            ),
            quiet=quiet,
            nul=nul,
            color=color,
            as_json=as_json,
        )
    )
