"""The state machine: what a finished attempt means. Draws and the clock arrive as arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from git_fabro.workflow import fold, routing
from git_fabro.workflow.graph import (
    CONDITIONAL,
    EXIT,
    FAN_IN,
    HUMAN,
    PARALLEL,
    Graph,
    Node,
    NodeId,
)
from git_fabro.workflow.records import AttemptFailed, Counted, Next, NodeFinished
from git_fabro.workflow.routing import ON_FAILURE, Route
from git_fabro.workflow.stamps import moment as moment
from git_fabro.workflow.stamps import stamp as stamp
from git_fabro.workflow.stamps import stamp_of as stamp_of
from git_fabro.workflow.state import (
    CANCELLED,
    DETERMINISTIC,
    FAIL,
    GOOD,
    PARTIAL,
    RETRY,
    SKIPPED,
    STRUCTURAL,
    SUCCESS,
    TIMED_OUT,
    TRANSIENT,
    Failure,
    Json,
    Line,
    Outcome,
    Position,
)

evolve, replay = fold.evolve, fold.replay

#: Turns a reference to an offloaded value back into the value; anything else comes back as it is.
Resolve = Callable[[Json], Json]

VISIT_LIMIT, SIGNATURE_LIMIT, GOAL_GATE = "visit_limit", "signature_limit", "goal_gate"
_TRANSIENT = frozenset({TRANSIENT, TIMED_OUT})
LIMIT = 3


@dataclass(frozen=True, slots=True)
class Preset:
    """A retry policy: how many attempts, and the delays between them before the draw."""

    attempts: int
    first_ms: int
    factor: int


PRESETS: Mapping[str, Preset] = {
    "none": Preset(1, 200, 2),
    "standard": Preset(5, 200, 2),
    "aggressive": Preset(5, 500, 2),
    "linear": Preset(3, 500, 1),
    "patient": Preset(3, 2000, 3),
}
_LONGEST_DELAY_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The last attempt of a visit, as its handler left it."""

    position: Position
    outcome: Outcome
    duration_ms: int = 0
    blocked: bool = False  # a hook ended the run here
    jump: NodeId | None = None  # a hook chose the way out


def retry(graph: Graph, done: Done, *, draw: float, now: datetime) -> AttemptFailed | None:
    """The record of another attempt to come, or None if this was the last one.

    Args:
        graph: The admitted graph.
        done: The attempt that ended; its position's attempt counts from 1.
        draw: In [0.5, 1.5): scales the delay.
        now: When it ended.
    """
    node = graph.nodes[done.position.node]
    if not _may_retry(graph, node, done.outcome, done.position.attempt):
        return None
    preset = PRESETS.get(node.text("retry_policy"), PRESETS["standard"])
    if preset.attempts == 1:
        preset = PRESETS["standard"]
    pause = preset.first_ms * preset.factor ** (done.position.attempt - 1)
    delay_ms = int(min(pause, _LONGEST_DELAY_MS) * draw)
    return AttemptFailed(
        outcome=done.outcome,
        duration_ms=done.duration_ms,
        draw=draw,
        delay_ms=delay_ms,
        retry_at=stamp(now + timedelta(milliseconds=delay_ms)),
    )


def _may_retry(graph: Graph, node: Node, outcome: Outcome, attempt: int) -> bool:
    if outcome.status not in (FAIL, RETRY):
        return False
    failure_class = outcome.failure.failure_class if outcome.failure else DETERMINISTIC
    if failure_class in (CANCELLED, STRUCTURAL):
        return False
    eager = outcome.status == RETRY or failure_class in _TRANSIENT
    number, policy = node.number("max_retries"), node.text("retry_policy")
    if number is not None:
        return attempt <= number
    if policy in PRESETS:
        return eager and attempt < PRESETS[policy].attempts
    return eager and attempt <= graph.number("default_max_retries", 0)


def decide(
    graph: Graph, line: Line, done: Done, *, draw: float, resolve: Resolve = lambda value: value
) -> NodeFinished:
    """What a visit came to, and what follows it.

    Args:
        graph: The admitted graph.
        line: The line on which the node ran, before this record.
        done: Its last attempt.
        draw: In [0, 1), used where ``selection=random`` has a choice.
        resolve: Gives offloaded values back, as conditions see values whole.
    """
    node = graph.nodes[done.position.node]
    outcome = settle(node, done.outcome, blocked=done.blocked)
    ended = NodeFinished(
        handler=node.kind,
        attempts=done.position.attempt,
        duration_ms=done.duration_ms,
        outcome=outcome,
        unhandled=_mended(line.unhandled, node.id, outcome),
    )
    ended = _count(graph, node, ended)
    after = fold.finish(line, done.position, replace(ended, reason="open"))
    if done.blocked:
        return replace(ended, reason=STRUCTURAL)
    if _at_limit(graph, ended.counted, after):
        return replace(ended, reason=SIGNATURE_LIMIT)
    if node.kind == EXIT:
        return _leave(graph, after, ended)
    way = _way_out(graph, node, after, done, draw=draw, resolve=resolve)
    return _follow(graph, node, line, after, done.position, ended, way)


def settle(node: Node, outcome: Outcome, *, blocked: bool = False) -> Outcome:
    """The outcome that counts: the rest of a retry, ``auto_status``, a failure's signature.

    What a hook has blocked stays a failure, whatever the node says of its own.
    """
    if outcome.status == RETRY:
        if node.flag("allow_partial"):
            outcome = replace(outcome, status=PARTIAL, failure=None)
        else:
            cause = outcome.failure or Failure("")
            text = "retries exhausted" + (f": {cause.message}" if cause.message else "")
            outcome = replace(outcome, status=FAIL, failure=replace(cause, message=text))
    if node.flag("auto_status") and not blocked and outcome.status not in (SUCCESS, SKIPPED):
        notes = f"auto_status: was {outcome.status}" + (
            f": {outcome.failure.message}" if outcome.failure else ""
        )
        notes = f"{outcome.notes}\n{notes}" if outcome.notes else notes
        return replace(outcome, status=SUCCESS, word="", failure=None, notes=notes)
    if outcome.status != FAIL:
        return replace(outcome, failure=None)
    failure = outcome.failure or Failure("failed without a reason")
    return replace(outcome, failure=replace(failure, signature=signature(node.id, failure)))


def signature(node: NodeId, failure: Failure) -> str:
    """``NODE|CLASS|REASON`` without what varies between two equal failures."""
    if failure.signature.startswith(f"{node}|"):
        return failure.signature
    reason = (failure.signature or failure.message).lower()
    reason = re.sub(r"\b[0-9a-f]{7,64}\b", "<hex>", reason)
    reason = re.sub(r"[0-9]+", "<n>", reason)
    reason = " ".join(reason.split())[:240]
    return f"{node}|{failure.failure_class}|{reason}"


def _mended(unhandled: tuple[str, ...], node: NodeId, outcome: Outcome) -> tuple[str, ...]:
    """A later good visit of a node takes its failures off the list."""
    if outcome.status not in GOOD:
        return unhandled
    return tuple(visit for visit in unhandled if visit.rpartition("@")[0] != node)


def _count(graph: Graph, node: Node, ended: NodeFinished) -> NodeFinished:
    """A final failure that would come again is counted by its signature; a person's no is not.

    That of a parallel node is its join's, which reports it; without a fan_in it is its own.
    """
    failure = ended.outcome.failure
    if failure is None or failure.failure_class not in (DETERMINISTIC, STRUCTURAL):
        return ended
    fan_out = graph.fan_outs.get(node.id)
    reported_by_join = fan_out is not None and graph.nodes[fan_out.join].kind == FAN_IN
    if node.kind in (HUMAN, CONDITIONAL, EXIT) or reported_by_join:
        return ended
    return replace(ended, counted=Counted(table="loop", signature=failure.signature))


def _at_limit(graph: Graph, counted: Counted | None, after: Line) -> bool:
    limit = graph.number("loop_restart_signature_limit", LIMIT)
    if counted is None or limit <= 0:
        return False
    table = (
        after.loop_failure_signatures
        if counted.table == "loop"
        else after.restart_failure_signatures
    )
    return table.get(counted.signature, 0) >= limit


def _leave(graph: Graph, after: Line, ended: NodeFinished) -> NodeFinished:
    """At the exit: the goal gates hold, or the line goes back to where one can be mended."""
    gate = routing.unsatisfied_gate(graph, after)
    if gate is None:
        return replace(ended, reason=EXIT)
    target = routing.gate_target(graph, gate)
    if target is None:
        return replace(ended, reason=STRUCTURAL)
    if over_limit(graph, after, target):
        return replace(ended, reason=VISIT_LIMIT)
    return replace(ended, next=Next(node=target), reason=GOAL_GATE)


def _way_out(
    graph: Graph, node: Node, after: Line, done: Done, *, draw: float, resolve: Resolve
) -> Route:
    if done.jump is not None:
        return Route(done.jump, "hook")
    fan_out = graph.fan_outs.get(node.id)
    if fan_out is None:
        return routing.route(
            graph,
            node,
            after,
            after.node_outcomes[node.id],
            context_lookup(after, resolve),
            draw=draw,
        )
    joined = Route(fan_out.join, "join")
    if graph.nodes[fan_out.join].kind == FAN_IN or after.node_outcomes[node.id].status != FAIL:
        return joined
    if graph.text("on_failure", "route") == "exit":
        return Route(None, ON_FAILURE)
    return joined


def context_lookup(line: Line, resolve: Resolve) -> Callable[[str], Json]:
    context = line.context_values
    return lambda key: resolve(context.get(key))


def _follow(
    graph: Graph,
    node: Node,
    line: Line,
    after: Line,
    position: Position,
    ended: NodeFinished,
    way: Route,
) -> NodeFinished:
    """The record with its way out: limits and restarts may still forbid it."""
    if way.target is None:
        return replace(ended, reason=way.reason, draw=way.draw)
    unhandled = _left_unhandled(graph, node, line, position, ended, way)
    ended = replace(ended, unhandled=unhandled, reason=way.reason, draw=way.draw)
    restart = way.edge is not None and way.edge.loop_restart
    failure = _restarting_after(graph, node, line, ended) if restart else None
    if failure is not None:
        if failure.failure_class not in _TRANSIENT:
            return replace(ended, reason=STRUCTURAL)
        ended = replace(ended, counted=Counted(table="restart", signature=failure.signature))
        if _at_limit(graph, ended.counted, fold.finish(line, position, ended)):
            return replace(ended, reason=SIGNATURE_LIMIT)
    if over_limit(graph, after, way.target):
        return replace(ended, reason=VISIT_LIMIT)
    edge = way.edge.index if way.edge else None
    return replace(ended, next=Next(node=way.target, edge=edge, loop_restart=restart))


def _restarting_after(graph: Graph, node: Node, line: Line, ended: NodeFinished) -> Failure | None:
    """The failure behind which the loop would begin anew, if there is one."""
    outcome = ended.outcome
    if node.kind == CONDITIONAL:
        _, outcome = routing.inherited(graph, line)
    return outcome.failure if outcome.status == FAIL else None


def _left_unhandled(
    graph: Graph, node: Node, line: Line, position: Position, ended: NodeFinished, way: Route
) -> tuple[str, ...]:
    """The list of unhandled failures after this way was chosen (git-fabro-workflow(7))."""
    visit = line.failure if node.kind == CONDITIONAL else None
    if node.kind != CONDITIONAL and ended.outcome.status == FAIL:
        visit = str(position)
    if visit is None or way.target is None or way.reason not in fold.UNCONDITIONAL:
        return ended.unhandled
    if graph.nodes[way.target].kind == CONDITIONAL or visit in ended.unhandled:
        return ended.unhandled
    if node.kind == PARALLEL and graph.nodes[way.target].kind == FAN_IN:
        return ended.unhandled
    return (*ended.unhandled, visit)


# The limit of visits is looked at when a target is chosen, so that "before anything runs" also
# means before a record of a visit exists that never was.
def visits_allowed(graph: Graph, node: Node) -> tuple[int, str]:
    """How often a node may run and the attribute that says so; 0 is without limit."""
    own = node.number("max_visits")
    if own is not None:
        return own, "max_visits"
    return graph.number("max_node_visits", 0), "max_node_visits"


def over_limit(graph: Graph, line: Line, target: NodeId) -> bool:
    """Whether one more visit of the node would be one too many."""
    node = graph.nodes[target]
    limit, _ = visits_allowed(graph, node)
    return node.kind != EXIT and limit > 0 and line.node_visits.get(target, 0) >= limit


def limit_message(graph: Graph, line: Line, target: NodeId) -> str:
    limit, name = visits_allowed(graph, graph.nodes[target])
    times = line.node_visits.get(target, 0) + 1
    return (
        f'node "{target}" may run {limit} time{"" if limit == 1 else "s"} ({name})'
        f" and would run a {_ordinal(times)} time"
    )


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
