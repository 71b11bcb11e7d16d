"""Gates: what is asked, and what each kind of answer comes to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from git_fabro.handlers import human
from git_fabro.handlers.call import Call
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import QuestionAsked
from git_fabro.workflow.state import Answer, Failure, Gate, Option, Outcome
from tests.handlers.calls import a_call
from tests.workflow.graphs import at, graph_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BODY = """
    q [shape=hexagon, label="Ship hunter22?", MORE]; y; n; t; start -> q
    q -> y [label="[Y] Yes"]; q -> n; q -> t [freeform=true]; q -> t [condition="outcome=fail"]
    y -> exit; n -> exit; t -> exit
"""
YES, NO = Option(key="Y", label="Yes", target="y"), Option(key="N", label="n", target="n")


def call_of(folder: Path, more: str = "") -> Call:
    graph = graph_of(BODY.replace("MORE", more))
    return a_call(folder, node=graph.nodes[NodeId("q")], graph=graph, position=at("q", 2, 3))


@pytest.mark.parametrize(
    ("more", "default", "deadline"),
    [
        ("", None, None),
        ('timeout=90s, "human.default_choice"=y', "y", "2026-01-01T00:01:30.000Z"),
        ('"human.default_choice"="Yes"', "y", None),
        ('"human.default_choice"=N', "n", None),
    ],
)
def test_a_question_says_all_that_a_person_needs(
    tmp_path: Path, more: str, default: str | None, deadline: str | None
) -> None:
    assert human.ask(call_of(tmp_path, more), NOW) == QuestionAsked(
        question="q@2",
        ask=3,
        text="Ship ***?",
        options=(YES, NO),
        freeform=True,
        default=default,
        deadline=deadline,
    )


def chosen(key: str, label: str, target: str, text: str = "") -> Outcome:
    return Outcome(
        status="success",
        context_updates={
            "human.gate.selected": key,
            "human.gate.label": label,
            "human.gate.text": text,
        },
        preferred_label=label,
        suggested_next_ids=(target,),
    )


def no(message: str, failure_class: str = "cancelled", status: str = "fail") -> Outcome:
    return Outcome(status=status, failure=Failure(message, failure_class))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(
            Answer(how="answered", choice="Y", label="Yes", target="y"),
            chosen("Y", "Yes", "y"),
            id="a choice",
        ),
        pytest.param(
            Answer(how="answered", text="thank the reader"),
            chosen("freeform", "", "t", "thank the reader"),
            id="a text",
        ),
        pytest.param(
            Answer(how="expired", target="n"), chosen("N", "n", "n"), id="time is up, with default"
        ),
        pytest.param(
            Answer(how="expired"),
            no("nobody answered in time", "timed_out", "retry"),
            id="time is up, without default",
        ),
        pytest.param(Answer(how="refused", reason="not mine"), no("not mine"), id="a refusal"),
        pytest.param(
            Answer(how="refused"), no("the question was refused"), id="a refusal without a reason"
        ),
        pytest.param(
            Answer(how="cancelled", reason="join_policy"),
            no("the question was cancelled: join_policy"),
            id="cancelled",
        ),
    ],
)
def test_an_answer_is_an_outcome(tmp_path: Path, answer: Answer, outcome: Outcome) -> None:
    gate = Gate(
        ask=1,
        asked_seq=1,
        asked_at="",
        node=NodeId("q"),
        visit=1,
        attempt=1,
        branch=None,
        text="?",
        options=(YES, NO),
        freeform=True,
        answer=answer,
    )

    assert human.outcome_of(gate, call_of(tmp_path)) == outcome
