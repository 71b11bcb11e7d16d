"""What going back and forking have in common: the checkpoint that is meant, and the choice."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render, target
from git_fabro.cli.naming import Here
from git_fabro.errors import NotFoundError
from git_fabro.jobs import look
from git_fabro.jobs.history.rewind import Place, Target
from git_fabro.rundir import RunDirectory

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN] [TARGET]", help="TARGET: @N, @-1, node@N, node, an object id"),
]
List = Annotated[bool, typer.Option("--list", help="print the timeline")]


def place_of(here: Here, run: RunId) -> Place:
    """Where a run is, for a job that moves its refs."""
    return Place(
        doors=here.repository(),
        run=run,
        directory=RunDirectory.of(here.home, run),
        environment=here.environment,
    )


def target_of(here: Here, run: RunId, text: str) -> Target:
    """The checkpoint that a person means.

    Raises:
        NotFoundError: none is meant, or its metadata is not there.
        RequestError: it is malformed, or names several.
    """
    doors = here.repository()
    found, said = target.resolve(
        text,
        look.timeline(doors, run),
        lambda: look.interior(doors, here.home, run),
        run,
    )
    if said is not None:
        render.say(said)
    if found.meta_commit is None:
        raise NotFoundError(
            f"no metadata for checkpoint @{found.ordinal} (link: {found.link}): {run}",
            hint=f"git show {found.run_commit}",
        )
    return Target(ordinal=found.ordinal, run_commit=found.run_commit, meta_commit=found.meta_commit)


def timeline(here: Here, run: RunId) -> int:
    """Prints what can be gone back to, the oldest first."""
    rows = []
    for found in look.timeline(here.repository(), run):
        what = f"{found.said.node}@{found.said.visit}" if found.said else "commit"
        status = found.said.status if found.said else ""
        rows.append((f"@{found.ordinal}", what, status, found.run_commit[:12], found.link))
    render.table(rows, head=("CHECKPOINT", "NODE", "STATUS", "RUN COMMIT", "LINK"))
    return 0
