"""``git fabro show``: all of a run, or of one checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from git_fabro import reading
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid
from git_fabro.cli import naming, options, pager, render, target, terminal
from git_fabro.cli.naming import Here
from git_fabro.doors import Doors
from git_fabro.errors import NotFoundError
from git_fabro.jobs import look
from git_fabro.jobs.look import Found, Whole
from git_fabro.workflow.state import RunState

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
    """What was asked for: a run, a checkpoint of it, and the state and metadata of that moment."""

    whole: Whole
    found: Found | None
    state: RunState
    meta: Oid | None


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
        render.document(_json(place.doors, shown))
    else:
        coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
        pager.begin("show", place.doors)
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
    if text is None:
        return Shown(whole=whole, found=None, state=whole.state, meta=whole.meta_tip)
    doors = place.repository()
    found, said = target.resolve(
        text,
        look.timeline(doors, run),
        lambda: look.interior(doors, place.home, run),
        run,
    )
    if said is not None:
        render.say(said)
    if found.meta_commit is None:
        raise NotFoundError(
            f"no metadata for checkpoint @{found.ordinal} (link: {found.link}): {run}",
            hint=f"git show {found.run_commit}",
        )
    state = reading.state_at(doors, found.meta_commit)
    return Shown(whole=whole, found=found, state=state, meta=found.meta_commit)


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
    doors, meta = place.doors, shown.meta
    path = layout.node_path(node, file) if node is not None else file
    data = doors.objects.blob_at(meta, path) if doors is not None and meta is not None else None
    if data is None:
        raise NotFoundError(
            f"no such file in the metadata: {path}",
            hint=f"git fabro show {shown.whole.run} --node {node}"
            if node
            else f"git ls-tree -r --name-only fabro/meta/{shown.whole.run}",
        )
    render.raw(data)


def _show_node(doors: Doors | None, shown: Shown, node: str, *, as_json: bool) -> None:
    outcome = shown.state.line.node_outcomes.get(node)
    if outcome is None:
        known = ", ".join(_ordered(shown.state)) or "none"
        raise NotFoundError(
            f"node has not finished: {node} (finished: {known})",
            hint=f"git fabro show {shown.whole.run}",
        )
    files = list(_trace_files(doors, shown.meta, node))
    if as_json:
        value = {"node": node, "outcome": codec.outcome_to_json(outcome), "files": files}
        render.document(value)
        return
    render.document(codec.outcome_to_json(outcome))
    at = f" @{shown.found.ordinal}" if shown.found is not None else ""
    for name in files:
        render.out(f"git fabro show {shown.whole.run}{at} --node {node} --file {name}")


def _trace_files(doors: Doors | None, meta: Oid | None, node: str) -> Iterator[str]:
    if doors is None or meta is None:
        return
    entry = doors.objects.entry_at(doors.objects.tree_of(meta), f"{layout.NODES}/{node}")
    for name in sorted(doors.objects.read_tree(entry.oid)) if entry is not None else ():
        yield name.decode("utf-8", "replace")


def _json(doors: Doors | None, shown: Shown) -> dict[str, object]:
    """The run, the state, and the checkpoint: the one that was named, else the last."""
    whole, found = shown.whole, shown.found
    if doors is not None and found is None and whole.run_tip is not None:
        timeline = look.timeline(doors, whole.run)
        found = timeline[-1] if timeline else None
    commit = shown.found.run_commit if shown.found is not None else whole.run_tip
    return {
        "run": dict(whole.made_with) | {"status": whole.status},
        "state": codec.state_to_json(shown.state, git_commit_sha=commit),
        "checkpoint": asdict(look.checkpoint(doors, found))
        if doors is not None and found
        else None,
    }


def _print(shown: Shown, more: list[tuple[str, str]], *, coloured: bool) -> None:
    whole, state, made = shown.whole, shown.state, shown.whole.made_with
    reason = f": {whole.state.reason}" if whole.state.reason else ""
    rows = [
        ("run", whole.run),
        ("status", f"{whole.status}{reason}"),
        ("workflow", str(made.get("workflow_file", ""))),
        ("goal", str(state.line.context_values.get("graph.goal", ""))),
        ("created", str(made.get("created_at", ""))),
        ("checkpoints", str(whole.ordinal)),
    ]
    if whole.run_tip is not None:
        rows += [("branch", f"fabro/run/{whole.run}"), ("run tip", whole.run_tip)]
        rows.append(("meta tip", whole.meta_tip or "none"))
    if shown.found is not None:
        rows += _checkpoint_rows(shown.found)
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


def _checkpoint_rows(found: Found) -> list[tuple[str, str]]:
    what = f"{found.said.node}@{found.said.visit} ({found.said.status})" if found.said else "commit"
    return [
        ("checkpoint", f"@{found.ordinal} {what}"),
        ("run commit", found.run_commit),
        ("meta commit", f"{found.meta_commit or found.named_meta_commit} (link: {found.link})"),
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
