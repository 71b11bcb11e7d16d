"""Failures, loops, limits: what the last attempt of a visit means, with draws given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from git_fabro.workflow import engine
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import Counted, Next
from git_fabro.workflow.state import Failure, Outcome, failed
from tests.workflow.graphs import AGAIN, BAD, OK, PARTLY, Walk, done, graph_of

BUSY = failed("busy", failure_class="transient_infra")
LATE = failed("too late", failure_class="timed_out")
NO = failed("no", failure_class="cancelled")
WRONG = failed("wrong", failure_class="structural")
FULL = failed("full", failure_class="budget_exhausted")


@pytest.mark.parametrize(
    ("attributes", "outcome", "status", "message"),
    [
        pytest.param("", OK, "success", None, id="success"),
        pytest.param("", AGAIN, "fail", "retries exhausted", id="retry"),
        pytest.param(
            "",
            failed("red", status="retry"),
            "fail",
            "retries exhausted: red",
            id="retry with a reason",
        ),
        pytest.param("allow_partial=true", AGAIN, "partial_success", None, id="allow_partial"),
        pytest.param("allow_partial=true", BAD, "fail", "exit status 1", id="not for a failure"),
        pytest.param("auto_status=true", BAD, "success", None, id="auto_status"),
        pytest.param("auto_status=true", AGAIN, "success", None, id="auto_status of a retry"),
        pytest.param("auto_status=true", PARTLY, "success", None, id="auto_status of partly"),
        pytest.param(
            "auto_status=true", Outcome(status="skipped"), "skipped", None, id="not of skipped"
        ),
        pytest.param(
            "auto_status=true, allow_partial=true", AGAIN, "success", None, id="both of them"
        ),
        pytest.param("", Outcome(status="fail"), "fail", "failed without a reason", id="no reason"),
    ],
)
def test_the_status_that_counts(
    attributes: str, outcome: Outcome, status: str, message: str | None
) -> None:
    graph = graph_of(f"a [{attributes}]; start -> a -> exit")

    settled = engine.settle(graph.nodes[NodeId("a")], outcome)

    assert settled.status == status
    assert (settled.failure.message if settled.failure else None) == message


def test_auto_status_keeps_the_original_in_the_notes() -> None:
    graph = graph_of("a [auto_status=true]; start -> a -> exit")
    walk = Walk(graph)
    walk.step()

    ended = walk.step(replace(BAD, notes="half done", word=""))

    assert ended.outcome == Outcome(
        status="success", notes="half done\nauto_status: was fail: exit status 1"
    )
    assert (ended.counted, ended.unhandled) == (None, ())


@pytest.mark.parametrize(
    ("message", "signature"),
    [
        ("Exit Status 17", "a|deterministic|exit status <n>"),
        ("at deadbeef1234 in 0x1f", "a|deterministic|at <hex> in <n>x<n>f"),
        ("  two\n\n lines\t", "a|deterministic|two lines"),
        ("x" * 300, "a|deterministic|" + "x" * 240),
        ("abcdef", "a|deterministic|abcdef"),
        ("1234567", "a|deterministic|<hex>"),
    ],
)
def test_a_signature_is_without_what_varies(message: str, signature: str) -> None:
    assert engine.signature(NodeId("a"), Failure(message)) == signature


def test_a_signature_of_the_agents_own_stands_for_the_reason() -> None:
    own = Failure("red 1", "deterministic", "Login Test 7")

    made = engine.signature(NodeId("a"), own)

    assert made == "a|deterministic|login test <n>"
    assert engine.signature(NodeId("a"), replace(own, signature=made)) == made


@pytest.mark.parametrize(
    ("outcome", "counted"),
    [
        (OK, None),
        (BAD, Counted(table="loop", signature="a|deterministic|exit status <n>")),
        (WRONG, Counted(table="loop", signature="a|structural|wrong")),
        (BUSY, None),
        (LATE, None),
        (NO, None),
        (FULL, None),
    ],
)
def test_failures_that_would_come_again_are_counted(
    outcome: Outcome, counted: Counted | None
) -> None:
    walk = Walk(graph_of("a; start -> a -> exit"))
    walk.step()

    assert walk.step(outcome).counted == counted


def test_a_gate_is_not_counted_and_a_join_that_merges_is() -> None:
    gate = Walk(graph_of('q [shape=hexagon]; start -> q; q -> exit [label="Yes"]'))
    fan = "s [shape=component]; a; b; start -> s; s -> a -> j; s -> b -> j; j -> exit;"
    with_join = Walk(graph_of(fan + "j [shape=tripleoctagon]"))
    without = Walk(graph_of(fan + "j"))
    for walk in (gate, with_join, without):
        walk.step()

    assert gate.step(BAD).counted is None
    assert with_join.step(BAD).counted is None
    assert without.step(BAD).counted == Counted(
        table="loop", signature="s|deterministic|exit status <n>"
    )


@pytest.mark.parametrize(("limit", "visits"), [("2", 2), ("3", 3), ("1", 1), ("0", 9)])
def test_the_limit_of_one_signature(limit: str, visits: int) -> None:
    body = 'a [max_visits=9]; start -> a; a -> a [condition="outcome=fail"]; a -> exit'
    walk = Walk(graph_of(body, loop_restart_signature_limit=limit))

    path = walk.through(a=BAD)

    assert path == "start" + " a" * visits
    assert walk.line.ended == ("visit_limit" if limit == "0" else "signature_limit")


def test_other_reasons_have_signatures_of_their_own() -> None:
    walk = Walk(graph_of('a; start -> a; a -> a [condition="outcome=fail"]; a -> exit'))
    walk.step()

    for reason in ("one", "two", "one", "two"):
        walk.step(failed(reason))
    ended = walk.step(failed("one"))

    assert (ended.next, ended.reason) == (None, "signature_limit")
    assert walk.line.loop_failure_signatures == {
        "a|deterministic|one": 3,
        "a|deterministic|two": 2,
    }


HANDLING = """
    a [retry_target=r]; b; r; g [shape=diamond]; h [shape=diamond]
    start -> a; g -> h; b -> exit; r -> exit; h -> exit [condition="outcome=success"]
"""


@pytest.mark.parametrize(
    ("edges", "path", "unhandled"),
    [
        pytest.param("a -> b", "start a b exit", ("a@1",), id="unconditional edge"),
        pytest.param('a -> b [condition="outcome=fail"]', "start a b exit", (), id="condition"),
        pytest.param('a -> b [condition="outcome=success"]', "start a r exit", (), id="target"),
        pytest.param("a -> g; h -> b", "start a g h b exit", ("a@1",), id="behind conditionals"),
        pytest.param(
            'a -> g; h -> b [condition="outcome=failed"]',
            "start a g h b exit",
            (),
            id="condition of a conditional",
        ),
        pytest.param("a -> g", "start a g h r exit", (), id="target behind conditionals"),
        pytest.param("a -> exit", "start a exit", ("a@1",), id="straight to the exit"),
    ],
)
def test_whether_a_failure_was_handled(edges: str, path: str, unhandled: tuple[str, ...]) -> None:
    walk = Walk(graph_of(HANDLING + edges))

    assert (walk.through(a=BAD), walk.line.unhandled) == (path, unhandled)


@pytest.mark.parametrize("outcome", [OK, PARTLY])
def test_a_later_good_visit_mends_a_failure(outcome: Outcome) -> None:
    walk = Walk(graph_of("a; b; start -> a -> b; b -> a; b -> exit [condition=done]"))
    walk.step()
    walk.step(BAD)
    walk.step(BAD)
    assert walk.line.unhandled == ("a@1", "b@1")

    walk.step(outcome)

    assert walk.line.unhandled == ("b@1",)


def test_a_conditional_passes_on_what_it_inherits() -> None:
    walk = Walk(graph_of(HANDLING + 'a -> g; h -> b [condition="outcome=failed"]'))
    walk.step()
    walk.step(replace(failed("red"), preferred_label="later"))
    before = walk.line.context_values
    walk.step()

    after = walk.line.context_values

    kept = ("outcome", "failure_class", "failure_signature", "preferred_label")
    assert {key: after[key] for key in kept} == {
        "outcome": "fail",
        "failure_class": "deterministic",
        "failure_signature": "a|deterministic|red",
        "preferred_label": "later",
    }
    assert (before["current_node"], after["current_node"]) == ("a", "g")
    assert after["internal.node_visit_count"] == 1


def test_a_custom_word_is_what_conditions_see() -> None:
    body = 'a; b; start -> a; b -> exit; a -> b [condition="outcome=port"]; a -> exit'
    walk = Walk(graph_of(body))
    walk.step()

    ended = walk.step(Outcome(status="success", word="port"))

    assert ended.next == Next(node="b", edge=2)
    assert walk.line.context_values["outcome"] == "port"


def test_conditions_see_values_whole() -> None:
    body = 'a; b; start -> a; b -> exit; a -> b [condition="text contains needle"]; a -> exit'
    walk = Walk(graph_of(body))
    walk.step()

    ended = engine.decide(
        walk.graph,
        walk.line,
        done("a", Outcome(status="success", context_updates={"text": "blob://sha256/1"})),
        draw=0.0,
        resolve=lambda value: "a needle" if value == "blob://sha256/1" else value,
    )

    assert ended.next == Next(node="b", edge=2)


RESTART = """
    a; b; start -> a -> b; b -> exit [condition="outcome=success"]
    b -> a [condition="outcome!=success", loop_restart=true]
"""


def test_a_restart_of_the_loop_empties_context_and_outcomes() -> None:
    walk = Walk(graph_of(RESTART), {"given": 1})
    walk.step()
    walk.step(Outcome(status="success", context_updates={"made": 2, "given": 3}))

    ended = walk.step(Outcome(status="success", word="again"))

    assert ended.next == Next(node="a", edge=3, loop_restart=True)
    line = walk.line
    assert (line.context_values, line.completed_nodes, line.node_outcomes) == ({"given": 1}, (), {})
    assert line.node_visits == {"start": 1, "a": 1, "b": 1}


def test_a_restart_after_a_failure_is_for_transient_ones_only() -> None:
    transient, other = Walk(graph_of(RESTART)), Walk(graph_of(RESTART))
    for walk in (transient, other):
        walk.step()
        walk.step()

    ended = transient.step(LATE)

    assert ended.counted == Counted(table="restart", signature="b|timed_out|too late")
    assert transient.line.next_node_id == "a"
    refused = other.step(BAD)
    assert (refused.next, refused.reason) == (None, "structural")


@pytest.mark.parametrize(
    ("attributes", "graph", "runs"),
    [
        ("max_visits=3", {}, 3),
        ("", {"max_node_visits": "4"}, 4),
        ("max_visits=6", {"max_node_visits": "2"}, 6),
        ("max_visits=1", {}, 1),
    ],
)
def test_a_node_runs_as_often_as_its_limit_says(
    attributes: str, graph: dict[str, str], runs: int
) -> None:
    body = f"a [{attributes}]; start -> a; a -> a; a -> exit [condition=done]"
    walk = Walk(graph_of(body, **graph))

    assert walk.through() == "start" + " a" * runs
    assert walk.line.ended == "visit_limit"


@pytest.mark.parametrize(
    ("number", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd")]
)
def test_ordinals(number: int, word: str) -> None:
    graph = graph_of("a [max_visits=1]; start -> a -> exit")
    line = replace(Walk(graph).line, node_visits={"a": number - 1})

    assert engine.limit_message(graph, line, NodeId("a")).endswith(f"would run a {word} time")
