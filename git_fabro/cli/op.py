"""``git fabro op``: the operation log, and one entry of it."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import naming, options, pager, render
from git_fabro.errors import NotFoundError
from git_fabro.jobs.history import undo as job
from git_fabro.jobs.history.undo import Logged

Which = Annotated[str, typer.Argument(metavar="OP", help="an id, or a prefix of one")]


def register(app: typer.Typer) -> None:
    app.command("log", context_settings=options.SETTINGS)(log)
    app.command("show", context_settings=options.SETTINGS)(show)


def log(as_json: options.AsJson = False) -> int:
    """List the operations, the newest first."""
    here = naming.here()
    rows = job.logged(here.repository())
    if as_json:
        render.document({"operations": [_json(row) for row in rows]})
        return 0
    pager.begin("op", here.source)
    shown = [
        (row.operation.id, row.entry.at, "undone" if row.undone else "", row.operation.command)
        for row in rows
    ]
    render.table(shown, head=("OPERATION", "AT", "", "COMMAND"))
    return 0


def show(which: Which, as_json: options.AsJson = False) -> int:
    """Show what an operation moved, and where its work tree is kept."""
    here = naming.here()
    rows = job.logged(here.repository())
    found = [row for row in rows if row.operation.id.startswith(which.upper())]
    if len(found) != 1:
        raise NotFoundError(f"no such operation: {render.line(which)}", hint="git fabro op log")
    if as_json:
        render.document(_json(found[0]))
        return 0
    _print(found[0])
    return 0


def _json(row: Logged) -> dict[str, object]:
    operation, change = row.operation, row.operation.work_tree
    return {
        "id": operation.id,
        "at": row.entry.at,
        "command": operation.command,
        "refs": [{"ref": m.ref, "old": m.old, "new": m.new} for m in operation.moves],
        "work_tree": None
        if change is None
        else {"name": change.name, "before": change.before, "after": change.after},
        "undoes": operation.undoes,
        "undone": row.undone,
    }


def _print(row: Logged) -> None:
    operation, change = row.operation, row.operation.work_tree
    rows = [("operation", operation.id), ("command", operation.command), ("at", row.entry.at)]
    rows.append(("undone", "yes" if row.undone else "no"))
    rows += [("ref", f"{move.ref} {move.old} -> {move.new}") for move in operation.moves]
    if change is not None:
        rows.append(("work tree", f"{change.name}: git show --stat {change.before}"))
    render.table(rows)
