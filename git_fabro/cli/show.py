"""``git fabro show``: all of a run, or of one checkpoint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import reading, rundir
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.cli import driving, naming, render
from git_fabro.doors import Doors
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.jobs import look
from git_fabro.jobs.look import Found, Whole
from git_fabro.workflow.state import Json, RunState

_ORDINAL = re.compile(r"@(?P<number>-?[0-9]+)\Z")


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(show)


def show(
    words: Annotated[
        list[str], typer.Argument(metavar="[RUN] [TARGET]", help="TARGET: @N, @-1, node@N, node")
    ] = [],  # noqa: B006
    run: Annotated[str | None, typer.Option(help="the run")] = None,
    node: Annotated[
        str | None, typer.Option(help="what a node came to, and its trace files")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="a trace file of --node, or a file of the metadata"),
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="KEY", help="one value of the context")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """Show all of a run or a checkpoint."""
    doors = naming.doors_or_none()
    home = rundir.home(doors.repository if doors else None, Path.cwd(), driving.environment())
    chosen, target = _named(doors, home, words, run)
    whole = look.look(doors, home, chosen)
    found = _checkpoint(doors, chosen, target) if doors is not None and target else None
    state = whole.state
    meta = whole.meta_tip
    if found is not None and found.meta_commit is not None and doors is not None:
        meta = found.meta_commit
        state = reading.state_at(doors, meta)
    if context is not None:
        return _show_value(state, context, as_json=as_json)
    if file is not None:
        return _show_file(doors, meta, node, file)
    if as_json:
        render.document(_json(whole, state, found))
        return 0
    if node is not None:
        return _show_node(doors, meta, state, node)
    _print(whole, state, found)
    return 0


def _named(
    doors: Doors | None, home: Path, words: list[str], run: str | None
) -> tuple[RunId, str | None]:
    if len(words) > 2 or (run is not None and len(words) > 1):
        raise RequestError("too many arguments", hint="git fabro show RUN TARGET")
    if run is not None or len(words) == 2:
        text = run if run is not None else words[0]
        return naming.find_run(doors, home, text), words[-1] if words else None
    if words and not words[0].startswith("@"):
        try:
            return naming.find_run(doors, home, words[0]), None
        except NotFoundError:
            return naming.find_run(doors, home, None), words[0]
    return naming.find_run(doors, home, None), words[0] if words else None


def _checkpoint(doors: Doors, run: RunId, target: str) -> Found:
    """The checkpoint that a target names.

    Raises:
        NotFoundError: none is meant by it.
    """
    found = look.timeline(doors, run)
    match = _ORDINAL.match(target)
    if match is not None:
        number = int(match["number"])
        number = len(found) + 1 + number if number < 0 else number
        if not 1 <= number <= len(found):
            raise NotFoundError(
                f"ordinal {target} out of range (max @{len(found)}): {run}",
                hint=f"git log fabro/run/{run}",
            )
        return found[number - 1]
    node, _, visit = target.rpartition("@")
    if not node or not visit.isdigit():
        node, visit = target, ""
    for one in reversed(found):
        if one.run_commit.startswith(target) or (one.meta_commit or "").startswith(target):
            return one
        if one.said and one.said.node == node and visit in ("", str(one.said.visit)):
            return one
    raise NotFoundError(f"no checkpoint found for node '{target}'", hint=f"git log fabro/run/{run}")


def _show_value(state: RunState, key: str, *, as_json: bool) -> int:
    values = state.line.context_values
    if key not in values:
        raise NotFoundError(f"no such context key: {key}", hint="git fabro show --json")
    value: Json = values[key]
    if as_json or not isinstance(value, str):
        render.document(value)
    else:
        render.out(value)
    return 0


def _show_file(doors: Doors | None, meta: Oid | None, node: str | None, file: str) -> int:
    path = layout.node_path(node, file) if node is not None else file
    data = doors.objects.blob_at(meta, path) if doors is not None and meta is not None else None
    if data is None:
        raise NotFoundError(
            f"no such file in the metadata: {path}", hint="git fabro show --node NODE"
        )
    render.raw(data)
    return 0


def _show_node(doors: Doors | None, meta: Oid | None, state: RunState, node: str) -> int:
    outcome = state.line.node_outcomes.get(node)
    if outcome is None:
        known = ", ".join(state.line.node_outcomes)
        raise NotFoundError(f"node has not finished: {node} (finished: {known})")
    render.document(codec.outcome_to_json(outcome))
    if doors is None or meta is None:
        return 0
    entry = doors.objects.entry_at(doors.objects.tree_of(meta), f"{layout.NODES}/{node}")
    for name in sorted(doors.objects.read_tree(entry.oid)) if entry is not None else ():
        render.out(f"git show {meta[:12]}:{layout.NODES}/{node}/{name.decode('utf-8', 'replace')}")
    return 0


def _json(whole: Whole, state: RunState, found: Found | None) -> dict[str, object]:
    return {
        "run": dict(whole.made_with) | {"status": whole.status},
        "state": codec.state_to_json(state, git_commit_sha=_commit(whole, found)),
        "checkpoint": entry(found) if found is not None else None,
    }


def _commit(whole: Whole, found: Found | None) -> Oid | None:
    return found.run_commit if found is not None else whole.run_tip


def entry(found: Found) -> dict[str, object]:
    """A checkpoint as JSON."""
    said = found.said
    return {
        "ordinal": found.ordinal,
        "kind": "node" if said else "commit",
        "node": said.node if said else None,
        "visit": said.visit if said else None,
        "status": said.status if said else None,
        "run_commit": found.run_commit,
        "meta_commit": found.meta_commit,
    }


def _print(whole: Whole, state: RunState, found: Found | None) -> None:
    line, made = state.line, whole.made_with
    rows = [
        ("run", whole.run),
        ("status", f"{whole.status}{': ' + state.reason if state.reason else ''}"),
        ("workflow", str(made.get("workflow_file", ""))),
        ("goal", str(line.context_values.get("graph.goal", ""))),
        ("created", str(made.get("created_at", ""))),
        ("checkpoints", str(whole.ordinal)),
        ("run tip", whole.run_tip or "none"),
        ("meta tip", whole.meta_tip or "none"),
        ("next", line.next_node_id or "nothing"),
    ]
    if found is not None:
        rows.append(("checkpoint", f"@{found.ordinal} {found.run_commit} {found.meta_commit}"))
    for text in render.columns(rows):
        render.out(text)
    render.out()
    outcomes = [
        (name, str(line.node_visits.get(name, 1)), outcome.text, _reason(outcome.failure))
        for name, outcome in line.node_outcomes.items()
    ]
    for text in render.columns(outcomes, head=("NODE", "VISITS", "OUTCOME", "REASON")):
        render.out(text)
    for question, gate in sorted(state.gates.items()):
        if gate.answer is None:
            render.out(f"\n{question} asks: {gate.text}")


def _reason(failure: object) -> str:
    return str(getattr(failure, "message", ""))
