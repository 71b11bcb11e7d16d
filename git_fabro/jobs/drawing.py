"""A graph as text, as DOT, as JSON; of a run with statuses, visits and the path taken."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from git_fabro.workflow import graph as kinds
from git_fabro.workflow.graph import Edge, Graph, Node
from git_fabro.workflow.state import FAIL, PARTIAL, RunState

_SHAPES = {
    kinds.START: "Mdiamond",
    kinds.EXIT: "Msquare",
    kinds.AGENT: "box",
    kinds.PROMPT: "tab",
    kinds.COMMAND: "parallelogram",
    kinds.HUMAN: "hexagon",
    kinds.CONDITIONAL: "diamond",
    kinds.PARALLEL: "component",
    kinds.FAN_IN: "tripleoctagon",
    kinds.WAIT: "insulator",
    kinds.MANAGER: "house",
}
_COLOURS = {FAIL: "#f4b6b6", PARTIAL: "#f4e3b6"}
_GOOD, _NEXT = "#bfe3bf", "#b6d4f4"


def text(graph: Graph, state: RunState | None) -> Iterator[tuple[tuple[str, str], ...]]:
    """One line a node, from the start on, with its edges below it.

    A line is parts of text, each with the status whose colour it is to have, "" for none.
    """
    for node in _in_order(graph):
        yield (f"{node.id} ({node.kind})", ""), (_told(node, state), _status(node, state) or "")
        for edge in graph.outgoing(node.id):
            mark = "=>" if state is not None and _was_taken(edge, state) else "->"
            yield ((f"  {mark} {edge.target}{_words(edge)}", ""),)


def _in_order(graph: Graph) -> Iterator[Node]:
    """The nodes as they are reached from the start, then what cannot be reached."""
    seen = dict.fromkeys([graph.start])
    waiting = [graph.start]
    while waiting:
        for edge in graph.outgoing(waiting.pop(0)):
            if edge.target not in seen:
                seen[edge.target] = None
                waiting.append(edge.target)
    for name in [*seen, *(name for name in graph.nodes if name not in seen)]:
        yield graph.nodes[name]


def _told(node: Node, state: RunState | None) -> str:
    if state is None:
        return ""
    line = state.line
    outcome, visits = line.node_outcomes.get(node.id), line.node_visits.get(node.id, 0)
    if line.next_node_id == node.id:
        return " next" if outcome is None else f" {outcome.text}, next"
    if outcome is None:
        return ""
    return f" {outcome.text}" + (f" x{visits}" if visits > 1 else "")


def _was_taken(edge: Edge, state: RunState) -> bool:
    """Whether the path so far went from one end to the other, one directly behind the other."""
    done = [*state.line.completed_nodes, *filter(None, [state.line.next_node_id])]
    return (edge.source, edge.target) in pairwise(done)


def _words(edge: Edge) -> str:
    parts = [f'"{edge.label}"'] if edge.label else []
    if edge.condition is not None:
        parts.append("(conditional)")
    if edge.loop_restart:
        parts.append("(loop restart)")
    if edge.freeform:
        parts.append("(free text)")
    return f" {' '.join(parts)}" if parts else ""


def dot(graph: Graph, state: RunState | None) -> str:
    """The graph for Graphviz."""
    lines = [f"digraph {_quoted(graph.name or 'workflow')} {{"]
    for node in _in_order(graph):
        label = node.label + (f"\n{_told(node, state).strip()}" if _told(node, state) else "")
        attributes = [f"shape={_SHAPES.get(node.kind, 'box')}", f"label={_quoted(label)}"]
        colour = _colour(node, state)
        if colour is not None:
            attributes += ["style=filled", f"fillcolor={_quoted(colour)}"]
        lines.append(f"  {_quoted(node.id)} [{', '.join(attributes)}]")
    for edge in graph.edges:
        attributes = [f"label={_quoted(edge.label)}"] if edge.label else []
        attributes += ["style=dashed"] if edge.condition is not None else []
        attributes += ["penwidth=3"] if state is not None and _was_taken(edge, state) else []
        lines.append(
            f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [{', '.join(attributes)}]"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _colour(node: Node, state: RunState | None) -> str | None:
    if state is None:
        return None
    if state.line.next_node_id == node.id:
        return _NEXT
    outcome = state.line.node_outcomes.get(node.id)
    return None if outcome is None else _COLOURS.get(outcome.status, _GOOD)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def document(graph: Graph, state: RunState | None) -> dict[str, object]:
    """Nodes and edges as JSON."""
    nodes = [
        {
            "id": node.id,
            "kind": node.kind,
            "label": node.label,
            "status": _status(node, state),
            "visits": state.line.node_visits.get(node.id, 0) if state is not None else 0,
        }
        for node in _in_order(graph)
    ]
    edges = [
        {
            "source": edge.source,
            "target": edge.target,
            "label": edge.label,
            "conditional": edge.condition is not None,
            "taken": state is not None and _was_taken(edge, state),
        }
        for edge in graph.edges
    ]
    return {"name": graph.name, "goal": graph.goal, "nodes": nodes, "edges": edges}


def _status(node: Node, state: RunState | None) -> str | None:
    outcome = state.line.node_outcomes.get(node.id) if state is not None else None
    return outcome.text if outcome is not None else None
