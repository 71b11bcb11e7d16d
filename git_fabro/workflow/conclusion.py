"""What a line came to once nothing follows on it: status, reason, and the visit to blame."""

from __future__ import annotations

from dataclasses import dataclass

from git_fabro.workflow import routing
from git_fabro.workflow.engine import (
    LIMIT,
    SIGNATURE_LIMIT,
    VISIT_LIMIT,
    context_lookup,
    limit_message,
    over_limit,
)
from git_fabro.workflow.graph import CONDITIONAL, EXIT, FanOut, Graph, NodeId
from git_fabro.workflow.state import (
    FAIL,
    GOOD,
    PARTIAL,
    SKIPPED,
    STRUCTURAL,
    SUCCESS,
    Line,
    RunState,
)


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a line ended: status, reason for people, and the visit to blame (None if it is good)."""

    status: str
    reason: str = ""
    visit: str | None = None


def conclude(graph: Graph, line: Line) -> Conclusion:
    """What the run came to once nothing follows on its line (git-fabro-workflow(7))."""
    if line.ended == EXIT:
        return _at_exit(graph, line)
    return _broken_off(graph, line)


def _at_exit(graph: Graph, line: Line) -> Conclusion:
    mode = graph.text("on_failure", "route")
    if mode == "succeed":
        return Conclusion(SUCCESS)
    if line.unhandled:
        return Conclusion(
            FAIL, f"unhandled failures: {', '.join(line.unhandled)}", line.unhandled[0]
        )
    outcomes = [line.node_outcomes[name] for name in set(line.completed_nodes)]
    partial = any(outcome.status == PARTIAL for outcome in outcomes)
    return Conclusion(PARTIAL if partial else SUCCESS)


def _broken_off(graph: Graph, line: Line) -> Conclusion:
    node = line.current_node or graph.start
    visit = f"{node}@{line.node_visits.get(node, 1)}"
    gate = None
    if graph.nodes[node].kind == EXIT and line.node_outcomes[node].status != FAIL:
        gate = routing.unsatisfied_gate(graph, line)
    if gate is not None:
        visit = f"{gate}@{line.node_visits.get(gate, 1)}"
    if line.ended == VISIT_LIMIT:
        target = _limited_target(graph, line, node)
        return Conclusion(FAIL, limit_message(graph, line, target), visit)
    if gate is not None:
        return Conclusion(FAIL, f"goal gate not satisfied: {visit}", visit)
    blamed, outcome = (node, line.node_outcomes[node])
    if graph.nodes[node].kind == CONDITIONAL and outcome.status != FAIL:
        name, outcome = routing.inherited(graph, line)
        blamed = NodeId(name or node)
        visit = f"{blamed}@{line.node_visits.get(blamed, 1)}"
    failure = outcome.failure
    if line.ended == SIGNATURE_LIMIT and failure is not None:
        limit = graph.number("loop_restart_signature_limit", LIMIT)
        return Conclusion(FAIL, f"same failure {limit} times: {failure.signature}", visit)
    if failure is None:
        return Conclusion(FAIL, f"no edge of {node} can be taken", visit)
    reason = f"{visit}: {failure.message}"
    if line.ended == STRUCTURAL and failure.failure_class != STRUCTURAL:
        reason = f"{visit}: restart refused: {failure.message}"
    return Conclusion(FAIL, reason, visit)


def _limited_target(graph: Graph, line: Line, node: NodeId) -> NodeId:
    """The node that the visit limit kept from running: the first used-up one that could follow.

    Where none could, a hook wanted to go to one.
    """
    targets = [edge.target for edge in graph.outgoing(node)]
    targets += routing.retry_targets(graph, graph.nodes[node])
    way = routing.route(
        graph,
        graph.nodes[node],
        line,
        line.node_outcomes[node],
        context_lookup(line, lambda value: value),
        draw=0.0,
    )
    if way.target is not None:
        targets.insert(0, way.target)
    if node in graph.fan_outs:
        targets.insert(0, graph.fan_outs[node].join)
    if graph.nodes[node].kind == EXIT:
        gate = routing.unsatisfied_gate(graph, line)
        targets += [
            target for target in (gate and [routing.gate_target(graph, gate)]) or [] if target
        ]
    targets += graph.nodes
    return next((target for target in targets if over_limit(graph, line, target)), node)


def conclude_branch(graph: Graph, fan_out: FanOut, branch: NodeId, line: Line) -> Conclusion:
    """What a branch of a fan-out came to (git-fabro-workflow(7))."""
    if line.next_node_id is None and line.ended:
        return _broken_off(graph, line)
    inside = fan_out.branches[branch]
    gate = routing.unsatisfied_gate(graph, line)
    if gate is not None and gate in inside:
        visit = f"{gate}@{line.node_visits.get(gate, 1)}"
        return Conclusion(FAIL, f"goal gate not satisfied: {visit}", visit)
    # A conditional at which branches meet is none of a branch's own: it handles no failure of one.
    unhandled = (*line.unhandled, *([line.failure] if line.failure else []))
    if unhandled and graph.text("on_failure", "route") != "succeed":
        return Conclusion(FAIL, f"unhandled failures: {', '.join(unhandled)}", unhandled[0])
    _, outcome = routing.inherited(graph, line)
    return Conclusion(PARTIAL if outcome.status == PARTIAL else SUCCESS)


def join_status(policy: str, statuses: list[str]) -> str:
    """The status of a parallel node from those of all its branches (git-fabro-workflow(7))."""
    ran = [status for status in statuses if status != SKIPPED]
    if policy == "first_success" and SUCCESS in ran:
        return SUCCESS
    if not any(status in GOOD for status in ran):
        return FAIL
    if policy == "first_success":
        return PARTIAL
    return SUCCESS if all(status == SUCCESS for status in ran) else PARTIAL


def failed_visit(graph: Graph, state: RunState) -> NodeId:
    """The node at which a failed run goes on when it is resumed."""
    conclusion = conclude(graph, state.line)
    if conclusion.visit is None:
        return state.line.current_node or graph.start
    return NodeId(conclusion.visit.rpartition("@")[0])
