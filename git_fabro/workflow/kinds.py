"""Which kind a node is, and the graph that a draft makes once that is known.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from git_fabro.workflow import graph
from git_fabro.workflow.diagnostic import Findings, quoted
from git_fabro.workflow.draft import Draft, DraftEdge, DraftNode
from git_fabro.workflow.graph import Edge, Graph, Node, NodeId, Scalar
from git_fabro.workflow.stylesheet import Stylesheet, properties_of
from git_fabro.workflow.values import Meant

_SHAPES = {
    "Mdiamond": graph.START,
    "Msquare": graph.EXIT,
    "box": graph.AGENT,
    "tab": graph.PROMPT,
    "parallelogram": graph.COMMAND,
    "hexagon": graph.HUMAN,
    "diamond": graph.CONDITIONAL,
    "component": graph.PARALLEL,
    "tripleoctagon": graph.FAN_IN,
    "insulator": graph.WAIT,
    "house": graph.MANAGER,
}
_SHAPE_OF = {kind: shape for shape, kind in _SHAPES.items()}
_TYPES = {
    "start": graph.START,
    "exit": graph.EXIT,
    "agent": graph.AGENT,
    "codergen": graph.AGENT,
    "agent_loop": graph.AGENT,
    "prompt": graph.PROMPT,
    "one_shot": graph.PROMPT,
    "command": graph.COMMAND,
    "tool": graph.COMMAND,
    "human": graph.HUMAN,
    "wait.human": graph.HUMAN,
    "conditional": graph.CONDITIONAL,
    "parallel": graph.PARALLEL,
    "fan_in": graph.FAN_IN,
    "parallel.fan_in": graph.FAN_IN,
    "wait": graph.WAIT,
    "manager": graph.MANAGER,
    "stack.manager_loop": graph.MANAGER,
}
#: The ids that make a node the start or the exit where no type and no shape does.
_ENDS = {graph.START: ("start", "Start"), graph.EXIT: ("exit", "Exit", "end", "End")}


@dataclass(frozen=True, slots=True)
class Models:
    """What decides a node's model besides its own attributes, the stronger first."""

    sheet: Stylesheet
    chosen: Mapping[str, str]  # of the command line or the settings
    default: Mapping[str, str]  # of the graph


def decide_kinds(draft: Draft, registered: frozenset[str], findings: Findings) -> dict[NodeId, str]:
    """The kind of each node; unknown shapes and types are reported."""
    words = {**{kind: kind for kind in registered}, **_TYPES}
    kinds = {name: _kind(node, words) for name, node in draft.nodes.items()}
    for kind, names in _ENDS.items():
        if kind not in kinds.values():
            named = next((NodeId(name) for name in names if name in kinds), None)
            if named is not None:
                kinds[named] = kind
    for name, node in draft.nodes.items():
        for what, known in (("type", words), ("shape", _SHAPES)):
            meant = _type(node) if what == "type" else node.meant.get("shape")
            if meant is not None and meant.value not in known:
                message = f"unknown {what} {quoted(str(meant.value))}, treated as {kinds[name]}"
                findings.warning(f"{what}_known", meant.offset, message)
    return kinds


def _kind(node: DraftNode, words: Mapping[str, str]) -> str:
    given, shape = _type(node), node.meant.get("shape")
    if given is not None and str(given.value) in words:
        return words[str(given.value)]
    if shape is not None:
        return _SHAPES.get(str(shape.value), graph.AGENT)
    return graph.COMMAND if "script" in node.meant else graph.AGENT


def _type(node: DraftNode) -> Meant | None:
    return node.meant.get("type", node.meant.get("node_type"))


def build(
    name: str,
    draft: Draft,
    edges: list[DraftEdge],
    kinds: Mapping[NodeId, str],
    findings: Findings,
) -> Graph:
    """The graph of a draft and those of its edges whose ends are declared.

    The start, or the exit, is empty where there is not exactly one.
    """
    return Graph(
        name=name,
        attributes={key: meant.value for key, meant in draft.attributes.items()},
        nodes={
            NodeId(id_): Node(
                id=NodeId(id_),
                kind=kinds[id_],
                attributes={key: meant.value for key, meant in node.meant.items()},
                classes=node.classes,
                subgraph_class=node.subgraph_class,
                place=findings.place(node.name.offset),
            )
            for id_, node in draft.nodes.items()
        },
        edges=tuple(_edge(edge, index, findings) for index, edge in enumerate(edges)),
        start=_only(kinds, graph.START),
        exit=_only(kinds, graph.EXIT),
    )


def _only(kinds: Mapping[NodeId, str], wanted: str) -> NodeId:
    found = [name for name, kind in kinds.items() if kind == wanted]
    return found[0] if len(found) == 1 else NodeId("")


def _edge(edge: DraftEdge, index: int, findings: Findings) -> Edge:
    values = {key: meant.value for key, meant in edge.meant.items()}
    weight = values.get("weight", 0)
    return Edge(
        source=NodeId(edge.source.id),
        target=NodeId(edge.target.id),
        index=index,
        label=str(values.get("label", "")),
        condition=edge.meant["condition"].condition if "condition" in edge.meant else None,
        weight=weight if isinstance(weight, int) else 0,
        fidelity=str(values.get("fidelity", "")),
        thread_id=str(values.get("thread_id", "")),
        loop_restart=values.get("loop_restart") is True,
        freeform=values.get("freeform") is True,
        place=findings.place(edge.target.offset),
    )


def with_models(node: Node, models: Models) -> Mapping[str, Scalar]:
    """A node's attributes with what its program is to be told of models."""
    shape = node.text("shape") or _SHAPE_OF.get(node.kind, "box")
    styled = properties_of(models.sheet, node.id, shape=shape, classes=node.classes)
    return {**models.default, **models.chosen, **styled, **node.attributes}
