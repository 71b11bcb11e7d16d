"""``git fabro validate``: all diagnostics of a workflow."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import workflows
from git_fabro.cli import naming, render
from git_fabro.handlers import table
from git_fabro.workflow.diagnostic import Diagnostic


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(validate)


def validate(
    workflow: Annotated[str, typer.Argument(metavar="WORKFLOW", help="a file, or a name")],
    strict: Annotated[bool, typer.Option("--strict", help="warnings are errors")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """Check a workflow and print all diagnostics, sorted by place."""
    doors, environment = naming.doors_or_none(), dict(os.environ)
    top = doors.repository.top if doors is not None else Path.cwd()
    path = workflows.find(workflow, folder=Path.cwd(), top=top, environment=environment)
    loaded = workflows.load(path, top=top, environment=environment, kinds=table.own_kinds())
    found = loaded.diagnostics
    if as_json:
        render.document({"file": str(loaded.path), "diagnostics": [_json(one) for one in found]})
    else:
        for one in found:
            render.out(one.render())
        _count(found)
    severities = {one.severity for one in found}
    return 1 if "error" in severities or (strict and "warning" in severities) else 0


def _count(found: tuple[Diagnostic, ...]) -> None:
    counts = Counter(one.severity for one in found)
    parts = [
        f"{counts[severity]} {severity}{'' if counts[severity] == 1 else 's'}"
        for severity in ("error", "warning", "info")
        if counts[severity]
    ]
    render.say(", ".join(parts) or "no problems")


def _json(one: Diagnostic) -> dict[str, object]:
    return {
        "file": one.file,
        "line": one.place.line,
        "column": one.place.column,
        "severity": one.severity,
        "rule": one.rule,
        "message": one.message,
    }
