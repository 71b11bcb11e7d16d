"""The workflow as values: nodes, edges, fan-outs, and the lookups on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NewType

from git_fabro.workflow.condition import Condition, names_outcome_words

NodeId = NewType("NodeId", str)

#: An attribute's value after coercion.
Scalar = str | int | float | bool

START, EXIT, AGENT, PROMPT, COMMAND = "start", "exit", "agent", "prompt", "command"
HUMAN, CONDITIONAL, PARALLEL, FAN_IN = "human", "conditional", "parallel", "fan_in"
WAIT, MANAGER = "wait", "manager"

#: Kinds that decide nothing of their own: an outcome passes through them (git-fabro-workflow(7)).
CONTROL_KINDS = frozenset({START, CONDITIONAL})


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a file: both counted from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step of the graph.

    ``attributes`` are typed by name: durations are seconds as float, prompts and
    labels have their variables replaced, aliases are folded into the first name of their row.
    """

    id: NodeId
    kind: str
    attributes: Mapping[str, Scalar]
    classes: tuple[str, ...] = ()
    subgraph_class: str | None = None  # of the nearest subgraph: a thread of last but one resort
    place: Place = Place(1, 1)

    def text(self, key: str, default: str = "") -> str:
        value = self.attributes.get(key, default)
        return value if isinstance(value, str) else str(value)

    def number(self, key: str) -> int | None:
        value = self.attributes.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def seconds(self, key: str) -> float | None:
        """A duration in seconds; None where the attribute is absent."""
        value = self.attributes.get(key)
        return float(value) if isinstance(value, (int, float)) else None

    def flag(self, key: str) -> bool:
        return self.attributes.get(key) is True

    @property
    def label(self) -> str:
        return self.text("label") or self.id

    @property
    def is_control(self) -> bool:
        return self.kind in CONTROL_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An arrow; ``index`` is its place in file order, counted from 0 over the whole graph."""

    source: NodeId
    target: NodeId
    index: int
    label: str = ""
    condition: Condition | None = None
    weight: int = 0
    fidelity: str = ""
    thread_id: str = ""
    loop_restart: bool = False
    freeform: bool = False
    place: Place = Place(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """What a parallel node opens: its branches in file order and the node where they meet.

    ``branches`` maps a branch id (the target of its edge) to the nodes that belong to it, inner
    fan-outs included: ``{"api": frozenset({"api", "api_test"}), "docs": frozenset({"docs"})}``.
    """

    node: NodeId
    join: NodeId
    branches: Mapping[NodeId, frozenset[NodeId]]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A workflow without errors: one start, one exit, every edge between declared nodes."""

    name: str
    attributes: Mapping[str, Scalar]
    nodes: Mapping[NodeId, Node]
    edges: tuple[Edge, ...]
    start: NodeId
    exit: NodeId
    fan_outs: Mapping[NodeId, FanOut] = field(default_factory=dict)

    @cached_property
    def _outgoing(self) -> Mapping[NodeId, tuple[Edge, ...]]:
        found: dict[NodeId, list[Edge]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            found[edge.source].append(edge)
        return {node: tuple(edges) for node, edges in found.items()}

    def outgoing(self, node: NodeId) -> tuple[Edge, ...]:
        """The edges that leave a node, in file order."""
        return self._outgoing[node]

    def text(self, key: str, default: str = "") -> str:
        value = self.attributes.get(key, default)
        return value if isinstance(value, str) else str(value)

    def number(self, key: str, default: int) -> int:
        value = self.attributes.get(key, default)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    @property
    def goal(self) -> str:
        return self.text("goal")


def outcome_words(graph: Graph, node: NodeId) -> frozenset[str]:
    """The custom words that the conditions behind a node compare its outcome with.

    They stand on its own edges, and on those of conditionals that lead on from it.
    """
    words: frozenset[str] = frozenset()
    seen, waiting = {node}, [node]
    while waiting:
        for edge in graph.outgoing(waiting.pop()):
            if edge.condition is not None:
                words |= names_outcome_words(edge.condition)
            if graph.nodes[edge.target].kind == CONDITIONAL and edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
    return words
