"""Records and states to canonical JSON and back. The only place that sees values of unknown type.

Source: git-fabro-format(5), "Records" and "State".
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from git_fabro.checkpoint import layout, shape
from git_fabro.checkpoint.canonical import canonical as canonical
from git_fabro.checkpoint.canonical import document as document
from git_fabro.checkpoint.canonical import parse_json as parse_json
from git_fabro.errors import RecordError
from git_fabro.workflow import records
from git_fabro.workflow.records import Record, Unknown
from git_fabro.workflow.state import (
    EVENT_CONTRACT,
    Branch,
    Line,
    Outcome,
    Position,
    RunState,
)

LINE_LIMIT_BYTES = 4 * 1024 * 1024
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
_KINDS: Mapping[str, Any] = {kind.kind: kind for kind in typing.get_args(records.Known)}


def record_to_json(record: Record) -> dict[str, Any]:
    """A record as its JSON object."""
    event = record.event
    if isinstance(event, Unknown):
        data: dict[str, Any] = dict(event.data)
    else:
        data = {
            field.name.rstrip("_"): _encode(getattr(event, field.name))
            for field in dataclasses.fields(event)
        }
    found: dict[str, Any] = {
        "at": record.at,
        "data": {**record.extra, **data},
        "kind": event.kind,
        "origin": event.origin,
        "seq": record.seq,
    }
    if record.position is not None:
        found["position"] = _position_to_json(record.position)
    return found


def record_from_json(value: Any, where: str = layout.RECORDS) -> Record:
    """A record from its JSON object.

    Raises:
        RecordError: it does not parse, or is of a later contract.
    """
    if not isinstance(value, dict):
        raise RecordError(f"{where}: not an object")
    seq, at, kind = value.get("seq"), value.get("at"), value.get("kind")
    data, origin = value.get("data"), value.get("origin")
    if type(seq) is not int or seq < 1 or not isinstance(at, str) or not _AT.match(at):
        raise RecordError(f"{where}: seq or at is wrong")
    if not isinstance(kind, str) or not isinstance(data, dict) or not isinstance(origin, str):
        raise RecordError(f"{where}: kind, data or origin is wrong")
    position = _position_from_json(value["position"], where) if "position" in value else None
    where = f"{where}: record {seq} ({kind})"
    contract = data.get("contract", EVENT_CONTRACT)
    if type(contract) is not int or contract > EVENT_CONTRACT:
        raise RecordError(
            f"{where}: written by contract {contract!r}, this program reads {EVENT_CONTRACT}",
            hint="install a newer git-fabro",
        )
    event_type = _KINDS.get(kind)
    if event_type is None:
        event: Any = Unknown(kind=kind, origin=origin, data=data)
        return Record(seq=seq, at=at, event=event, position=position)
    event = shape.from_json(event_type, _outcome_in(data, where), where)
    known = shape.known_keys(event_type)
    extra = {key: item for key, item in data.items() if key not in known}
    return Record(seq=seq, at=at, event=event, position=position, extra=extra)


def record_line(record: Record) -> bytes:
    """A record as one line of records.jsonl, line feed included."""
    return document(record_to_json(record))


def records_from(data: bytes, where: str = layout.RECORDS) -> tuple[Record, ...]:
    """The records of a file, split at line feeds only.

    Raises:
        RecordError: a line does not parse, the last one has no line feed, numbers have a gap.
    """
    if not data:
        return ()
    *lines, rest = data.split(b"\n")
    if rest:
        raise RecordError(f"{where}: the last line has no end")
    if any(len(line) > LINE_LIMIT_BYTES for line in lines):
        raise RecordError(f"{where}: a line is longer than 4 MiB")
    found = tuple(record_from_json(parse_json(line, where), where) for line in lines)
    for one, other in pairwise(found):
        if other.seq != one.seq + 1:
            raise RecordError(f"{where}: record {other.seq} follows {one.seq}")
    return found


def _position_to_json(position: Position) -> dict[str, Any]:
    found: dict[str, Any] = {
        "attempt": position.attempt,
        "node": position.node,
        "visit": position.visit,
    }
    if position.branch is not None:
        found["branch"] = position.branch
    return found


def _position_from_json(value: Any, where: str) -> Position:
    position: Position = shape.from_json(Position, value, f"{where}: position")
    return position


def _encode(value: Any) -> Any:
    return outcome_to_json(value) if isinstance(value, Outcome) else shape.to_json(value)


def outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome: status and usage always, the rest where it is not empty."""
    found: dict[str, Any] = {
        "status": outcome.status,
        "usage": None if outcome.usage is None else dict(outcome.usage),
    }
    rest: dict[str, Any] = {
        "word": outcome.word,
        "context_updates": dict(outcome.context_updates),
        "preferred_label": outcome.preferred_label,
        "suggested_next_ids": list(outcome.suggested_next_ids),
        "notes": outcome.notes,
        "files_touched": list(outcome.files_touched),
    }
    if outcome.failure is not None:
        rest["failure"] = {
            "message": outcome.failure.message,
            "failure_class": outcome.failure.failure_class,
        }
        if outcome.failure.signature:
            rest["failure"]["failure_signature"] = outcome.failure.signature
    return found | {key: value for key, value in rest.items() if value}


def _outcome_in(data: dict[str, Any], where: str) -> dict[str, Any]:
    """The data of a record with the failure of its outcome in the names of our values."""
    outcome = data.get("outcome")
    if not isinstance(outcome, dict):
        return data
    return {**data, "outcome": _with_failure(outcome, where)}


def _with_failure(outcome: dict[str, Any], where: str) -> dict[str, Any]:
    failure = outcome.get("failure")
    if not isinstance(failure, dict):
        return outcome
    renamed = {**failure, "signature": failure.get("failure_signature", "")}
    return {**outcome, "failure": renamed}


def outcome_from_json(value: Any, where: str) -> Outcome:
    """An outcome from its JSON object.

    Raises:
        RecordError: it does not parse.
    """
    if isinstance(value, dict):
        value = _with_failure(value, where)
    outcome: Outcome = shape.from_json(Outcome, value, where)
    return outcome


#: Fields of a line that stand below ``pending`` where the line is the run's own.
_LINE_IN_PENDING = ("ended", "failure", "next_edge", "open_visit")


class StateWriter:
    """States of one run as checkpoint.json, one after the other.

    A state holds an outcome of every node so far and the name of every visit, and a checkpoint
    changes one of each: what was written of the others is kept, so that a checkpoint costs what it
    changes.
    """

    def __init__(self) -> None:
        self._outcomes: dict[int, tuple[Outcome, dict[str, Any]]] = {}
        self._completed: tuple[str, ...] = ()
        self._completed_text = b""

    def document(self, state: RunState, *, git_commit_sha: str | None = None) -> bytes:
        """The file: the same bytes as ``document`` gives for the JSON object.

        Raises:
            RecordError: a value has no canonical form.
        """
        value = self.to_json(state, git_commit_sha=git_commit_sha)
        del value["completed_nodes"]
        # No key sorts before this one, so it begins the object.
        rest = canonical(value)[1:]
        return b'{"completed_nodes":[%b],%b\n' % (self._visits(state.line.completed_nodes), rest)

    def _visits(self, completed: tuple[str, ...]) -> bytes:
        """The names of ``completed_nodes`` between its brackets."""
        known = len(self._completed)
        if completed[:known] != self._completed:
            known, self._completed_text = 0, b""
        more = canonical(list(completed[known:]))[1:-1]
        comma = b"," if more and self._completed_text else b""
        self._completed_text += comma + more
        self._completed = completed
        return self._completed_text

    def to_json(self, state: RunState, *, git_commit_sha: str | None = None) -> dict[str, Any]:
        """The state as a JSON object; the commit is null in Git, where it cannot be known."""
        used: dict[int, tuple[Outcome, dict[str, Any]]] = {}
        line = self._line(state.line, used)
        pending: dict[str, Any] = {
            "attempts": dict(state.attempts),
            "branches": {
                name: shape.to_json(replace(branch, line=Line()))
                | {"line": self._line(branch.line, used)}
                for name, branch in state.branches.items()
            },
            "deadlines": dict(state.deadlines),
            "fan_outs": shape.to_json(state.fan_outs),
            "gates": shape.to_json(state.gates),
        } | {key: line.pop(key) for key in _LINE_IN_PENDING}
        self._outcomes = used
        return line | {
            "git_commit_sha": git_commit_sha,
            "initial_context": dict(state.initial_context),
            "pending": pending,
            "reason": state.reason,
            "schema": layout.SCHEMA,
            "seq": state.seq,
            "started_at": state.started_at,
            "status": state.status,
            "timestamp": state.timestamp,
        }

    def _line(self, line: Line, used: dict[int, tuple[Outcome, dict[str, Any]]]) -> dict[str, Any]:
        outcomes: dict[str, Any] = {}
        for node, outcome in line.node_outcomes.items():
            # The value itself is kept beside its JSON, so its id stays its own.
            known = self._outcomes.get(id(outcome)) or (outcome, outcome_to_json(outcome))
            used[id(outcome)] = known
            outcomes[node] = known[1]
        return {
            "current_node": line.current_node,
            "next_node_id": line.next_node_id,
            "completed_nodes": list(line.completed_nodes),
            "node_retries": dict(line.node_retries),
            "node_visits": dict(line.node_visits),
            "node_outcomes": outcomes,
            "context_values": dict(line.context_values),
            "loop_failure_signatures": dict(line.loop_failure_signatures),
            "restart_failure_signatures": dict(line.restart_failure_signatures),
            "unhandled": list(line.unhandled),
            "ended": line.ended,
            "failure": line.failure,
            "next_edge": line.next_edge,
            "open_visit": line.open_visit,
        }


def state_to_json(state: RunState, *, git_commit_sha: str | None = None) -> dict[str, Any]:
    """A state as checkpoint.json, by itself."""
    return StateWriter().to_json(state, git_commit_sha=git_commit_sha)


def state_from_json(value: Any, where: str = layout.CHECKPOINT_JSON) -> RunState:
    """A state from checkpoint.json.

    Raises:
        RecordError: it does not parse, or has a later schema.
    """
    check_schema(value, where)
    pending = value.get("pending")
    if not isinstance(pending, dict):
        raise RecordError(f"{where}: pending is missing")
    inner = {key: pending[key] for key in _LINE_IN_PENDING if key in pending}
    state: RunState = shape.from_json(RunState, {**value, **pending, "branches": {}}, where)
    branches = pending.get("branches", {})
    if not isinstance(branches, dict):
        raise RecordError(f"{where}: branches are no object")
    return replace(
        state,
        line=_line_from_json({**value, **inner}, where),
        branches={
            name: _branch_from_json(branch, f"{where}: {name}") for name, branch in branches.items()
        },
    )


def check_schema(value: Any, where: str) -> None:
    """Refuses what is no object of ours, or of a later schema.

    Raises:
        RecordError: it is either.
    """
    if not isinstance(value, dict) or type(value.get("schema")) is not int:
        raise RecordError(f"{where}: no schema")
    if value["schema"] > layout.SCHEMA:
        raise RecordError(
            f"{where}: schema {value['schema']} is newer than {layout.SCHEMA}",
            hint="install a newer git-fabro",
        )


def _line_from_json(value: dict[str, Any], where: str) -> Line:
    outcomes = value.get("node_outcomes", {})
    if not isinstance(outcomes, dict):
        raise RecordError(f"{where}: node_outcomes is no object")
    found = {
        name: outcome_from_json(outcome, f"{where}: outcome of {name}")
        for name, outcome in outcomes.items()
    }
    line: Line = shape.from_json(Line, {**value, "node_outcomes": {}}, where)
    return replace(line, node_outcomes=found)


def _branch_from_json(value: Any, where: str) -> Branch:
    if not isinstance(value, dict) or not isinstance(value.get("line"), dict):
        raise RecordError(f"{where}: no line")
    branch: Branch = shape.from_json(Branch, {**value, "line": {}}, where)
    return replace(branch, line=_line_from_json(value["line"], where))
