"""Loops of a graph that no visit limit ends."""

from __future__ import annotations

from collections.abc import Mapping

from git_fabro.workflow.graph import Graph, NodeId


def loops(graph: Graph) -> list[tuple[NodeId, ...]]:
    """A shortest loop of each knot of nodes without a limit, from its first node in file order."""
    after = {
        name: [edge.target for edge in graph.outgoing(name) if not _limited(graph, edge.target)]
        for name in graph.nodes
        if not _limited(graph, name)
    }
    component = _components(after)
    found: dict[NodeId, tuple[NodeId, ...]] = {}
    for name in after:
        if component[name] not in found:
            loop = _loop_from(name, after, component)
            if loop:
                found[component[name]] = loop
    return list(found.values())


def _limited(graph: Graph, name: NodeId) -> bool:
    return (graph.nodes[name].number("max_visits") or 0) > 0


def _loop_from(
    begin: NodeId, after: Mapping[NodeId, list[NodeId]], component: Mapping[NodeId, NodeId]
) -> tuple[NodeId, ...]:
    came_from: dict[NodeId, NodeId] = {}
    waiting = [begin]
    for name in waiting:
        for target in after[name]:
            if target == begin:
                path = [name]
                while path[-1] != begin:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if component[target] == component[begin] and target not in came_from:
                came_from[target] = name
                waiting.append(target)
    return ()


def _components(after: Mapping[NodeId, list[NodeId]]) -> dict[NodeId, NodeId]:
    """For each node the first found of those that it can go to and come back from.

    Source: Sharir's algorithm (Kosaraju), with stacks of its own in place of recursion.
    """
    before: dict[NodeId, list[NodeId]] = {name: [] for name in after}
    for name, targets in after.items():
        for target in targets:
            before[target].append(name)
    component: dict[NodeId, NodeId] = {}
    for root in reversed(_postorder(after)):
        if root in component:
            continue
        component[root] = root
        waiting = [root]
        while waiting:
            for source in before[waiting.pop()]:
                if source not in component:
                    component[source] = root
                    waiting.append(source)
    return component


def _postorder(after: Mapping[NodeId, list[NodeId]]) -> list[NodeId]:
    order: list[NodeId] = []
    seen: set[NodeId] = set()
    for root in after:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(after[root]))]
        while stack:
            name, rest = stack[-1]
            target = next((one for one in rest if one not in seen), None)
            if target is None:
                order.append(name)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(after[target])))
    return order
