"""``git fabro list``: the runs of a repository."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.cli import driving, naming, render
from git_fabro.jobs import look
from git_fabro.jobs.look import Row
from git_fabro.workflow import engine
from git_fabro.workflow.state import APPLIED, PARTIAL, SUCCESS

_OVER = frozenset({SUCCESS, PARTIAL, APPLIED})
_HEAD = ("RUN", "STATUS", "WORKFLOW", "NODE", "CHECKPOINTS", "AGE", "GOAL")
_GOAL_WIDTH = 60


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(list_runs)


def list_runs(
    show_all: Annotated[bool, typer.Option("-a", "--all", help="ended ones too")] = False,
    workflow: Annotated[str | None, typer.Option(help="only runs of this workflow")] = None,
    labels: Annotated[
        list[str], typer.Option("--label", metavar="K=V", help="only runs with this label")
    ] = [],  # noqa: B006
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="only runs made before (RFC 3339, or a date)")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="ids only")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """List runs: those that can go on, or all."""
    doors = naming.doors_or_none()
    home = rundir.home(doors.repository if doors else None, Path.cwd(), driving.environment())
    wanted = driving.pairs(labels, "--label")
    rows = [look.row(doors, home, run) for run in reversed(naming.all_runs(doors, home))]
    shown = [
        row
        for row in rows
        if (show_all or row.status not in _OVER)
        and (workflow is None or row.workflow == workflow)
        and (before is None or row.created_at < before)
        and all(row.labels.get(key) == value for key, value in wanted.items())
    ]
    if as_json:
        render.document({"runs": [_json(row) for row in shown]})
    elif quiet:
        for row in shown:
            render.out(row.run_id)
    elif shown:
        for text in render.columns([_cells(row) for row in shown], head=_HEAD):
            render.out(text)
    for row in shown:
        if row.problem:
            render.warn(f"{row.run_id}: {row.problem}")
    return 1 if any(row.problem for row in shown) else 0


def _json(row: Row) -> dict[str, object]:
    return {key: value for key, value in asdict(row).items() if key != "problem"}


def _cells(row: Row) -> tuple[str, ...]:
    goal = row.goal.split("\n")[0]
    goal = goal if len(goal) <= _GOAL_WIDTH else f"{goal[: _GOAL_WIDTH - 1]}…"
    return (
        row.run_id,
        row.status,
        row.workflow,
        row.node or "",
        str(row.checkpoints),
        _age(row.created_at),
        goal,
    )


def _age(created_at: str) -> str:
    try:
        seconds = (datetime.now(UTC) - engine.moment(created_at)).total_seconds()
    except ValueError:
        return "?"
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"
