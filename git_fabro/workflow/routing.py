"""Which edge a line takes next, and why.

Source: the manual, git-fabro-workflow(7), "Choosing the edge".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from git_fabro.workflow import condition
from git_fabro.workflow.gate import normalise_label
from git_fabro.workflow.graph import CONDITIONAL, EXIT, HUMAN, Edge, Graph, Node, NodeId
from git_fabro.workflow.state import FAIL, GOOD, Json, Line, Outcome

Lookup = Callable[[str], Json]

#: Why a route ends with nothing to follow.
NO_EDGE, ON_FAILURE = "no_edge", "on_failure"


@dataclass(frozen=True, slots=True)
class Route:
    """The way out of a node: an edge, a jump (no edge), or an end (no target)."""

    target: NodeId | None
    reason: str
    edge: Edge | None = None
    draw: float | None = None


def inherited(graph: Graph, line: Line) -> tuple[str | None, Outcome]:
    """The node whose outcome a conditional passes on, and that outcome.

    None and success directly after the start, or after a restart of the loop.
    """
    for name in reversed(line.completed_nodes):
        node = graph.nodes.get(NodeId(name))
        if node is not None and not node.is_control:
            return name, line.node_outcomes[name]
    return None, Outcome(status="success")


def choose(
    graph: Graph, node: Node, outcome: Outcome, lookup: Lookup, *, draw: float
) -> Route | None:
    """The edge out of a node by the five steps, or None if none of them gave one."""
    edges = graph.outgoing(node.id)
    chosen = _by_condition(edges, lookup)
    if chosen is not None:
        return Route(chosen.target, "condition", chosen)
    if node.kind == HUMAN and outcome.status == FAIL:
        return None
    plain = [edge for edge in edges if edge.condition is None]
    found, reason = _preferred(node, plain, outcome)
    if not found:
        found, reason = plain, "weight"
    if not found:
        return None
    if node.text("selection") == "random" and len(found) > 1:
        return Route((edge := _drawn(found, draw)).target, "random", edge, draw)
    best, tied = _heaviest(found)
    if reason == "weight" and tied:
        reason = "lexical"
    return Route(best.target, reason, best)


def _by_condition(edges: Sequence[Edge], lookup: Lookup) -> Edge | None:
    true = [
        edge
        for edge in edges
        if edge.condition is not None and condition.evaluate(edge.condition, lookup)
    ]
    return _heaviest(true)[0] if true else None


def _preferred(node: Node, plain: Sequence[Edge], outcome: Outcome) -> tuple[list[Edge], str]:
    """The edge that the outcome asks for by label or id.

    Choices of a gate may read alike: a gate's label counts on the edge to where its answer leads.
    """
    wanted = normalise_label(outcome.preferred_label)
    if wanted:
        for edge in plain:
            chosen = node.kind != HUMAN or edge.target in outcome.suggested_next_ids
            if chosen and normalise_label(edge.label) == wanted:
                return [edge], "preferred_label"
    for target in outcome.suggested_next_ids:
        for edge in plain:
            if edge.target == target:
                return [edge], "suggested_id"
    return [], ""


def _heaviest(edges: Sequence[Edge]) -> tuple[Edge, bool]:
    """The edge of highest weight, then smallest target; and whether the target had to decide."""
    top = max(edge.weight for edge in edges)
    tied = [edge for edge in edges if edge.weight == top]
    return min(tied, key=lambda edge: (edge.target, edge.index)), len(tied) > 1


def _drawn(edges: Sequence[Edge], draw: float) -> Edge:
    """One of the edges in proportion to weight; a weight of 0 or less counts 1."""
    shares = [max(edge.weight, 1) for edge in edges]
    left = draw * sum(shares)
    for edge, share in zip(edges, shares, strict=True):
        left -= share
        if left < 0:
            return edge
    return edges[-1]


def retry_targets(graph: Graph, node: Node) -> list[NodeId]:
    """Where a failure without an edge may go, in the order in which they are tried."""
    names = [
        node.text("retry_target"),
        node.text("fallback_retry_target"),
        graph.text("retry_target"),
        graph.text("fallback_retry_target"),
    ]
    return [NodeId(name) for name in names if name and NodeId(name) in graph.nodes]


def route(
    graph: Graph, node: Node, line: Line, outcome: Outcome, lookup: Lookup, *, draw: float
) -> Route:
    """The way out of a node that has ended, failures included (git-fabro-workflow(7))."""
    failed_name: str | None = node.id
    if node.kind == CONDITIONAL:
        failed_name, outcome = inherited(graph, line)
    chosen = choose(graph, node, outcome, lookup, draw=draw)
    failed = outcome.status == FAIL
    if failed and graph.text("on_failure", "route") == "exit":
        return _or_end(graph, chosen)
    if chosen is not None:
        return chosen
    if failed:
        culprit = graph.nodes[NodeId(failed_name or node.id)]
        targets = retry_targets(graph, culprit)
        if targets:
            return Route(targets[0], "retry_target")
    return Route(None, NO_EDGE)


def _or_end(graph: Graph, chosen: Route | None) -> Route:
    """With ``on_failure=exit`` only a condition, or a conditional that may hold one."""
    if chosen is None or chosen.target is None:
        return Route(None, ON_FAILURE)
    asked = chosen.reason == "condition" or graph.nodes[chosen.target].kind == CONDITIONAL
    return chosen if asked else Route(None, ON_FAILURE)


def unsatisfied_gate(graph: Graph, line: Line) -> NodeId | None:
    """The first visited goal gate, in order of completion, whose last status is not good."""
    seen: set[str] = set()
    for name in line.completed_nodes:
        node = graph.nodes.get(NodeId(name))
        if node is None or name in seen or not node.flag("goal_gate"):
            continue
        seen.add(name)
        if line.node_outcomes[name].status not in GOOD:
            return node.id
    return None


def gate_target(graph: Graph, gate: NodeId) -> NodeId | None:
    """Where an unsatisfied goal gate sends the run; never to an exit, which would spin for ever."""
    for target in retry_targets(graph, graph.nodes[gate]):
        if graph.nodes[target].kind != EXIT:
            return target
    return None
