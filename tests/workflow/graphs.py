"""Graphs and lines for tests of the engine: values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from git_fabro.workflow import admission, engine
from git_fabro.workflow.admission import Source
from git_fabro.workflow.engine import Done
from git_fabro.workflow.fold import replay
from git_fabro.workflow.graph import Graph, NodeId
from git_fabro.workflow.records import (
    Event,
    NodeFinished,
    NodeStarted,
    Record,
    RunCreated,
    RunStarted,
)
from git_fabro.workflow.state import Json, Line, Outcome, Position, RunState, failed

OK, BAD = Outcome(status="success"), failed("exit status 1")
PARTLY, AGAIN = Outcome(status="partial_success"), Outcome(status="retry")


def graph_of(body: str, **attributes: str) -> Graph:
    """A graph from statements; ``start`` and ``exit`` are there, nodes are commands by default."""
    head = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    text = (
        f"digraph G {{\ngraph [{head}]\nstart [shape=Mdiamond]; exit [shape=Msquare]\n"
        f'node [shape=parallelogram, script="true"]\n{body}\n}}'
    )
    admitted = admission.admit(Source(text=text, file="g"))
    assert admitted.graph is not None, [str(one) for one in admitted.diagnostics]
    return admitted.graph


def at(node: str, visit: int = 1, attempt: int = 1, branch: str | None = None) -> Position:
    return Position(node=NodeId(node), visit=visit, attempt=attempt, branch=branch)


def done(node: str, outcome: Outcome = OK, visit: int = 1, **more: Any) -> Done:
    return Done(position=at(node, visit, more.pop("attempt", 1)), outcome=outcome, **more)


class Walk:
    """A run without a driver: nodes come to what a test says, routing and fold do the rest."""

    def __init__(self, graph: Graph, context: Mapping[str, Json] | None = None) -> None:
        self.graph = graph
        self.records: list[Record] = []
        self.state = RunState()
        self.tell(RunCreated(run_id="R", created_at="", digest="", context=dict(context or {})))
        self.tell(RunStarted(start=graph.start))

    def tell(self, event: Event, position: Position | None = None) -> None:
        number = len(self.records) + 1
        at = f"2026-01-01T00:00:{number // 1000:02d}.{number % 1000:03d}Z"
        record = Record(seq=number, at=at, event=event, position=position)
        self.records.append(record)
        self.state = replay([record], self.state)

    @property
    def line(self) -> Line:
        return self.state.line

    def step(self, outcome: Outcome = OK, *, draw: float = 0.0, **more: Any) -> NodeFinished:
        """The next node comes to this."""
        node = self.line.next_node_id
        assert node is not None, self.line.ended
        position = at(node, self.line.node_visits.get(node, 0) + 1)
        self.tell(NodeStarted(handler=self.graph.nodes[node].kind), position)
        ended = engine.decide(
            self.graph, self.line, Done(position=position, outcome=outcome, **more), draw=draw
        )
        self.tell(ended, position)
        return ended

    def through(self, **outcomes: Outcome) -> str:
        """Walks to the end; a node comes to what is given for it, else to success."""
        path = []
        while self.line.next_node_id is not None:
            path.append(self.line.next_node_id)
            self.step(outcomes.get(path[-1], OK))
        return " ".join(path)
