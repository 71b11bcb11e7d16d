"""The fold: a record applied to a state gives the next state. Nothing else ever changes one.

No graph and no clock: what routing chose, when, and by which draw stands in the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from git_fabro.workflow.graph import CONDITIONAL, EXIT, START, NodeId
from git_fabro.workflow.records import (
    AttemptFailed,
    BranchFinished,
    NodeFinished,
    NodeStarted,
    ParallelFinished,
    ParallelStarted,
    QuestionAnswered,
    QuestionAsked,
    QuestionCancelled,
    QuestionExpired,
    QuestionRefused,
    Record,
    RunApplied,
    RunCreated,
    RunFinished,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    RunStopped,
    RunUnpaused,
)
from git_fabro.workflow.state import (
    APPLIED,
    BLOCKED,
    FAIL,
    PAUSED,
    RUNNING,
    STOPPED,
    SUBMITTED,
    Answer,
    Branch,
    Gate,
    Json,
    Line,
    OpenFanOut,
    Position,
    RunState,
)

#: Reasons of an edge that carries no condition: such an edge does not handle a failure.
UNCONDITIONAL = frozenset(
    {"preferred_label", "suggested_id", "weight", "lexical", "random", "join"}
)


def replay(records: Iterable[Record], state: RunState | None = None) -> RunState:
    """The state after all of these records; the empty state before them if none is given."""
    state = state or RunState()
    for record in records:
        state = evolve(state, record)
    return state


def evolve(state: RunState, record: Record) -> RunState:
    """The state after one more record."""
    applied = _APPLY.get(type(record.event))
    if applied is not None:
        state = applied(state, record, record.event)
    return replace(state, seq=record.seq)


def _created(state: RunState, record: Record, event: RunCreated) -> RunState:
    context = dict(event.context)
    return replace(
        state,
        status=SUBMITTED,
        timestamp=record.at,
        initial_context=context,
        line=replace(state.line, context_values=context),
    )


def _started(state: RunState, record: Record, event: RunStarted) -> RunState:
    line = replace(state.line, next_node_id=NodeId(event.start))
    return replace(state, status=RUNNING, started_at=record.at, line=line)


def _resumed(state: RunState, record: Record, event: RunResumed) -> RunState:
    """After a failed run, the first visit that runs anew says where the line goes on."""
    line = state.line
    if state.status == FAIL and event.again:
        node = NodeId(event.again[0].rpartition("@")[0])
        line = replace(
            line, next_node_id=node, next_edge=None, ended="", failure=None, open_visit=""
        )
    return _with_blocking(replace(state, status=RUNNING, reason="", line=line))


def _paused(state: RunState, record: Record, event: RunPaused) -> RunState:
    return replace(state, status=PAUSED)


def _unpaused(state: RunState, record: Record, event: RunUnpaused) -> RunState:
    return replace(state, status=RUNNING)


def _stopped(state: RunState, record: Record, event: RunStopped) -> RunState:
    return replace(state, status=STOPPED, reason=event.cause)


def _finished(state: RunState, record: Record, event: RunFinished) -> RunState:
    return replace(state, status=event.status, reason=event.reason)


def _applied(state: RunState, record: Record, event: RunApplied) -> RunState:
    return replace(state, status=APPLIED)


def _forked(state: RunState, record: Record, event: RunForked) -> RunState:
    """A fork keeps the node path and drops what was pending; its changes enter the context.

    A fork of where a run broke off has failed there: resumed, it visits that node anew.
    """
    changed, goal = event.changes.get("context"), event.changes.get("goal")
    anew = changed if isinstance(changed, dict) else {}
    context = {**state.line.context_values, **anew, "internal.run_id": event.run_id}
    initial = {**(anew or state.initial_context), "internal.run_id": event.run_id}
    if isinstance(goal, str):
        context["graph.goal"] = initial["graph.goal"] = goal
    line = state.line
    broke_off = line.next_node_id is None and line.ended not in ("", EXIT)
    return replace(
        state,
        status=FAIL if broke_off else RUNNING,
        reason="",
        started_at=state.started_at or record.at,
        initial_context=initial,
        line=replace(line, context_values=context),
        gates={},
        deadlines={},
        attempts={},
        fan_outs={},
        branches={},
    )


def _node_started(state: RunState, record: Record, event: NodeStarted) -> RunState:
    position = _position(record)
    line = state.line_of(position.branch)
    context = {
        **line.context_values,
        "internal.fidelity": event.fidelity,
        "internal.thread_id": event.thread,
    }
    if event.handler not in (START, CONDITIONAL, EXIT):
        context["preferred_label"] = ""
    visits = {**line.node_visits, position.node: position.visit}
    begun = replace(line, context_values=context, node_visits=visits, open_visit=str(position))
    state = _with_line(state, position.branch, begun)
    if event.deadline is None:
        return state
    return replace(state, deadlines={**state.deadlines, str(position): event.deadline})


def _attempt_failed(state: RunState, record: Record, event: AttemptFailed) -> RunState:
    visit = str(_position(record))
    return replace(
        state,
        attempts={**state.attempts, visit: _position(record).attempt},
        deadlines={**state.deadlines, visit: event.retry_at},
        gates=_without(state.gates, visit),
    )


def _node_finished(state: RunState, record: Record, event: NodeFinished) -> RunState:
    position = _position(record)
    line = finish(state.line_of(position.branch), position, event)
    if event.next is not None and event.next.loop_restart:
        line = _restarted(line, state.initial_context)
    state = _with_line(state, position.branch, line)
    if position.branch is None:
        reason = "" if event.next else event.reason
        state = replace(state, timestamp=record.at, reason=reason)
    visit = str(position)
    return replace(
        state,
        gates=_without(state.gates, visit),
        deadlines=_without(state.deadlines, visit),
        attempts=_without(state.attempts, visit),
        fan_outs=_without(state.fan_outs, visit),
        branches={
            name: branch
            for name, branch in state.branches.items()
            if not name.startswith(f"{visit}/")
        },
    )


def finish(line: Line, position: Position, event: NodeFinished) -> Line:
    """A line after one of its nodes ended, before any restart of the loop."""
    node = position.node
    completed = line.completed_nodes if event.handler == EXIT else (*line.completed_nodes, node)
    return replace(
        line,
        current_node=node,
        next_node_id=NodeId(event.next.node) if event.next else None,
        next_edge=event.next.edge if event.next else None,
        completed_nodes=completed,
        node_retries={**line.node_retries, node: event.attempts - 1},
        node_outcomes={**line.node_outcomes, node: event.outcome},
        node_visits={**line.node_visits, node: position.visit},
        context_values=context_after(line.context_values, position, event),
        unhandled=event.unhandled,
        failure=_open_failure(line, position, event),
        ended="" if event.next else event.reason,
        open_visit="",
        **_counted(line, event),
    )


def context_after(
    context: Mapping[str, Json], position: Position, event: NodeFinished
) -> dict[str, Json]:
    """The context after a node: its updates, then the engine's own keys (git-fabro-workflow(7))."""
    outcome = event.outcome
    after: dict[str, Json] = {**context, **outcome.context_updates}
    after["current_node"] = position.node
    after["internal.node_visit_count"] = position.visit
    after[f"internal.retry_count.{position.node}"] = event.attempts - 1
    if event.handler in (CONDITIONAL, EXIT):
        return after
    failure = outcome.failure if outcome.status == FAIL else None
    after["outcome"] = outcome.text
    after["preferred_label"] = outcome.preferred_label
    after["failure_class"] = failure.failure_class if failure else ""
    after["failure_signature"] = failure.signature if failure else ""
    return after


def _open_failure(line: Line, position: Position, event: NodeFinished) -> str | None:
    """The visit whose failure the next conditional has to route, if there is one."""
    passes_on = event.handler == CONDITIONAL
    failed = event.outcome.status == FAIL
    visit = line.failure if passes_on else (str(position) if failed else None)
    if visit is None or event.next is None or event.reason not in UNCONDITIONAL:
        return visit if event.next is None else None
    return None if visit in event.unhandled else visit


def _counted(line: Line, event: NodeFinished) -> dict[str, Any]:
    if event.counted is None:
        return {}
    field = f"{event.counted.table}_failure_signatures"
    table: Mapping[str, int] = getattr(line, field)
    signature = event.counted.signature
    return {field: {**table, signature: table.get(signature, 0) + 1}}


def _restarted(line: Line, initial: Mapping[str, Json]) -> Line:
    """A loop restart: context and outcomes begin anew; counts, failures and files stay."""
    return replace(
        line, context_values=dict(initial), completed_nodes=(), node_outcomes={}, failure=None
    )


def _asked(state: RunState, record: Record, event: QuestionAsked) -> RunState:
    position = _position(record)
    gate = Gate(
        ask=event.ask,
        asked_seq=record.seq,
        asked_at=record.at,
        node=position.node,
        visit=position.visit,
        attempt=position.attempt,
        branch=position.branch,
        text=event.text,
        options=event.options,
        freeform=event.freeform,
        default=event.default,
        deadline=event.deadline,
        sensitive=event.sensitive,
    )
    gates = {**state.gates, event.question: gate}
    deadlines = state.deadlines
    if event.deadline is not None:
        deadlines = {**deadlines, event.question: event.deadline}
    return _with_blocking(replace(state, gates=gates, deadlines=deadlines))


def _answered(state: RunState, record: Record, event: QuestionAnswered) -> RunState:
    answer = Answer(
        how="answered",
        choice=event.choice,
        label=event.label,
        target=event.target,
        text=event.text,
    )
    return _with_answer(state, event.question, answer)


def _expired(state: RunState, record: Record, event: QuestionExpired) -> RunState:
    return _with_answer(state, event.question, Answer(how="expired", target=event.default or ""))


def _refused(state: RunState, record: Record, event: QuestionRefused) -> RunState:
    return _with_answer(state, event.question, Answer(how="refused", reason=event.reason))


def _cancelled(state: RunState, record: Record, event: QuestionCancelled) -> RunState:
    return _with_answer(state, event.question, Answer(how="cancelled", reason=event.reason))


def _with_answer(state: RunState, question: str, answer: Answer) -> RunState:
    gate = state.gates.get(question)
    if gate is None:
        return state
    gates = {**state.gates, question: replace(gate, answer=answer)}
    return _with_blocking(
        replace(state, gates=gates, deadlines=_without(state.deadlines, question))
    )


def _with_blocking(state: RunState) -> RunState:
    """``blocked`` exactly while every live line waits at an open question."""
    if state.status not in (RUNNING, BLOCKED):
        return state
    return replace(state, status=BLOCKED if waits_for_people(state) else RUNNING)


def waits_for_people(state: RunState) -> bool:
    """Whether every live line (the run, or each unfinished branch) waits at an open question."""
    waiting = {gate.branch for gate in state.gates.values() if gate.answer is None}
    parents = {branch.parent for branch in state.branches.values() if not branch.status}
    live: set[str | None] = {name for name, one in state.branches.items() if not one.status}
    live -= parents
    if not live and None not in parents:
        live = {None}
    return bool(live) and live <= waiting


def _parallel_started(state: RunState, record: Record, event: ParallelStarted) -> RunState:
    position = _position(record)
    visit, parent = str(position), state.line_of(position.branch)
    began = Line(
        context_values=parent.context_values,
        node_visits=parent.node_visits,
        loop_failure_signatures=parent.loop_failure_signatures,
        restart_failure_signatures=parent.restart_failure_signatures,
    )
    opened = {
        f"{visit}/{plan.id}": Branch(
            parent=position.branch,
            line=replace(began, next_node_id=NodeId(plan.id)),
            head_sha=event.base_sha,
        )
        for plan in event.branches
        if not plan.skipped
    }
    fan_out = OpenFanOut(
        base_sha=event.base_sha,
        join=NodeId(event.join),
        join_policy=event.join_policy,
        max_parallel=event.max_parallel,
        started_at=record.at,
        branches=tuple(plan.id for plan in event.branches),
        skipped=tuple(plan.id for plan in event.branches if plan.skipped),
    )
    return replace(
        state,
        fan_outs={**state.fan_outs, visit: fan_out},
        branches={**state.branches, **opened},
    )


def _branch_finished(state: RunState, record: Record, event: BranchFinished) -> RunState:
    name = _position(record).branch or ""
    if name not in state.branches:
        return state
    state = _without_rest(state, name)
    ended = replace(
        state.branches[name],
        status=event.status,
        head_sha=event.head_sha,
        nodes=event.nodes,
        context=event.context,
        failure=event.failure,
    )
    return _with_blocking(replace(state, branches={**state.branches, name: ended}))


def _without_rest(state: RunState, name: str) -> RunState:
    """A branch that was given up leaves nothing open: no question, no fan-out inside of it."""
    inner = _inside(state, name)
    if not inner and not state.branches[name].line.open_visit:
        return state
    lines = {one: state.branches[one].line for one in (name, *inner)}
    visits = {line.open_visit for line in lines.values()}
    counts = _with_counts(lines[name], [lines[one] for one in inner])
    kept = {one: branch for one, branch in state.branches.items() if one not in inner}
    kept[name] = replace(kept[name], line=counts)
    return replace(
        state,
        branches=kept,
        fan_outs={v: one for v, one in state.fan_outs.items() if v not in visits},
        gates={q: gate for q, gate in state.gates.items() if gate.branch not in lines},
        deadlines={v: when for v, when in state.deadlines.items() if v not in visits},
        attempts={v: count for v, count in state.attempts.items() if v not in visits},
    )


def _inside(state: RunState, name: str) -> list[str]:
    """The branches of the fan-outs inside a branch, at any depth."""
    found = [one for one, branch in state.branches.items() if branch.parent == name]
    return found + [deeper for one in found for deeper in _inside(state, one)]


def _parallel_finished(state: RunState, record: Record, event: ParallelFinished) -> RunState:
    """The counts of the branches join those of the line; a node belongs to one branch only."""
    position = _position(record)
    visit = str(position)
    branches = [one.line for name, one in state.branches.items() if name.startswith(f"{visit}/")]
    line = _with_counts(state.line_of(position.branch), branches)
    state = _with_line(state, position.branch, line)
    fan_out = state.fan_outs.get(visit)
    if fan_out is None:
        return state
    ended = replace(fan_out, status=event.status, won=event.won)
    return replace(state, fan_outs={**state.fan_outs, visit: ended})


def _with_counts(line: Line, branches: Iterable[Line]) -> Line:
    """A line with the visits and failures that lines inside of it have counted."""
    for inner in branches:
        line = replace(
            line,
            node_visits=_highest(line.node_visits, inner.node_visits),
            loop_failure_signatures=_highest(
                line.loop_failure_signatures, inner.loop_failure_signatures
            ),
            restart_failure_signatures=_highest(
                line.restart_failure_signatures, inner.restart_failure_signatures
            ),
        )
    return line


def _position(record: Record) -> Position:
    return record.position or Position(node=NodeId(""), visit=0)


def _with_line(state: RunState, branch: str | None, line: Line) -> RunState:
    if branch is None:
        return replace(state, line=line)
    changed = replace(state.branches[branch], line=line)
    return replace(state, branches={**state.branches, branch: changed})


def _without(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return table if key not in table else {k: v for k, v in table.items() if k != key}


def _highest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {key: max(one.get(key, 0), other.get(key, 0)) for key in {**one, **other}}


_APPLY: dict[type, Any] = {
    RunCreated: _created,
    RunStarted: _started,
    RunResumed: _resumed,
    RunPaused: _paused,
    RunUnpaused: _unpaused,
    RunStopped: _stopped,
    RunFinished: _finished,
    RunApplied: _applied,
    RunForked: _forked,
    NodeStarted: _node_started,
    AttemptFailed: _attempt_failed,
    NodeFinished: _node_finished,
    QuestionAsked: _asked,
    QuestionAnswered: _answered,
    QuestionExpired: _expired,
    QuestionRefused: _refused,
    QuestionCancelled: _cancelled,
    ParallelStarted: _parallel_started,
    BranchFinished: _branch_finished,
    ParallelFinished: _parallel_finished,
}
