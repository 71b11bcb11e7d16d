"""``git fabro show``: all of a run, or of one checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer

from git_fabro import history, states, targets
from git_fabro.branches import LOCAL
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.foreign_values import ENDED, UNFINISHED
from git_fabro.checkpoint.model import Oid
from git_fabro.cli import naming, options, pager, render, terminal
from git_fabro.cli.naming import Here
from git_fabro.doors import Doors
from git_fabro.errors import NotFoundError
from git_fabro.fabroruns import FabroRun
from git_fabro.jobs import look, timeline
from git_fabro.jobs.look import Whole
from git_fabro.place import History, Place
from git_fabro.workflow.state import Json, RunState

_OUTCOME = 2

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN] [TARGET]", help="TARGET: @N, @-1, node@N, node, an object id"),
]
Node = Annotated[
    str | None, typer.Option("--node", metavar="NODE", help="its outcome and trace files")
]
File = Annotated[
    str | None, typer.Option("--file", metavar="NAME", help="a trace file, or one of the metadata")
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="and which engine takes the snapshots, and why")
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="KEY", help="one value of the context")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What was asked for: a run, a checkpoint of it, and the state and metadata of that moment.

    ``theirs`` reads the metadata where Fabro made it; None where it is ours, or there is none.
    ``traces`` is the meta commit that has the trace files.
    """

    whole: Whole
    place: Place | None
    state: RunState
    meta: Oid | None
    traces: Oid | None = None
    theirs: FabroRun | None = None


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(show)


def show(
    words: Words = None,
    run: options.RunOption = None,
    node: Node = None,
    file: File = None,
    context: Context = None,
    color: options.Color = None,
    as_json: options.AsJson = False,
    verbose: Verbose = False,
) -> int:
    """Show all of a run or a checkpoint."""
    place = naming.here()
    shown = _find(place, words or [], run)
    if context is not None:
        _show_value(shown, context, as_json=as_json)
    elif file is not None:
        _show_file(place, shown, node, file)
    elif node is not None:
        _show_node(place.doors, shown, node, as_json=as_json)
    elif as_json:
        render.document(_json(place, shown))
    else:
        coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
        pager.begin("show", place.source)
        more = [("snapshots", _snapshots(place, shown))] if verbose else []
        _print(shown, more, coloured=coloured)
    return 0


def _snapshots(place: Here, shown: Shown) -> str:
    if shown.whole.run_tip is None:
        return "none, as the run is without Git"
    return f"by {look.snapshots_by(place.doors, place.home, shown.whole.run)}"


def _find(place: Here, words: list[str], option: str | None) -> Shown:
    run, text = naming.run_and_target(place, words, option, "show")
    whole = look.look(place.doors, place.home, run)
    is_theirs = whole.made_by == "fabro"
    tip = whole.meta_tip
    if text is None:
        theirs = states.fabros(place.reading(), run, None) if is_theirs else None
        return Shown(
            whole=whole, place=None, state=whole.state, meta=tip, traces=tip, theirs=theirs
        )
    source = place.reading()
    found, said = targets.find(history.timeline_of(source, run), text)
    if said:
        render.say(said)
    meta = found.entry.meta_commit
    if meta is None and is_theirs:
        state = RunState(status=found.entry.status or "?")
        return Shown(whole=whole, place=found, state=state, meta=None)
    return Shown(
        whole=whole,
        place=found,
        state=states.state_at(source, run, found),
        meta=meta,
        traces=tip if is_theirs else meta,
        theirs=states.fabros(source, run, None if is_theirs else meta),
    )


def _show_value(shown: Shown, key: str, *, as_json: bool) -> None:
    values = shown.state.line.context_values
    if key not in values:
        near = render.near(key, list(values))
        raise NotFoundError(
            f"no such context key: {key}",
            hint=f"git fabro show {shown.whole.run} " + (f"--context {near}" if near else "--json"),
        )
    value = values[key]
    if as_json or not isinstance(value, str):
        render.document(value)
    else:
        render.out(value.removesuffix("\n"))


def _show_file(place: Here, shown: Shown, node: str | None, file: str) -> None:
    doors, meta = place.doors, shown.meta if node is None else shown.traces
    path = file if node is None else f"{_folder(shown, node)}/{file}"
    data = doors.objects.blob_at(meta, path) if doors is not None and meta is not None else None
    if data is None:
        raise NotFoundError(
            f"no such file in the metadata: {path}",
            hint=f"git fabro show {shown.whole.run} --node {node}"
            if node
            else f"git ls-tree -r --name-only {meta or shown.whole.run_branch}",
        )
    render.raw(data)


def _folder(shown: Shown, node: str) -> str:
    """Where the trace files of a node are: of the visit that was named, else of the last."""
    ours = f"{layout.NODES}/{node}"
    if shown.theirs is None:
        return ours
    entry = shown.place.entry if shown.place is not None else None
    return shown.theirs.trace_folder(entry, node) or ours


def _show_node(doors: Doors | None, shown: Shown, node: str, *, as_json: bool) -> None:
    outcome = shown.state.line.node_outcomes.get(node)
    if outcome is None:
        known = ", ".join(_ordered(shown.state)) or "none"
        raise NotFoundError(
            f"node has not finished: {node} (finished: {known})",
            hint=f"git fabro show {shown.whole.run}",
        )
    files = list(_trace_files(doors, shown, node))
    if as_json:
        value = {"node": node, "outcome": codec.outcome_to_json(outcome), "files": files}
        render.document(value)
        return
    render.document(codec.outcome_to_json(outcome))
    at = f" {shown.place.entry.name}" if shown.place is not None else ""
    for name in files:
        render.out(f"git fabro show {shown.whole.run}{at} --node {node} --file {name}")


def _trace_files(doors: Doors | None, shown: Shown, node: str) -> Iterator[str]:
    if doors is None or shown.traces is None:
        return
    entry = doors.objects.entry_at(doors.objects.tree_of(shown.traces), _folder(shown, node))
    for name in sorted(doors.objects.read_tree(entry.oid)) if entry is not None else ():
        yield name.decode("utf-8", "replace")


def _json(place: Here, shown: Shown) -> dict[str, object]:
    """The run, the state, and the checkpoint: the one that was named, else the last."""
    whole, found = shown.whole, shown.place
    told = None
    if place.source is not None and (whole.run_tip or whole.meta_tip):
        told = history.timeline_of(place.source, whole.run)
        found = found or next(told.places(), None)
    return {
        "run": dict(whole.made_with) | {"status": whole.status},
        "state": _state_json(shown),
        "checkpoint": _checkpoint_json(told, found),
    }


def _checkpoint_json(told: History | None, found: Place | None) -> dict[str, object] | None:
    if told is None or found is None:
        return None
    return timeline.checkpoint(told, found).to_json()


def _state_json(shown: Shown) -> Json:
    """The state as it is stored; of ours with the run commit, which it cannot know."""
    if shown.whole.made_by == "fabro" or shown.theirs is not None:
        entry = shown.place.entry if shown.place is not None else None
        return shown.theirs.state_json(entry) if shown.theirs is not None else None
    commit = shown.place.entry.run_commit if shown.place is not None else shown.whole.run_tip
    return codec.state_to_json(shown.state, git_commit_sha=commit)


def _print(shown: Shown, more: list[tuple[str, str]], *, coloured: bool) -> None:
    whole, state = shown.whole, shown.state
    rows = [*_run_rows(whole)]
    if shown.place is not None:
        rows += _checkpoint_rows(shown.place)
    rows += more
    rows.append(("next", state.line.next_node_id or "nothing"))
    render.table(rows)
    render.out()
    render.table(
        list(_outcomes(state)),
        head=("NODE", "VISITS", "OUTCOME", "REASON"),
        colour=_OUTCOME if coloured else None,
    )
    for question, gate in sorted(state.gates.items()):
        if gate.answer is None:
            render.out()
            for text in terminal.question_lines(question, gate):
                render.out(text)


def _run_rows(whole: Whole) -> Iterator[tuple[str, str]]:
    made = whole.made_with
    reason = f": {whole.state.reason}" if whole.state.reason else ""
    yield "run", whole.run
    if whole.made_by != "git-fabro":
        yield "made by", f"{whole.made_by} ({made.get('generation', 'no metadata')})"
    if whole.origin != LOCAL:
        yield "origin", whole.origin
    yield "status", f"{_ending(whole)}{reason}"
    yield "workflow", str(made.get("workflow_file") or made.get("slug") or made.get("workflow", ""))
    goal = whole.state.line.context_values.get("graph.goal") or made.get("goal", "")
    yield "goal", str(goal)
    yield "created", str(made.get("created_at", ""))
    yield "checkpoints", str(whole.ordinal)
    if whole.run_tip is not None:
        yield "branch", whole.run_branch
        yield "run tip", whole.run_tip
    if whole.meta_tip is not None or whole.run_tip is not None:
        yield "meta tip", whole.meta_tip or "none"


def _ending(whole: Whole) -> str:
    """The status; of Fabro's runs whether they ended, and how, where that is recorded."""
    if whole.made_by == "git-fabro" or whole.status in (ENDED, UNFINISHED):
        return whole.status
    return f"{ENDED}, {whole.status}"


def _checkpoint_rows(place: Place) -> list[tuple[str, str]]:
    entry = place.entry
    what = "snapshot" if entry.kind == "snapshot" else "commit"
    if entry.node is not None:
        what = f"{entry.node}@{entry.visit} ({entry.status})"
    meta = entry.meta_commit or entry.named_meta_commit
    return [
        ("checkpoint", f"{entry.name} {what}"),
        ("run commit", entry.run_commit or "none"),
        ("meta commit", f"{meta} (link: {entry.link})" if meta else f"none (link: {entry.link})"),
    ]


def _outcomes(state: RunState) -> Iterator[tuple[str, str, str, str]]:
    for name in _ordered(state):
        outcome = state.line.node_outcomes[name]
        reason = outcome.failure.message if outcome.failure is not None else ""
        yield name, str(state.line.node_visits.get(name, 1)), outcome.text, reason


def _ordered(state: RunState) -> list[str]:
    """The nodes that have finished, in the order of their first visits."""
    outcomes = state.line.node_outcomes
    first = [name for name in dict.fromkeys(state.line.completed_nodes) if name in outcomes]
    return [*first, *(name for name in outcomes if name not in first)]
