"""``git fabro workflow``: what workflows there are, and a scaffold for a new one."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import workflows
from git_fabro.cli import naming, render
from git_fabro.errors import ConflictError, RequestError
from git_fabro.handlers import table

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_SCAFFOLD = """\
// {name}: edit me. git fabro validate {name}; git fabro run {name}
digraph {identifier} {{
    goal="Say what this workflow is to achieve"

    start [shape=Mdiamond]
    exit  [shape=Msquare]

    build [shape=parallelogram, script="echo building"]
    test  [shape=parallelogram, script="echo testing"]
    fix   [shape=parallelogram, max_visits=3, script="echo fixing"]

    start -> build -> test
    test -> exit [condition="outcome=success"]
    test -> fix  [condition="outcome!=success"]
    fix -> test
}}
"""


def register(app: typer.Typer) -> None:
    settings = {"help_option_names": ["-h"]}
    app.command("list", context_settings=settings)(list_workflows)
    app.command("create", context_settings=settings)(create)


def list_workflows(
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """List the workflows that can be named here."""
    rows = []
    for name, path in sorted(_found().items()):
        loaded = workflows.load(
            path, top=_top(), environment=dict(os.environ), kinds=table.own_kinds()
        )
        goal = loaded.graph.goal if loaded.graph is not None else "(has errors)"
        rows.append({"name": name, "file": os.path.relpath(path), "goal": goal})
    if as_json:
        render.document({"workflows": rows})
        return 0
    for text in render.columns([(row["name"], row["file"], row["goal"]) for row in rows]):
        render.out(text)
    if not rows:
        render.say("no workflows here")
        render.hint("git fabro workflow create NAME")
    return 0


def _top() -> Path:
    doors = naming.doors_or_none()
    return doors.repository.top if doors is not None else Path.cwd()


def _found() -> dict[str, Path]:
    """Workflows by name; of two of one name the nearest."""
    found: dict[str, Path] = {}
    for place in workflows.places(_top(), dict(os.environ)):
        for folder in sorted(place.glob("*/")):
            try:
                path = workflows.find(
                    folder.name, folder=Path.cwd(), top=_top(), environment=dict(os.environ)
                )
            except RequestError:
                continue
            found.setdefault(folder.name, path)
    return found


def create(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """Create a workflow that runs as it is."""
    if not _NAME.match(name):
        raise RequestError(f"not a workflow name: {name}", hint="use letters, digits, - and _")
    path = _top() / "fabro/workflows" / name / "workflow.fabro"
    if path.exists():
        raise ConflictError(f"workflow exists: {os.path.relpath(path)}")
    identifier = "".join(part.capitalize() for part in re.split(r"[-_]", name)) or "Workflow"
    identifier = identifier if identifier[0].isalpha() else f"W{identifier}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SCAFFOLD.format(name=name, identifier=identifier))
    except OSError as exc:
        raise RequestError(f"cannot write: {path}: {exc.strerror}") from exc
    if as_json:
        render.document({"name": name, "file": os.path.relpath(path)})
    else:
        render.out(f"created {os.path.relpath(path)}")
        render.hint(f"git fabro run {name}")
    return 0
