"""``git fabro pause`` and ``git fabro stop``: what a driver is asked from outside."""

from __future__ import annotations

from git_fabro.cli import naming, options, render
from git_fabro.jobs import answer as job
from git_fabro.jobs.answer import PAUSE, STOP, Place


def ask(run: str, what: str, *, as_json: bool) -> int:
    """Leaves a request for whoever drives the run."""
    here = naming.here()
    chosen = naming.find_run(here, run)
    place = Place(doors=here.doors, run=chosen, folder=here.folder, environment=here.environment)
    job.ask_driver(place, what)
    if as_json:
        render.document({"run_id": chosen, "asked": what})
    else:
        render.out(f"asked to {what}: {chosen}")
    return 0


def pause(run: options.Run, as_json: options.AsJson = False) -> int:
    """Let a run rest after the node that is running."""
    return ask(run, PAUSE, as_json=as_json)


def stop(run: options.Run, as_json: options.AsJson = False) -> int:
    """End what a run is doing now; it can be resumed."""
    return ask(run, STOP, as_json=as_json)
