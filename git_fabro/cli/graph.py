"""``git fabro graph``: a workflow or a run, drawn."""

from __future__ import annotations

import shutil
import subprocess
from typing import Annotated

import typer

from git_fabro import reading, workflows
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import naming, options, pager, render
from git_fabro.cli.naming import Here
from git_fabro.errors import GitError, NotFoundError, RequestError
from git_fabro.handlers import table
from git_fabro.jobs import drawing, look
from git_fabro.jobs.run.resume import Recorded, recorded_at
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.state import RunState

What = Annotated[str, typer.Argument(metavar="WORKFLOW|RUN", help="a workflow, or a run of one")]
Svg = Annotated[bool, typer.Option("--svg", help="as SVG, by Graphviz")]
Png = Annotated[bool, typer.Option("--png", help="as PNG, by Graphviz")]
Dot = Annotated[bool, typer.Option("--dot", help="as DOT, for Graphviz")]
AsJson = Annotated[bool, typer.Option("--json", help="nodes and edges as one JSON document")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(graph)


def graph(
    what: What,
    svg: Svg = False,
    png: Png = False,
    dot: Dot = False,
    color: options.Color = None,
    as_json: AsJson = False,
) -> int:
    """Draw the graph of a workflow, or of a run with what has happened so far."""
    if svg + png + dot + as_json > 1:
        raise RequestError("choose one of --svg, --png, --dot, --json", hint="git fabro graph -h")
    place = naming.here()
    shown, state = _named(place, what)
    if as_json:
        render.document(drawing.document(shown, state))
    elif svg or png:
        render.raw(_graphviz(drawing.dot(shown, state), "svg" if svg else "png", what))
    elif dot:
        render.raw(drawing.dot(shown, state).encode())
    else:
        coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
        pager.begin("graph", place.source)
        for parts in drawing.text(shown, state):
            render.painted(parts if coloured else [(text, "") for text, _ in parts])
    return 0


def _named(place: Here, what: str) -> tuple[Graph, RunState | None]:
    """The graph of a workflow by its file or name, else that of a run with its state."""
    top, environment = place.top, place.environment
    try:
        path = workflows.find(what, folder=place.folder, top=top, environment=environment)
    except NotFoundError as exc:
        try:
            return _of_run(place, naming.find_run(place, what))
        except NotFoundError:
            raise exc from None
    loaded = workflows.load(path, top=top, environment=environment, kinds=table.own_kinds())
    return loaded.require(), None


def _of_run(place: Here, run: RunId) -> tuple[Graph, RunState]:
    drawn, _ = _recorded(place, run).admit()
    return drawn, look.look(place.doors, place.home, run).state


def _recorded(place: Here, run: RunId) -> Recorded:
    """What a run was made with: from its metadata, or from the run directory of one without Git."""
    meta = reading.tips_of(place.doors, run).meta_tip if place.doors is not None else None
    if place.doors is not None and meta is not None:
        return recorded_at(place.doors, meta)
    directory = RunDirectory.of(place.home, run)
    source, made = directory.read(layout.GRAPH), directory.read(layout.RUN_JSON)
    if source is None or made is None:
        raise RequestError(f"the run has no metadata here: {run}", hint="git fabro list -a")
    return Recorded(source=source, values=codec.parse_json(made, layout.RUN_JSON))


def _graphviz(text: str, form: str, what: str) -> bytes:
    program = shutil.which("dot")
    if program is None:
        raise RequestError(
            "Graphviz is not installed: no dot on PATH", hint=f"git fabro graph --dot {what}"
        )
    done = subprocess.run(
        [program, f"-T{form}"], input=text.encode(), capture_output=True, check=False
    )
    if done.returncode != 0:
        raise GitError(f"dot failed: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout
