"""``git fabro validate``: all diagnostics of a workflow."""

from __future__ import annotations

import os
from collections import Counter
from typing import Annotated

import typer

from git_fabro import workflows
from git_fabro.cli import naming, options, render
from git_fabro.handlers import table
from git_fabro.workflow.diagnostic import Diagnostic

Strict = Annotated[bool, typer.Option("--strict", help="warnings are errors")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(validate)


def validate(
    workflow: options.Workflow, strict: Strict = False, as_json: options.AsJson = False
) -> int:
    """Check a workflow and print all diagnostics, sorted by place."""
    place = naming.here()
    top, environment = place.top, place.environment
    path = workflows.find(workflow, folder=place.folder, top=top, environment=environment)
    loaded = workflows.load(path, top=top, environment=environment, kinds=table.own_kinds())
    found = loaded.diagnostics
    if as_json:
        file = os.path.relpath(loaded.path)
        render.document({"file": file, "diagnostics": [_json(one) for one in found]})
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
