"""``git fabro pause`` and ``git fabro stop``: what a driver is asked from outside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.cli import driving, naming, render
from git_fabro.doors import Doors
from git_fabro.jobs import answer as job
from git_fabro.jobs.answer import PAUSE, STOP, Place

Run = Annotated[str, typer.Argument(metavar="RUN")]
Json = Annotated[bool, typer.Option("--json", help="one JSON document")]


def ask(run: str, what: str, *, as_json: bool) -> int:
    """Leaves a request for whoever drives the run."""
    doors, folder, environment = Doors.open(), Path.cwd(), driving.environment()
    home = rundir.home(doors.repository, folder, environment)
    chosen = naming.find_run(doors, home, run)
    job.ask_driver(Place(doors=doors, run=chosen, folder=folder, environment=environment), what)
    if as_json:
        render.document({"run_id": chosen, "asked": what})
    else:
        render.out(f"asked to {what}: {chosen}")
    return 0


def pause(run: Run, as_json: Json = False) -> int:
    """Let a run rest after the node that is running."""
    return ask(run, PAUSE, as_json=as_json)


def stop(run: Run, as_json: Json = False) -> int:
    """End what a run is doing now; it can be resumed."""
    return ask(run, STOP, as_json=as_json)
