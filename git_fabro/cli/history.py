"""What going back and forking have in common: the checkpoint that is meant, and the choice."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro import history, localizing, restoring, targets
from git_fabro.checkpoint.model import RunId
from git_fabro.checkpoint.timeline import Entry
from git_fabro.cli import render
from git_fabro.cli.naming import Here
from git_fabro.doors import Doors
from git_fabro.errors import NotFoundError
from git_fabro.jobs.history.plan import Place, Target
from git_fabro.place import History
from git_fabro.rundir import RunDirectory

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN] [TARGET]", help="TARGET: @N, @-1, node@N, node, an object id"),
]
List = Annotated[bool, typer.Option("--list", help="print the timeline")]


def repository(here: Here) -> Doors:
    """The repository, once a restore of a work tree that died half way is completed, and told.

    Raises:
        NotFoundError: there is none here.
        ConflictError: another process is at it.
    """
    doors = here.repository()
    for done in restoring.complete(doors):
        for text in restoring.told(done):
            render.say(render.line(text))
    return doors


def place_of(here: Here, run: RunId) -> Place:
    """Where a run is, for a job that moves its refs; one that only a remote had is made local."""
    doors = repository(here)
    localizing.make_local(doors, run)
    return Place(
        doors=doors,
        run=run,
        directory=RunDirectory.of(here.home, run),
        environment=here.environment,
    )


def target_of(here: Here, run: RunId, text: str | None) -> Target:
    """The checkpoint that a person means; for None the last one that has its run commit.

    Raises:
        NotFoundError: none is meant, or it has no run commit.
        RequestError: it is malformed, or names several.
    """
    told = history.timeline_of(here.reading(), run, detailed=False)
    if text is None:
        entry = _last(told)
    else:
        place, said = targets.find(told, text)
        entry = place.entry
        if said:
            render.say(said)
    if entry.ordinal is None or entry.run_commit is None:
        raise NotFoundError(
            f"{entry.why or 'a snapshot, and no checkpoint'}: {entry.name}",
            hint=f"git fabro log {run}",
        )
    return Target(ordinal=entry.ordinal, run_commit=entry.run_commit, meta_commit=entry.meta_commit)


def _last(told: History) -> Entry:
    entries = [place.entry for place in told.places()]
    if not entries:
        raise NotFoundError(f"no checkpoint yet: {told.branches.run}", hint="git fabro list -a")
    return next((entry for entry in entries if entry.run_commit is not None), entries[0])


def print_timeline(here: Here, run: RunId) -> int:
    """Prints what can be gone back to, the oldest first."""
    told = history.timeline_of(here.reading(), run, detailed=False)
    rows = []
    for entry in reversed([place.entry for place in told.places()]):
        what = "commit" if entry.node is None else f"{entry.node}@{entry.visit}"
        commit = (entry.run_commit or "none")[:12]
        rows.append((entry.name, what, entry.status or "", commit, entry.why or entry.link))
    render.table(rows, head=("CHECKPOINT", "NODE", "STATUS", "RUN COMMIT", "LINK"))
    return 0
