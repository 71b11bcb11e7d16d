"""``git fabro graph``: a workflow or a run, drawn."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import reading, rundir, workflows
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import naming, render
from git_fabro.doors import Doors
from git_fabro.errors import GitError, NotFoundError, RequestError
from git_fabro.handlers import table
from git_fabro.jobs import drawing, look
from git_fabro.jobs.run.resume import recorded_at
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.state import RunState


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(graph)


def graph(
    what: Annotated[str, typer.Argument(metavar="WORKFLOW|RUN")],
    svg: Annotated[bool, typer.Option("--svg", help="as SVG, by Graphviz")] = False,
    png: Annotated[bool, typer.Option("--png", help="as PNG, by Graphviz")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="as DOT, for Graphviz")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="nodes and edges as one JSON document")
    ] = False,
) -> int:
    """Draw the graph of a workflow, or of a run with what has happened so far."""
    if svg + png + dot + as_json > 1:
        raise RequestError("choose one of --svg, --png, --dot and --json")
    shown, state = _named(what)
    if as_json:
        render.document(drawing.document(shown, state))
    elif svg or png:
        render.raw(_graphviz(drawing.dot(shown, state), "svg" if svg else "png"))
    elif dot:
        render.raw(drawing.dot(shown, state).encode())
    else:
        for text in drawing.text(shown, state):
            render.out(text)
    return 0


def _named(what: str) -> tuple[Graph, RunState | None]:
    doors, environment = naming.doors_or_none(), dict(os.environ)
    top = doors.repository.top if doors is not None else Path.cwd()
    try:
        path = workflows.find(what, folder=Path.cwd(), top=top, environment=environment)
    except NotFoundError:
        if doors is None:
            raise
        home = rundir.home(doors.repository, Path.cwd(), environment)
        return _of_run(doors, home, naming.find_run(doors, home, what))
    loaded = workflows.load(path, top=top, environment=environment, kinds=table.own_kinds())
    return loaded.require(), None


def _of_run(doors: Doors, home: Path, run: RunId) -> tuple[Graph, RunState]:
    meta = reading.tips_of(doors, run).meta_tip
    if meta is None:
        raise NotFoundError(f"the run has no metadata here: {run}")
    drawn, _ = recorded_at(doors, meta).admit()
    return drawn, look.look(doors, home, run).state


def _graphviz(text: str, form: str) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise RequestError(
            "Graphviz is not installed", hint="install graphviz, or use git fabro graph --dot"
        )
    done = subprocess.run(
        [program, f"-T{form}"], input=text.encode(), capture_output=True, check=False
    )
    if done.returncode != 0:
        raise GitError(f"dot failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout
