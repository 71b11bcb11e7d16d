"""Finding the routing object in what an agent says, and what it comes to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.handlers.response import ROUTING, last_object_with, verdict_of
from git_fabro.workflow.condition import parse
from git_fabro.workflow.graph import Edge, NodeId, outcome_words
from git_fabro.workflow.state import Failure, Outcome
from tests.handlers.calls import a_graph, a_node


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("done, nothing to add", None),
        ('{"outcome":"fail"}', {"outcome": "fail"}),
        ('{"outcome":"fail"} then {"outcome":"success"}.', {"outcome": "success"}),
        ('{"outcome":"fail"} then {"note":"no routing"}', {"outcome": "fail"}),
        ('```json\n{\n "outcome": "retry"\n}\n```\nBye.', {"outcome": "retry"}),
        ('{"context_updates":{"outcome":"x"}}', {"context_updates": {"outcome": "x"}}),
        ('{"a":{"outcome":"fail"}}', None),
        ('function f() { return {"outcome": "success"} }', None),
        ('{"notes":"a } and \\" {","outcome":"fail"}', {"notes": 'a } and " {', "outcome": "fail"}),
        ('if (x) {\n  y\n{"outcome":"fail"}', {"outcome": "fail"}),
        ('}}} {"outcome":"fail"} {', {"outcome": "fail"}),
        ('it\'s "quoted {"outcome":"fail"}', {"outcome": "fail"}),
        ('{ 5" wide\n{"outcome":"fail"}', {"outcome": "fail"}),
        ('{"notes":"two\nlines","outcome":"fail"}', {"notes": "two\nlines", "outcome": "fail"}),
        ("{'outcome': 'fail'}", None),
        ('{"outcome":"fail",}', None),
        ('["outcome"]', None),
        ('{"outcome":NaN,"notes":1e999}', {"outcome": "NaN", "notes": "1e999"}),
        ('{"preferred_label":"x"}', {"preferred_label": "x"}),
        ('{"outcome":"a"}{"outcome":"b"}', {"outcome": "b"}),
        ('x{"outcome":"fail"}y{"outcome":"un', {"outcome": "fail"}),
    ],
)
def test_the_last_outermost_object_with_a_routing_field_counts(text, found) -> None:
    assert last_object_with(text, ROUTING) == found


BEFORE = st.lists(st.sampled_from(["word ", "\n", "{", "}", "'", "`", "[", "\\", "é"]), max_size=30)


@given(BEFORE, st.dictionaries(st.text(), st.text() | st.none() | st.integers(), max_size=4))
def test_an_object_on_a_line_of_its_own_is_found_after_any_text(before, more) -> None:
    said = {**more, "outcome": "fail"}
    prose = "".join(before).replace("}", "") + "\n"

    assert last_object_with(prose + json.dumps(said), ROUTING) == said


@given(BEFORE, st.text(alphabet="word \n", max_size=20))
def test_what_follows_does_not_hide_it(before, after) -> None:
    text = "".join(before).replace("{", "") + '{"outcome":"retry"}' + after

    assert last_object_with(text, ROUTING) == {"outcome": "retry"}


@given(st.text(alphabet='{}"\\:,outcme \n', max_size=200))
def test_any_text_is_read(text: str) -> None:
    found = last_object_with(text, ROUTING)

    assert found is None or not ROUTING.isdisjoint(found)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "hostile",
    ["{", "}", '"', '{"', '{"a":', '{"outcome":', "{}", '{"a":[', '\\"{', "{\n", '{"a":{}', "[{"],
)
def test_hostile_text_is_read_in_linear_time(hostile: str) -> None:
    text = hostile * (1_000_000 // len(hostile))

    assert last_object_with(text, ROUTING) is None
    assert last_object_with(text + "}" * 500_000, ROUTING) is None


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ({}, Outcome(status="success")),
        ({"outcome": "succeeded"}, Outcome(status="success")),
        ({"outcome": " Partially_Succeeded "}, Outcome(status="partial_success")),
        ({"outcome": "skipped"}, Outcome(status="skipped")),
        ({"status": "failed"}, Outcome(status="fail", failure=Failure("the agent said fail"))),
        ({"outcome": "success", "status": "fail"}, Outcome(status="success")),
        ({"failure_reason": "red"}, Outcome(status="fail", failure=Failure("red"))),
        ({"outcome": None, "failure_reason": ""}, Outcome(status="success")),
        ({"outcome": "success", "failure_reason": "red"}, Outcome(status="success")),
        (
            {"outcome": "retry", "failure_class": "transient_infra"},
            Outcome(status="retry", failure=Failure("the agent said retry", "transient_infra")),
        ),
        (
            {"outcome": "fail", "failure_reason": "no", "failure_class": "Canceled"},
            Outcome(status="fail", failure=Failure("no", "cancelled")),
        ),
        (
            {"outcome": "fail", "failure_reason": ["a"], "failure_class": "odd"},
            Outcome(status="fail", failure=Failure('["a"]', "deterministic")),
        ),
        ({"outcome": "port"}, Outcome(status="success", word="port")),
        (
            {"outcome": "failure"},
            Outcome(
                status="fail",
                failure=Failure(
                    'unknown outcome "failure" (known: '
                    "fail, partial_success, retry, skipped, success, port)"
                ),
            ),
        ),
        ({"outcome": True}, None),
        (
            {"preferred_next_label": " Ship ", "preferred_label": "no"},
            Outcome(status="success", preferred_label="Ship"),
        ),
        ({"preferred_label": "Ship"}, Outcome(status="success", preferred_label="Ship")),
        ({"suggested_next_ids": "a"}, Outcome(status="success", suggested_next_ids=("a",))),
        (
            {"suggested_next_ids": ["a", 1, None, " b ", ""]},
            Outcome(status="success", suggested_next_ids=("a", "b")),
        ),
        ({"notes": "n"}, Outcome(status="success", notes="n")),
    ],
)
def test_what_a_routing_object_comes_to(found, outcome) -> None:
    verdict = verdict_of(found, {"port"})

    assert verdict.notices == ()
    if outcome is None:
        assert verdict.outcome.status == "fail"
    else:
        assert verdict.outcome == outcome


def deep(levels: int):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("updates", "kept", "dropped"),
    [
        ({"a": 1, "b": {"outcome": 2}}, {"a": 1, "b": {"outcome": 2}}, None),
        (
            {"internal.x": 1, "graph.goal": 1, "current_node": 1, "outcome": 1, "ok": 1},
            {"ok": 1},
            ["internal.x", "graph.goal", "current_node", "outcome"],
        ),
        (
            {"thread.x": 1, "parallel.y": 1, "failure_class": 1, "preferred_label": 1},
            {},
            ["thread.x", "parallel.y", "failure_class", "preferred_label"],
        ),
        ({"graphs": 1, "failure_reason": 1}, {"graphs": 1, "failure_reason": 1}, None),
        ({"a": deep(50), "b": deep(150)}, {"a": deep(50)}, ["b"]),
    ],
)
def test_keys_of_the_engine_are_dropped_with_a_notice(updates, kept, dropped) -> None:
    verdict = verdict_of({"context_updates": updates}, ())

    assert verdict.outcome.context_updates == kept
    assert [notice.details["keys"] for notice in verdict.notices] == ([dropped] if dropped else [])


def test_updates_that_are_no_object_are_dropped_with_a_notice() -> None:
    verdict = verdict_of({"context_updates": [1]}, ())

    assert verdict.outcome == Outcome(status="success")
    assert [notice.code for notice in verdict.notices] == ["context_updates_dropped"]


def test_words_are_those_of_the_edges_behind_conditionals_too() -> None:
    def edge(source: str, target: str, condition: str, index: int) -> Edge:
        return Edge(
            source=NodeId(source),
            target=NodeId(target),
            index=index,
            condition=parse(condition) if condition else None,
        )

    graph = a_graph(
        a_node("a", "agent"),
        a_node("g", "conditional"),
        a_node("h", "conditional"),
        a_node("b", "agent"),
        edges=(
            edge("a", "b", "outcome=port && context.x=1", 0),
            edge("a", "g", "", 1),
            edge("g", "h", "outcome=success", 2),
            edge("h", "g", "outcome!=rewrite", 3),
            edge("b", "a", "outcome=other", 4),
        ),
    )

    assert outcome_words(graph, NodeId("a")) == {"port", "rewrite"}
