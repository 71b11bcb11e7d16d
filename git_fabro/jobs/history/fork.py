"""Forking a run: a new one that goes on from a checkpoint, with the history that led there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from git_fabro import forking, importing, opening, reading, workflows
from git_fabro.branches import Source
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import fresh_ulid
from git_fabro.errors import RequestError
from git_fabro.forking import Origin, Workflow
from git_fabro.handlers import table
from git_fabro.importing import Imported
from git_fabro.jobs.history.plan import Place, Target
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import routing, settings
from git_fabro.workflow.engine import context_lookup
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.records import GraphSummary, RunCreated
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Json, Line
from git_fabro.workflows import WorkflowError

_OF_A_WORKFLOW = ("digest", "settings", "graph", "includes", "workflow_slug", "workflow_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a fork starts with instead of what its source had."""

    goal: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    workflow: str | None = None


def fork(place: Place, home: Path, target: Target, changes: Changes) -> RunId:
    """A new run from this checkpoint; its id. Nobody drives it, and ``resume`` works at once.

    Raises:
        WorkflowError: the workflow that was named has errors.
        RequestError: it has no node at which the run could go on.
        RecordError: the checkpoint's metadata does not parse.
        GitError: the repository refuses.
    """
    doors, run = place.doors, RunId(fresh_ulid())
    origin = Origin(
        run=place.run,
        ordinal=target.ordinal,
        run_commit=target.run_commit,
        meta_commit=target.meta_commit,
        goal=changes.goal,
        labels=changes.labels,
    )
    directory, session = RunDirectory.of(home, run), place.session()
    source = Source(doors.repository, doors.objects, doors.refs)
    theirs = importing.branches_at(source, place.run, target.run_commit, target.meta_commit)
    if theirs is None:
        target.known_meta(place.run)
        origin = replace(origin, workflow=_workflow_of_ours(place, target, changes, run))
        forking.fork(doors, origin, run, directory, session)
    else:
        imported = importing.read(source, theirs, target.ordinal)
        imported, workflow = _workflow_of_fabros(place, imported, changes, run)
        origin = replace(origin, workflow=workflow)
        forking.fork_of_fabros(doors, origin, imported, run, directory, session)
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A workflow as far as it is known; ``graph`` None: this program does not admit it."""

    source: bytes
    settings: Settings
    includes: Mapping[str, str]
    slug: str
    file: str
    graph: Graph | None


def _workflow_of_ours(
    place: Place, target: Target, changes: Changes, run: RunId
) -> Workflow | None:
    """What was asked for; None where the fork has its source's workflow."""
    doors = place.doors
    if changes.workflow is None and not changes.inputs:
        return None
    assert target.meta_commit is not None
    if changes.workflow is not None:
        drawn = _named(place, changes.workflow, changes.inputs)
    else:
        drawn = _recorded(place, target, changes.inputs)
    assert drawn.graph is not None
    _check_place(drawn.graph, reading.state_at(doors, target.meta_commit).line, drawn.file)
    return _workflow(place, drawn, run, is_trusted=True)


def _recorded(place: Place, target: Target, inputs: Mapping[str, str]) -> _Drawn:
    """The source's own workflow with other inputs."""
    assert target.meta_commit is not None
    objects = place.doors.objects
    made = codec.parse_json(
        objects.blob_at(target.meta_commit, layout.RUN_JSON) or b"{}", layout.RUN_JSON
    )
    chosen = settings.load(_table(made, "settings"))
    chosen = replace(chosen, variables={**chosen.variables, **inputs})
    source = objects.blob_at(target.meta_commit, layout.GRAPH) or b""
    file = str(made.get("workflow_file") or layout.GRAPH)
    includes = {name: str(text) for name, text in _table(made, "includes").items()}
    kinds = table.own_kinds()
    graph, _ = workflows.readmit(source, file, includes, settings.dump(chosen), kinds=kinds)
    slug = str(made.get("workflow_slug") or "")
    return _Drawn(
        source=source, settings=chosen, includes=includes, slug=slug, file=file, graph=graph
    )


def _table(made: Mapping[str, Json], key: str) -> dict[str, Json]:
    value = made.get(key)
    return {k: v for k, v in value.items() if k != "in_place"} if isinstance(value, dict) else {}


def _named(place: Place, name: str, inputs: Mapping[str, str]) -> _Drawn:
    """The workflow that a person names, with the settings that a run of it would have."""
    repository, folder = place.doors.repository, Path.cwd()
    top = repository.top
    path = workflows.find(name, folder=folder, top=top, environment=place.environment)
    loaded = workflows.load(
        path,
        top=top,
        environment=place.environment,
        kinds=table.own_kinds(),
        command_line=settings.command_line(inputs=inputs),
        default_agent=repository.config("fabro.agent"),
    )
    return _Drawn(
        source=loaded.source,
        settings=loaded.settings,
        includes=loaded.includes,
        slug=loaded.slug,
        file=loaded.path.name,
        graph=loaded.require(),
    )


def _workflow_of_fabros(
    place: Place, imported: Imported, changes: Changes, run: RunId
) -> tuple[Imported, Workflow | None]:
    """The workflow that was named, or Fabro's own; with the state at its place in it."""
    if changes.workflow is not None:
        drawn = _named(place, changes.workflow, changes.inputs)
    elif imported.source is not None:
        drawn = _as_fabro_has_it(place, imported, changes.inputs)
    else:
        return imported, None
    if drawn.graph is not None:
        line = _with_way_out(drawn.graph, imported.state.line, drawn.file)
        imported = replace(imported, state=replace(imported.state, line=line))
    workflow = _workflow(place, drawn, run, is_trusted=changes.workflow is not None)
    return imported, workflow


def _as_fabro_has_it(place: Place, imported: Imported, inputs: Mapping[str, str]) -> _Drawn:
    agent = place.doors.repository.config("fabro.agent")
    chosen = settings.merge([settings.command_line(inputs=inputs, preset=agent)])
    source, file = imported.source or b"", layout.GRAPH
    graph: Graph | None = None
    try:
        kinds = table.own_kinds()
        graph, _ = workflows.readmit(source, file, {}, settings.dump(chosen), kinds=kinds)
    except WorkflowError:
        # The fork is there to be looked at; resume tells what is wrong with the workflow.
        graph = None
    return _Drawn(
        source=source, settings=chosen, includes={}, slug=imported.slug, file=file, graph=graph
    )


def _with_way_out(graph: Graph, line: Line, file: str) -> Line:
    """A line that knows what follows, where Fabro did not record it."""
    _check_place(graph, line, file)
    if line.next_node_id is not None or line.current_node is None:
        return line
    node = graph.nodes[line.current_node]
    if node.id in graph.fan_outs:
        return replace(line, next_node_id=graph.fan_outs[node.id].join)
    outcome, lookup = line.node_outcomes[node.id], context_lookup(line, lambda value: value)
    way = routing.route(graph, node, line, outcome, lookup, draw=0.0)
    return replace(line, next_node_id=way.target, ended="" if way.target else way.reason)


def _check_place(graph: Graph, line: Line, file: str) -> None:
    node = line.next_node_id or line.current_node
    if node is not None and node not in graph.nodes:
        raise RequestError(
            f"the run goes on at a node that the workflow does not have: {node}: {file}",
            hint="git fabro fork --list",
        )


def _workflow(place: Place, drawn: _Drawn, run: RunId, *, is_trusted: bool) -> Workflow:
    """What a fork keeps of its workflow; what a person named is admitted by that."""
    digest = workflows.digest_of(drawn.source, drawn.includes, drawn.settings)
    if is_trusted:
        workflows.admit_digest(place.doors.repository, digest)
    graph, summary = drawn.graph, GraphSummary()
    context: dict[str, Json] = {"internal.run_id": run}
    if graph is not None:
        context = workflows.initial_context(graph, run)
        nodes, edges = len(graph.nodes), len(graph.edges)
        summary = GraphSummary(name=graph.name, goal=graph.goal, nodes=nodes, edges=edges)
    created = RunCreated(
        run_id=run,
        created_at="",
        digest=digest,
        settings=settings.dump(drawn.settings),
        graph=summary,
        includes=drawn.includes,
        workflow_slug=drawn.slug,
        workflow_file=drawn.file,
    )
    made = {key: value for key, value in opening.run_json(created).items() if key in _OF_A_WORKFLOW}
    return Workflow(source=drawn.source, made=made, context=context)
