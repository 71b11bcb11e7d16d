"""``git fabro list``: the runs of a repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from git_fabro.cli import driving, naming, options, pager, render
from git_fabro.errors import RequestError
from git_fabro.jobs import look
from git_fabro.jobs.look import Row
from git_fabro.workflow import engine
from git_fabro.workflow.state import APPLIED, PARTIAL, SUCCESS

_OVER = frozenset({SUCCESS, PARTIAL, APPLIED})
_HEAD = ("RUN", "STATUS", "WORKFLOW", "NODE", "CHECKPOINTS", "AGE", "GOAL")
_STATUS = 1
_GOAL_WIDTH = 60

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
Nul = Annotated[bool, typer.Option("-z", help="with -q: end each id with a NUL")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(list_runs)


def list_runs(
    show_all: All = False,
    workflow: OfWorkflow = None,
    labels: Labels = None,
    before: Before = None,
    quiet: Ids = False,
    nul: Nul = False,
    color: options.Color = None,
    as_json: options.AsJson = False,
) -> int:
    """List runs: those that are active or can be resumed, or all."""
    if nul and not quiet:
        raise RequestError("-z is for a list of ids", hint="git fabro list -q -z")
    place = naming.here()
    wanted = driving.pairs(labels, "--label")
    limit = naming.moment(before, "--before") if before is not None else None
    rows = [look.row(place.doors, place.home, run) for run in reversed(naming.all_runs(place))]
    shown = [
        row
        for row in rows
        if (show_all or row.status not in _OVER)
        and (workflow is None or row.workflow == workflow)
        and (limit is None or row.created_at < limit)
        and all(row.labels.get(key) == value for key, value in wanted.items())
    ]
    if as_json:
        render.document({"runs": [_json(row) for row in shown]})
    elif quiet:
        render.names([row.run_id for row in shown], nul=nul)
    else:
        _print(place, shown, color)
    return _problems(shown)


def _json(row: Row) -> dict[str, object]:
    return {key: value for key, value in asdict(row).items() if key != "problem"}


def _print(place: naming.Here, shown: Sequence[Row], color: str | None) -> None:
    if not shown:
        return
    coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
    pager.begin("list", place.doors)
    now = datetime.now(UTC)
    rows = [_cells(row, now) for row in shown]
    render.table(rows, head=_HEAD, colour=_STATUS if coloured else None)


def _cells(row: Row, now: datetime) -> tuple[str, ...]:
    goal = row.goal.split("\n")[0]
    return (
        row.run_id,
        row.status,
        row.workflow,
        row.node or "",
        str(row.checkpoints),
        _age(row.created_at, now),
        goal if len(goal) <= _GOAL_WIDTH else f"{goal[: _GOAL_WIDTH - 1]}…",
    )


def _age(created_at: str, now: datetime) -> str:
    try:
        seconds = (now - engine.moment(created_at)).total_seconds()
    except ValueError:
        return "?"
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def _problems(shown: Sequence[Row]) -> int:
    """Names the runs that cannot be read; gives the exit status."""
    broken = [row for row in shown if row.problem]
    for row in broken:
        render.warn(f"run cannot be read: {row.run_id}: {row.problem}")
    return 1 if broken else 0
