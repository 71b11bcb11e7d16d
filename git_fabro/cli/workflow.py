"""``git fabro workflow``: what workflows there are, and a scaffold for a new one."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import tomli_w
import typer

from git_fabro import workflows
from git_fabro.cli import naming, options, render
from git_fabro.cli.naming import Here
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


Nul = Annotated[bool, typer.Option("-z", help="only names, each ended by a NUL")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="letters, digits, - and _")]


def register(app: typer.Typer) -> None:
    app.command("list", context_settings=options.SETTINGS)(list_workflows)
    app.command("create", context_settings=options.SETTINGS)(create)


def list_workflows(nul: Nul = False, as_json: options.AsJson = False) -> int:
    """List the workflows that can be named here."""
    place = naming.here()
    rows = [_row(place, name, path) for name, path in sorted(_found(place).items())]
    if as_json:
        render.document({"workflows": rows})
        return 0
    if nul:
        render.names([row["name"] for row in rows], nul=True)
        return 0
    render.table([(row["name"], row["file"], row["goal"]) for row in rows])
    if not rows:
        render.say("no workflows here")
        render.hint("git fabro workflow create NAME")
    return 0


def _row(place: Here, name: str, path: Path) -> dict[str, str]:
    kinds = table.own_kinds()
    try:
        loaded = workflows.load(path, top=place.top, environment=place.environment, kinds=kinds)
    except RequestError as exc:
        return {"name": name, "file": os.path.relpath(path), "goal": f"({exc.message})"}
    goal = loaded.graph.goal if loaded.graph is not None else "(has errors)"
    return {"name": name, "file": os.path.relpath(path), "goal": goal}


def _found(place: Here) -> dict[str, Path]:
    """Workflows by name; of two of one name the nearest."""
    found: dict[str, Path] = {}
    top, environment = place.top, place.environment
    for where in workflows.places(top, environment):
        for name in sorted(one.name for one in where.glob("*/")):
            try:
                path = workflows.find(name, folder=where, top=top, environment=environment)
            except RequestError:
                # A folder without a workflow in it.
                continue
            found.setdefault(name, path)
    return found


def create(
    name: Name,
    as_json: options.AsJson = False,
) -> int:
    """Create a workflow that runs as it is."""
    if not _NAME.match(name):
        raise RequestError(
            f"not a workflow name: {name}; letters, digits, - and _ make one",
            hint="git fabro workflow create NAME",
        )
    path = naming.here().top / "fabro/workflows" / name / "workflow.fabro"
    if path.exists():
        raise ConflictError(
            f"workflow exists: {os.path.relpath(path)}", hint=f"git fabro validate {name}"
        )
    identifier = "".join(part.capitalize() for part in re.split(r"[-_]", name)) or "Workflow"
    identifier = identifier if identifier[0].isalpha() else f"W{identifier}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SCAFFOLD.format(name=name, identifier=identifier))
        settings = path.with_name("workflow.toml")
        settings.write_text(tomli_w.dumps({"version": 1, "graph": path.name}))
    except OSError as exc:
        raise RequestError(f"cannot write: {path}: {exc.strerror}") from exc
    if as_json:
        render.document({"name": name, "file": os.path.relpath(path)})
    else:
        render.out(f"created {os.path.relpath(path)} and {settings.name} beside it")
        render.hint(f"git fabro run {name}")
    return 0
