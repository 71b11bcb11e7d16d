"""The five steps that choose an edge, and what follows a failure that has none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from git_fabro.workflow import routing
from git_fabro.workflow.graph import Graph, NodeId
from git_fabro.workflow.routing import Route
from git_fabro.workflow.state import Json, Line, Outcome
from tests.workflow.graphs import BAD, OK, graph_of

NODES = "a; b; c; d; start -> a; b -> exit; c -> exit; d -> exit;"


def chosen(
    edges: str,
    outcome: Outcome = OK,
    *,
    node: str = "a",
    draw: float = 0.0,
    nodes: str = NODES,
    **context: Json,
) -> tuple[str, str] | None:
    """Target and reason of the way out of a node."""
    graph = graph_of(nodes + edges)
    known = {"outcome": outcome.text, **context}
    found = routing.choose(graph, graph.nodes[NodeId(node)], outcome, known.get, draw=draw)
    return None if found is None else (str(found.target), found.reason)


def prefers(label: str, *suggested: str) -> Outcome:
    return Outcome(status="success", preferred_label=label, suggested_next_ids=suggested)


@pytest.mark.parametrize(
    ("edges", "outcome", "target", "reason"),
    [
        pytest.param(
            'a -> b [condition="outcome=success"]; a -> c [weight=50]',
            OK,
            "b",
            "condition",
            id="a condition beats a weight",
        ),
        pytest.param(
            'a -> b [condition="outcome=success"]; a -> c [label=go]',
            prefers("go", "c"),
            "b",
            "condition",
            id="a condition beats a label",
        ),
        pytest.param(
            'a -> b [condition="outcome=success"]; '
            'a -> c [condition="outcome!=fail", weight=1]; a -> d',
            OK,
            "c",
            "condition",
            id="of true conditions the highest weight",
        ),
        pytest.param(
            'a -> c [condition="outcome=success"]; a -> b [condition="outcome!=fail"]; a -> d',
            OK,
            "b",
            "condition",
            id="of equal ones the smallest target",
        ),
        pytest.param(
            'a -> b [condition="outcome=success"]; a -> d; a -> c',
            BAD,
            "c",
            "lexical",
            id="a false condition does not count",
        ),
        pytest.param(
            'a -> b [condition="  "]; a -> c [weight=-1]',
            OK,
            "b",
            "weight",
            id="an empty condition is none",
        ),
        pytest.param(
            'a -> b [weight=9]; a -> c [label="[S] Ship"]',
            prefers(" SHIP "),
            "c",
            "preferred_label",
            id="a label beats a weight",
        ),
        pytest.param(
            'a -> c [label="S) ship"]; a -> b [label="ship"]; a -> d [weight=9]',
            prefers("s - Ship"),
            "c",
            "preferred_label",
            id="of equal labels the first in the file",
        ),
        pytest.param(
            "a -> b [label=go]; a -> c",
            prefers("go", "c"),
            "b",
            "preferred_label",
            id="a label beats a suggestion",
        ),
        pytest.param(
            'a -> b [label=go, condition="outcome=fail"]; a -> c; a -> d',
            prefers("go"),
            "c",
            "lexical",
            id="the label of a conditional edge does not count",
        ),
        pytest.param(
            "a -> b [weight=9]; a -> c; a -> d",
            prefers("", "nope", "d", "c"),
            "d",
            "suggested_id",
            id="the first suggestion that has an edge",
        ),
        pytest.param(
            'a -> b; a -> c [condition="outcome=fail"]',
            prefers("", "c"),
            "b",
            "weight",
            id="a suggestion over a conditional edge does not count",
        ),
        pytest.param(
            "a -> b [weight=1]; a -> c [weight=3]; a -> d [weight=2]",
            OK,
            "c",
            "weight",
            id="the highest weight",
        ),
        pytest.param("a -> b [weight=-2]; a -> c", OK, "c", "weight", id="0 beats a negative one"),
        pytest.param("a -> d; a -> c; a -> b", OK, "b", "lexical", id="the smallest target"),
        pytest.param("a -> d", OK, "d", "weight", id="the only edge"),
        pytest.param(
            "a -> b", prefers("nothing like it", "nor"), "b", "weight", id="a label that leads to"
        ),
    ],
)
def test_each_step_is_tried_if_the_earlier_gave_nothing(
    edges: str, outcome: Outcome, target: str, reason: str
) -> None:
    assert chosen(edges, outcome) == (target, reason)


def test_targets_are_compared_by_code_point() -> None:
    nodes = "a; k2; k10; K3; start -> a; k2 -> exit; k10 -> exit; K3 -> exit;"

    assert chosen("a -> k2; a -> k10; a -> K3", nodes=nodes) == ("K3", "lexical")
    assert chosen("a -> k2; a -> k10", nodes=nodes) == ("k10", "lexical")


def test_nothing_is_chosen_where_no_condition_holds() -> None:
    assert chosen('a -> b [condition="outcome=fail"]; a -> c [condition=red]') is None


@pytest.mark.parametrize(
    ("draw", "target"),
    [
        pytest.param(0.0, "b", id="first"),
        pytest.param(0.19, "b", id="end-of-the-first"),
        pytest.param(0.2, "c", id="second"),
        pytest.param(0.79, "c", id="end-of-the-second"),
        pytest.param(0.8, "d", id="third"),
        pytest.param(0.999, "d", id="end-of-the-third"),
    ],
)
def test_a_random_choice_is_in_proportion_to_weight(draw: float, target: str) -> None:
    nodes = NODES.replace("a;", "a [selection=random];", 1)
    edges = "a -> b [weight=1]; a -> c [weight=3]; a -> d [weight=-7]"

    assert chosen(edges, draw=draw, nodes=nodes) == (target, "random")


def test_a_random_choice_is_made_only_where_there_is_one() -> None:
    nodes = NODES.replace("a;", "a [selection=random];", 1)

    assert chosen("a -> b [label=go]; a -> c", prefers("go"), nodes=nodes, draw=0.9) == (
        "b",
        "preferred_label",
    )
    assert chosen("a -> b", nodes=nodes, draw=0.9) == ("b", "weight")


def test_the_draw_of_a_random_choice_is_kept() -> None:
    graph = graph_of(NODES.replace("a;", "a [selection=random];", 1) + "a -> b; a -> c")

    found = routing.choose(graph, graph.nodes[NodeId("a")], OK, {}.get, draw=0.75)

    assert found == Route(NodeId("c"), "random", graph.outgoing(NodeId("a"))[1], 0.75)


GATE = "q [shape=hexagon]; b; c; start -> q; b -> exit; c -> exit; q -> b [label=Yes];"


def test_a_failed_gate_takes_an_edge_only_by_its_condition() -> None:
    assert chosen("", BAD, node="q", nodes=GATE) is None
    assert chosen("", replace(BAD, preferred_label="yes"), node="q", nodes=GATE) is None
    assert chosen('q -> c [condition="outcome=fail"]', BAD, node="q", nodes=GATE) == (
        "c",
        "condition",
    )


def test_an_answer_goes_to_its_own_target_where_two_choices_read_alike() -> None:
    nodes = "q [shape=hexagon]; b; c; start -> q; b -> exit; c -> exit;"
    edges = 'q -> b [label="[1] Again"]; q -> c [label="[2] Again"]'

    assert chosen(edges, prefers("Again", "c"), node="q", nodes=nodes) == ("c", "preferred_label")
    assert chosen(edges, prefers("Again", "b"), node="q", nodes=nodes) == ("b", "preferred_label")


def test_the_answer_of_a_choice_without_label_is_no_other_choices_label() -> None:
    nodes = "q [shape=hexagon]; b; c; start -> q; b -> exit; c -> exit;"

    assert chosen("q -> b [label=c]; q -> c", prefers("c", "c"), node="q", nodes=nodes) == (
        "c",
        "suggested_id",
    )


TARGETS = """
    a [retry_target=b, fallback_retry_target=c]; b; c; d; e
    start -> a; b -> exit; c -> exit; d -> exit; e -> exit
    a -> exit [condition="outcome=success"]
"""


@pytest.mark.parametrize(
    ("drop", "target"),
    [
        pytest.param((), "b", id="the node's target"),
        pytest.param(("retry_target=b,",), "c", id="the node's fallback"),
        pytest.param(("retry_target=b,", "fallback_retry_target=c"), "d", id="the graph's target"),
        pytest.param(("retry_target=b", "fallback_retry_target=c"), "d", id="unknown names"),
    ],
)
def test_a_failure_without_an_edge_jumps_to_the_first_target(
    drop: tuple[str, ...], target: str
) -> None:
    body = TARGETS
    for text in drop:
        body = body.replace(text, "" if drop[0].endswith(",") else f"{text[:-1]}nowhere")
    graph = graph_of(body, retry_target="d", fallback_retry_target="e")

    assert way(graph, "a", BAD) == (target, "retry_target")


def way(graph: Graph, node: str, outcome: Outcome, line: Line | None = None) -> tuple[str, str]:
    known: dict[str, Json] = {"outcome": outcome.text}
    if line is None:
        line = Line(
            completed_nodes=("start", node),
            node_outcomes={"start": OK, node: outcome},
        )
    found = routing.route(graph, graph.nodes[NodeId(node)], line, outcome, known.get, draw=0.0)
    return str(found.target), found.reason


def test_a_retry_target_comes_after_an_unconditional_edge() -> None:
    graph = graph_of("a [retry_target=b]; b; start -> a; a -> exit; b -> a")

    assert way(graph, "a", BAD) == ("exit", "weight")


def test_a_retry_target_is_for_failures_only() -> None:
    graph = graph_of('a [retry_target=a]; start -> a; a -> exit [condition="outcome=fail"]')

    assert way(graph, "a", OK) == ("None", "no_edge")
    assert way(graph, "a", Outcome(status="skipped")) == ("None", "no_edge")


BEHIND = """
    a [retry_target=r]; r; b; g [shape=diamond]; h [shape=diamond]
    start -> a; a -> g; g -> h; r -> a; b -> exit
    h -> exit [condition="outcome=success"]
"""


def test_behind_conditionals_the_failed_node_is_the_one_before_them() -> None:
    graph = graph_of(BEHIND)
    line = Line(
        completed_nodes=("start", "a", "g", "h"),
        node_outcomes={"start": OK, "a": BAD, "g": OK, "h": OK},
    )

    found = routing.route(
        graph, graph.nodes[NodeId("h")], line, OK, {"outcome": "fail"}.get, draw=0.0
    )

    assert (found.target, found.reason) == ("r", "retry_target")
    assert routing.inherited(graph, line) == ("a", BAD)


def test_directly_after_the_start_success_is_inherited() -> None:
    graph = graph_of(BEHIND)

    assert routing.inherited(graph, Line(completed_nodes=("start",))) == (None, OK)


EXITS = """
    a [retry_target=r]; r; b; g [shape=diamond]; start -> a; r -> a; b -> exit
    g -> exit [condition="outcome=success"]; g -> b
"""


@pytest.mark.parametrize(
    ("edge", "target", "reason"),
    [
        pytest.param("a -> b", "None", "on_failure", id="unconditional edge"),
        pytest.param("a -> g", "g", "weight", id="edge to a conditional"),
        pytest.param('a -> b [condition="outcome=fail"]', "b", "condition", id="condition"),
        pytest.param('a -> b [condition="outcome=success"]', "None", "on_failure", id="nothing"),
    ],
)
def test_with_exit_only_a_condition_goes_on_after_a_failure(
    edge: str, target: str, reason: str
) -> None:
    graph = graph_of(EXITS + edge, on_failure="exit")

    assert way(graph, "a", BAD) == (target, reason)


def test_with_exit_a_conditional_behind_a_failure_has_no_way_without_condition() -> None:
    graph = graph_of(EXITS + "a -> g", on_failure="exit")
    line = Line(completed_nodes=("start", "a", "g"), node_outcomes={"a": BAD, "g": OK})

    found = routing.route(
        graph, graph.nodes[NodeId("g")], line, OK, {"outcome": "fail"}.get, draw=0.0
    )

    assert found == Route(None, "on_failure")


GOALS = """
    a [goal_gate=true, retry_target=b]; b [goal_gate=true, retry_target=exit]
    c [goal_gate=true]; start -> a -> b -> c -> exit
"""


@pytest.mark.parametrize(
    ("completed", "outcomes", "gate"),
    [
        pytest.param("a b c", {"a": OK, "b": OK, "c": OK}, None, id="all good"),
        pytest.param(
            "a b", {"a": OK, "b": Outcome(status="partial_success")}, None, id="partly is good"
        ),
        pytest.param("b a", {"a": BAD, "b": BAD}, "b", id="in order of completion"),
        pytest.param("a", {"a": Outcome(status="skipped")}, "a", id="skipped is not good"),
        pytest.param("a b a", {"a": OK, "b": BAD}, "b", id="the last status counts"),
        pytest.param("", {}, None, id="what was not visited does not count"),
    ],
)
def test_the_first_goal_gate_that_is_not_good(
    completed: str, outcomes: dict[str, Outcome], gate: str | None
) -> None:
    line = Line(completed_nodes=tuple(completed.split()), node_outcomes=outcomes)

    assert routing.unsatisfied_gate(graph_of(GOALS), line) == gate


def test_a_goal_gate_never_sends_to_the_exit() -> None:
    graph = graph_of(GOALS)
    with_target = graph_of(GOALS, retry_target="exit", fallback_retry_target="c")

    assert routing.gate_target(graph, NodeId("a")) == "b"
    assert routing.gate_target(graph, NodeId("b")) is None
    assert routing.gate_target(graph, NodeId("c")) is None
    assert routing.gate_target(with_target, NodeId("b")) == "c"
