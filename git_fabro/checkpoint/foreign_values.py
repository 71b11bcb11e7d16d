"""What the files of Fabro's metadata hold, in all its generations, as our values.

Source: git-fabro-format(5), "Fabro's branches".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.foreign import MANIFEST, Generation, MetaEntry
from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RecordError
from git_fabro.workflow import dot
from git_fabro.workflow.diagnostic import Findings
from git_fabro.workflow.document import Close, EdgeStatement, NodeStatement, Open
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.state import (
    FAIL,
    PARTIAL,
    SUCCESS,
    Failure,
    Json,
    Line,
    Outcome,
    RunState,
)

#: The JSON files of one meta commit that are there, by name.
Documents: TypeAlias = Mapping[str, Json]
#: Nodes with their attributes, and edges.
Drawn: TypeAlias = tuple[dict[str, dict[str, str]], list[tuple[str, str]]]
_Path: TypeAlias = tuple[str, ...]

#: More than this of one JSON file is not read.
LIMIT_BYTES = 16 * 1024 * 1024
#: What stands for a run's end where Fabro did not record how it ended, and where it has none.
ENDED, UNFINISHED = "ended", "unfinished"

_RUN, _START, _STATE = layout.RUN_JSON, layout.START_JSON, layout.CHECKPOINT_JSON
_SAME_WORDS = {"succeeded": SUCCESS, "failed": FAIL, "partially_succeeded": PARTIAL}
_RANK = re.compile(r"[0-9]{3,}-")
_VISIT = re.compile(r"[0-9]{1,9}\Z")
_GOAL = ("graph", "attrs", "goal")

#: Where a value is: file and keys; the first that is there counts.
_PLACES: Mapping[str, Mapping[str, tuple[_Path, ...]]] = {
    "G1": {
        "run_id": ((MANIFEST, "run_id"),),
        "workflow": ((MANIFEST, "workflow_name"),),
        "slug": ((MANIFEST, "workflow_slug"),),
        "goal": ((MANIFEST, "goal"),),
        "created_at": ((MANIFEST, "start_time"),),
        "base_branch": ((MANIFEST, "base_branch"),),
        "base_sha": ((MANIFEST, "base_sha"),),
        "run_branch": ((MANIFEST, "run_branch"),),
    },
    "G2": {
        "run_id": ((_RUN, "run_id"),),
        "workflow": ((_RUN, "graph", "name"),),
        "slug": ((_RUN, "workflow_slug"),),
        "goal": ((_RUN, *_GOAL),),
        "created_at": ((_RUN, "created_at"),),
        "base_branch": ((_RUN, "base_branch"),),
        "base_sha": ((_START, "base_sha"),),
        "run_branch": ((_START, "run_branch"),),
    },
    "G2b": {
        "run_id": ((_START, "run_id"),),
        "goal": ((_STATE, "context_values", "graph.goal"),),
        "created_at": ((_START, "start_time"),),
        "base_sha": ((_START, "base_sha"),),
        "run_branch": ((_START, "run_branch"),),
    },
    "G3": {
        "run_id": ((_RUN, "run_id"),),
        "workflow": ((_RUN, "graph", "name"),),
        "slug": ((_RUN, "workflow_slug"),),
        "goal": ((_RUN, *_GOAL),),
        "base_branch": ((_RUN, "base_branch"),),
    },
    "G4": {
        "run_id": ((_RUN, "spec", "run_id"),),
        "workflow": ((_RUN, "spec", "graph", "name"),),
        "slug": ((_RUN, "spec", "workflow_slug"),),
        "goal": ((_RUN, "spec", *_GOAL),),
        "created_at": ((_RUN, "start", "start_time"),),
        "base_branch": ((_RUN, "spec", "git", "branch"), (_RUN, "spec", "base_branch")),
        "base_sha": ((_RUN, "start", "base_sha"), (_RUN, "spec", "git", "sha")),
        "run_branch": ((_RUN, "start", "run_branch"),),
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a run was made with; "" is not recorded."""

    generation: Generation
    run_id: str = ""
    workflow: str = ""
    slug: str = ""
    goal: str = ""
    created_at: str = ""
    base_branch: str = ""
    base_sha: str = ""
    run_branch: str = ""


def made_with(generation: Generation, documents: Documents) -> Made:
    """What a run was made with, as far as its generation records it."""
    found = {
        name: next((text for path in paths if (text := _text(documents, path))), "")
        for name, paths in _PLACES.get(generation, {}).items()
    }
    return Made(generation=generation, **found)


def files_of(generation: Generation) -> tuple[str, ...]:
    """The JSON files that hold what a run was made with and where it stands."""
    return {
        "G1": (MANIFEST, _STATE),
        "G2": (_RUN, _START, _STATE),
        "G2b": (_START, _STATE),
        "G3": (_RUN, _STATE),
    }.get(generation, (_RUN,))


def state_in(generation: Generation, documents: Documents) -> Json:
    """The JSON value of the state, None before the first checkpoint."""
    if generation == "G4":
        return _at(documents, (_RUN, "checkpoint"))
    return documents.get(_STATE)


def status_of(generation: Generation, documents: Documents, *, is_final: bool) -> str:
    """How a run ended: the word that is stored, or ``ended`` or ``unfinished``.

    ``is_final`` is whether there is a ``finalize run``. What ``status`` says is not believed: it
    says running in runs that have ended.
    """
    if generation == "G4":
        return _text(documents, (_RUN, "conclusion", "status")) or (
            ENDED if _at(documents, (_RUN, "conclusion")) else UNFINISHED
        )
    return ENDED if is_final else UNFINISHED


def in_our_words(status: str) -> str:
    """The word that we have for a status of either vocabulary."""
    return _SAME_WORDS.get(status, status)


def meta_entry(meta: Oid, state: Json) -> MetaEntry:
    """The checkpoint that a meta commit's state stands for.

    Raises:
        RecordError: the state names no node.
    """
    node = _at({_STATE: state}, (_STATE, "current_node"))
    if not isinstance(node, str):
        raise RecordError("the state names no current node")
    visit = _at({_STATE: state}, (_STATE, "node_visits", node))
    status = _text({_STATE: state}, (_STATE, "node_outcomes", node, "status"))
    return MetaEntry(
        meta=meta,
        node=node,
        visit=visit if type(visit) is int else 1,
        status=status or "?",
    )


def run_state(state: Json, *, status: str) -> RunState:
    """A state of Fabro's as ours, its status words as they are stored; ``status`` is the run's.

    Raises:
        RecordError: it is no object, or an outcome is none.
    """
    if not isinstance(state, dict):
        raise RecordError("the state is no object")
    current, following = state.get("current_node"), state.get("next_node_id")
    context = state.get("context_values")
    outcomes = state.get("node_outcomes")
    line = Line(
        current_node=NodeId(current) if isinstance(current, str) else None,
        next_node_id=NodeId(following) if isinstance(following, str) and following else None,
        completed_nodes=_strings(state.get("completed_nodes")),
        node_retries=_counts(state.get("node_retries")),
        node_outcomes={
            node: outcome(value, node)
            for node, value in (outcomes.items() if isinstance(outcomes, dict) else ())
        },
        node_visits=_counts(state.get("node_visits")),
        context_values=context if isinstance(context, dict) else {},
        loop_failure_signatures=_counts(state.get("loop_failure_signatures")),
        restart_failure_signatures=_counts(state.get("restart_failure_signatures")),
    )
    timestamp = state.get("timestamp")
    return RunState(
        status=status, timestamp=timestamp if isinstance(timestamp, str) else "", line=line
    )


def outcome(value: Json, node: str) -> Outcome:
    """What a node came to.

    Raises:
        RecordError: it is no object with a status.
    """
    if not isinstance(value, dict):
        raise RecordError(f"the outcome of {node} is no object")
    status, failure, usage = value.get("status"), value.get("failure"), value.get("usage")
    if not isinstance(status, str):
        raise RecordError(f"the outcome of {node} has no status")
    updates = value.get("context_updates")
    return Outcome(
        status=status,
        context_updates=updates if isinstance(updates, dict) else {},
        preferred_label=_string(value.get("preferred_label")),
        suggested_next_ids=_strings(value.get("suggested_next_ids")),
        failure=_failure(failure) if isinstance(failure, dict) else None,
        notes=_string(value.get("notes")),
        files_touched=_strings(value.get("files_touched")),
        usage=usage if isinstance(usage, dict) else None,
    )


def duration_ms(state: Json, node: str) -> int | None:
    """How long the last visit of a node took; None where it is not recorded."""
    found = _at({_STATE: state}, (_STATE, "node_outcomes", node, "duration_ms"))
    return found if type(found) is int else None


def _failure(value: Mapping[str, Json]) -> Failure:
    return Failure(
        message=_string(value.get("message")),
        failure_class=_string(value.get("failure_class")),
        signature=_string(value.get("failure_signature")),
    )


def graph_json(generation: Generation, documents: Documents) -> Json:
    """The graph of run.json, None where there is none."""
    return _at(documents, (_RUN, "spec", "graph") if generation == "G4" else (_RUN, "graph"))


def graph_in(generation: Generation, documents: Documents) -> Drawn | None:
    """Nodes with their ``type`` and ``shape``, and edges; None where run.json has no graph."""
    graph = graph_json(generation, documents)
    if not isinstance(graph, dict):
        return None
    nodes, edges = graph.get("nodes"), graph.get("edges")
    found: dict[str, dict[str, str]] = {}
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        attributes = {_STATE: node}
        texts = {key: _text(attributes, (_STATE, "attrs", key)) for key in ("type", "shape")}
        found[name] = {key: text for key, text in texts.items() if text}
    pairs = []
    for edge in edges if isinstance(edges, list) else ():
        if isinstance(edge, dict):
            pairs.append((_string(edge.get("from")), _string(edge.get("to"))))
    return found, pairs


def graph_from_dot(source: bytes) -> Drawn:
    """The same of a graph in DOT, as far as it can be read: declared nodes, defaults, edges."""
    document = dot.parse(Findings(layout.GRAPH, source.decode("utf-8", "replace")))
    found: dict[str, dict[str, str]] = {}
    pairs: list[tuple[str, str]] = []
    defaults: list[dict[str, str]] = [{}]
    for statement in document.statements:
        if isinstance(statement, Open):
            defaults.append(dict(defaults[-1]))
        elif isinstance(statement, Close):
            defaults = defaults[:-1] or [{}]
        elif isinstance(statement, EdgeStatement):
            pairs += pairwise(name.id for name in statement.nodes)
        elif isinstance(statement, NodeStatement):
            node = found.setdefault(statement.id, dict(defaults[-1]))
            node.update((one.key, one.text) for one in statement.attributes)
        elif statement.target == "node":
            defaults[-1].update((one.key, one.text) for one in statement.attributes)
    return found, pairs


def trace_folders(
    generation: Generation, *, nodes: Iterable[str], stages: Iterable[str], ranked: bool
) -> dict[tuple[str, int], str]:
    """Where the files of each visit are: ``{("verify", 2): "stages/010-verify@2"}``.

    Args:
        generation: Of the meta commit.
        nodes: The names below ``nodes/``.
        stages: The names below ``stages/``.
        ranked: Whether stages begin with a rank: if run.json has the key ``stages``.
    """
    found: dict[tuple[str, int], str] = {}
    if generation == "G4":
        for name in stages:
            rest = _RANK.sub("", name, count=1) if ranked else name
            node, _, number = rest.rpartition("@")
            if node and _VISIT.match(number):
                found[(node, int(number))] = f"stages/{name}"
        return found
    for name in nodes:
        node, _, number = name.rpartition("-visit_")
        key = (node, int(number)) if node and _VISIT.match(number) else (name, 1)
        found[key] = f"{layout.NODES}/{name}"
    return found


def has_ranks(documents: Documents) -> bool:
    """Whether the names of stages begin with a rank."""
    value = documents.get(_RUN)
    return isinstance(value, dict) and "stages" in value


def _at(documents: Documents, path: _Path) -> Json:
    value: Json = documents.get(path[0])
    for key in path[1:]:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(documents: Documents, path: _Path) -> str:
    """A text; an attribute of a graph is an object with one key, its type: ``{"String": s}``."""
    value = _at(documents, path)
    if isinstance(value, dict) and len(value) == 1:
        (value,) = value.values()
    return _string(value)


def _string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: Json) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _counts(value: Json) -> dict[str, int]:
    pairs = value.items() if isinstance(value, dict) else ()
    return {key: count for key, count in pairs if type(count) is int}
