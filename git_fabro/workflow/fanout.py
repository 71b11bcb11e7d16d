"""Where the branches of a parallel node meet, and which nodes belong to which branch.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from git_fabro.workflow.graph import EXIT, FAN_IN, PARALLEL, Edge, FanOut, Graph, NodeId

#: Follows the exit and every dead end, so that all paths end in one node.
_END = NodeId("")


class Joins(NamedTuple):
    """Where each parallel node's branches meet; None where they do not.

    ``above`` is the nearest node that every path from a node passes after it.
    """

    of: Mapping[NodeId, NodeId | None]
    above: Mapping[NodeId, NodeId]


def find_joins(graph: Graph) -> Joins:
    """The join of each parallel node: the nearest fan_in, else the nearest node of any kind."""
    above, depth = _post_dominators(graph)
    parallels = [node.id for node in graph.nodes.values() if node.kind == PARALLEL]
    found: dict[NodeId, NodeId | None] = {}
    for parallel in sorted(parallels, key=lambda name: depth.get(name, -1)):
        targets = {edge.target for edge in graph.outgoing(parallel)}
        meets = bool(targets) and targets <= above.keys()
        found[parallel] = _join(graph, parallel, targets, found, above) if meets else None
    return Joins(found, above)


def _join(
    graph: Graph,
    parallel: NodeId,
    targets: set[NodeId],
    known: Mapping[NodeId, NodeId | None],
    above: Mapping[NodeId, NodeId],
) -> NodeId | None:
    """Walks up from a parallel node. A fan_in that a later fan-out ends in is that one's."""
    nearest: NodeId | None = None
    name = above[parallel]
    while name != _END:
        if name not in targets:
            if graph.nodes[name].kind == FAN_IN:
                return name
            nearest = nearest or name
        inner = known.get(name)
        name = above[inner] if inner is not None else above[name]
    return nearest


def _post_dominators(graph: Graph) -> tuple[dict[NodeId, NodeId], dict[NodeId, int]]:
    """For each node from which an end can be reached: the next on all paths, and its depth.

    Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", on the reversed graph.
    """
    after = {name: [edge.target for edge in graph.outgoing(name)] for name in graph.nodes}
    for name, node in graph.nodes.items():
        if not after[name] or node.kind == EXIT:
            after[name] = [_END]
    order = _finished_first(after)
    number = {name: index for index, name in enumerate(order)}
    above: dict[NodeId, NodeId] = {_END: _END}
    changed = True
    while changed:
        changed = False
        for name in reversed(order[:-1]):
            met: NodeId | None = None
            for target in after[name]:
                if target in above:
                    met = target if met is None else _meet(met, target, above, number)
            if met is not None and above.get(name) != met:
                above[name], changed = met, True
    depth = {_END: 0}
    for name in reversed(order[:-1]):
        depth[name] = depth.get(above[name], 0) + 1
    return above, depth


def _meet(
    left: NodeId,
    right: NodeId,
    above: Mapping[NodeId, NodeId],
    number: Mapping[NodeId, int],
) -> NodeId:
    while left != right:
        while number[left] < number[right]:
            left = above[left]
        while number[right] < number[left]:
            right = above[right]
    return left


def _finished_first(after: Mapping[NodeId, list[NodeId]]) -> list[NodeId]:
    """The nodes from which an end is reached, in postorder of the reversed graph."""
    before: dict[NodeId, list[NodeId]] = {}
    for name, targets in after.items():
        for target in targets:
            before.setdefault(target, []).append(name)
    order: list[NodeId] = []
    seen = {_END}
    stack = [(_END, iter(before.get(_END, ())))]
    while stack:
        name, rest = stack[-1]
        for source in rest:
            if source not in seen:
                seen.add(source)
                stack.append((source, iter(before.get(source, ()))))
                break
        else:
            order.append(name)
            stack.pop()
    return order


def fan_out(graph: Graph, parallel: NodeId, join: NodeId) -> FanOut:
    """The branches of a parallel node; a node may stand in two of them, which is an error."""
    return FanOut(
        node=parallel,
        join=join,
        branches={
            edge.target: _region(graph, edge.target, {parallel, join})
            for edge in graph.outgoing(parallel)
        },
    )


def _region(graph: Graph, begin: NodeId, borders: set[NodeId]) -> frozenset[NodeId]:
    seen = {begin} - borders
    waiting = list(seen)
    while waiting:
        for edge in graph.outgoing(waiting.pop()):
            if edge.target not in seen and edge.target not in borders:
                seen.add(edge.target)
                waiting.append(edge.target)
    return frozenset(seen)


class Trespass(NamedTuple):
    """What breaks the order of a region: a node of two branches, or an edge across its border."""

    node: NodeId | None
    edge: Edge | None


def trespasses(
    graph: Graph, found: FanOut, joins: Joins, incoming: Mapping[NodeId, Sequence[Edge]]
) -> list[Trespass]:
    """All that is wrong with a region."""
    branch_of: dict[NodeId, NodeId] = {}
    shared: set[NodeId] = set()
    for branch, nodes in found.branches.items():
        for node in nodes:
            if branch_of.setdefault(node, branch) != branch:
                shared.add(node)
    wrong: list[Trespass] = []
    heads: set[NodeId] = set()
    for edge in graph.outgoing(found.node):
        if edge.target in heads:
            wrong.append(Trespass(None, edge))
        heads.add(edge.target)
    for node, branch in branch_of.items():
        sources = incoming.get(node, ())
        # Where branches have flowed together, the nodes after that need no report of their own.
        if node in shared and any(edge.source not in shared for edge in sources):
            wrong.append(Trespass(node, None))
        into = [edge for edge in sources if edge.source not in branch_of]
        out = [edge for edge in graph.outgoing(node) if edge.target not in branch_of]
        wrong += [Trespass(None, edge) for edge in into if edge.source != found.node]
        wrong += [Trespass(None, edge) for edge in out if edge.target != found.join]
        inner = joins.of.get(node)
        if inner is not None and branch_of.get(inner) != branch:
            wrong.append(Trespass(node, None))
    return wrong
