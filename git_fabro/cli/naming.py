"""From what a person types to a run (cli, 2)."""

from __future__ import annotations

from pathlib import Path

from git_fabro import reading, rundir
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render
from git_fabro.doors import Doors
from git_fabro.errors import FabroError, NotFoundError, RequestError

_SHORTEST_PREFIX = 4
_MOST_MATCHES = 10


def doors_or_none() -> Doors | None:
    """The repository here, if there is one."""
    try:
        return Doors.open()
    except NotFoundError:
        return None


def all_runs(doors: Doors | None, home: Path) -> list[RunId]:
    """The ids of all runs: those with refs, and those that have a journal only; oldest first."""
    with_refs = reading.runs(doors) if doors is not None else []
    alone = [run for run in rundir.runs_at(home) if (home / run / "run.json").exists()]
    return sorted({*with_refs, *alone})


def find_run(doors: Doors | None, home: Path, text: str | None) -> RunId:
    """The run that a person means; the newest, named on standard error, where nothing was said.

    Raises:
        NotFoundError: no run is meant by it.
        RequestError: several are.
    """
    runs = all_runs(doors, home)
    if text is None:
        return _default(doors, home, runs)
    wanted = text.removeprefix("refs/heads/").removeprefix("fabro/run/").removeprefix("fabro/meta/")
    exact = [run for run in runs if run.upper() == wanted.upper()]
    if exact:
        return exact[0]
    if len(wanted) >= _SHORTEST_PREFIX:
        found = [run for run in runs if run.upper().startswith(wanted.upper())]
        if len(found) == 1:
            return found[0]
        if found:
            raise RequestError(_ambiguous(doors, wanted, found), hint="type more of the id")
    of_workflow = [run for run in runs if workflow_of(doors, home, run) == text]
    if of_workflow:
        return of_workflow[-1]
    raise NotFoundError(f"no run found matching '{render.line(text)}'", hint="git fabro list -a")


def _ambiguous(doors: Doors | None, wanted: str, found: list[RunId]) -> str:
    lines = [f"  {run} {_status(doors, run)}".rstrip() for run in found[:_MOST_MATCHES]]
    return "\n".join([f"ambiguous run ID prefix '{wanted}', matches:", *lines])


def _status(doors: Doors | None, run: RunId) -> str:
    if doors is None:
        return ""
    try:
        meta = reading.tips_of(doors, run).meta_tip
        return reading.state_at(doors, meta).status if meta else ""
    except FabroError:
        return "?"


def _default(doors: Doors | None, home: Path, runs: list[RunId]) -> RunId:
    head = doors.repository.head if doors is not None else None
    if head is not None and head.startswith(layout.RUN_PREFIX):
        return RunId(head.removeprefix(layout.RUN_PREFIX))
    if not runs:
        raise NotFoundError("there are no runs here", hint="git fabro run WORKFLOW")
    render.say(f"run {runs[-1]} (the newest)")
    return runs[-1]


def workflow_of(doors: Doors | None, home: Path, run: RunId) -> str:
    """The name of a run's workflow, "" where it cannot be read."""
    try:
        meta = reading.tips_of(doors, run).meta_tip if doors is not None else None
        data = doors.objects.blob_at(meta, layout.RUN_JSON) if doors and meta else None
        data = data or rundir.RunDirectory.of(home, run).read(layout.RUN_JSON)
        value = codec.parse_json(data, layout.RUN_JSON) if data else {}
    except FabroError:
        return ""
    name = value.get("workflow_slug", "") if isinstance(value, dict) else ""
    return name if isinstance(name, str) else ""
