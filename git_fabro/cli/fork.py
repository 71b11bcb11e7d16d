"""``git fabro fork``: a new run from a checkpoint of another one."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import history, naming, options, render
from git_fabro.jobs.history import fork as job
from git_fabro.jobs.history.fork import Changes

Inputs = Annotated[
    list[str] | None, typer.Option("-I", "--input", metavar="K=V", help="a value for the workflow")
]
File = Annotated[
    str | None, typer.Option("--workflow", metavar="FILE", help="go on by another workflow")
]
Goal = Annotated[str | None, typer.Option("--goal", metavar="TEXT", help="another goal")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(fork)


def fork(
    words: history.Words = None,
    run: options.RunOption = None,
    goal: Goal = None,
    inputs: Inputs = None,
    labels: options.Labels = None,
    workflow: File = None,
    show_list: history.List = False,
    as_json: options.AsJson = False,
) -> int:
    """Make a new run from a checkpoint, by default the last; prints its id."""
    here = naming.here()
    name, text = naming.run_and_target(here, words or [], run, "fork")
    if show_list:
        return history.print_timeline(here, name)
    place = history.place_of(here, name)
    target = history.target_of(here, name, text)
    changes = Changes(
        goal=goal,
        labels=options.pairs(labels, "--label"),
        inputs=options.pairs(inputs, "--input"),
        workflow=workflow,
    )
    made = job.fork(place, here.home, target, changes)
    if as_json:
        parent = {"run": name, "ordinal": target.ordinal}
        render.document({"run_id": made, "parent": parent})
    else:
        render.out(made)
        render.hint(f"git fabro resume {made}")
    return 0
