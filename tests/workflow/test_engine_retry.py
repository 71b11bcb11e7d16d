"""Attempts: what is tried again, how often, and after which delay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from git_fabro.workflow import engine
from git_fabro.workflow.state import Outcome, failed
from tests.workflow.graphs import AGAIN, BAD, OK, PARTLY, done, graph_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUSY = failed("busy", failure_class="transient_infra")
LATE = failed("too late", failure_class="timed_out")
NO = failed("no", failure_class="cancelled")
WRONG = failed("wrong", failure_class="structural")
FULL = failed("full", failure_class="budget_exhausted")


def delays(attributes: str, outcome: Outcome, *, draw: float = 1.0, **graph: str) -> list[int]:
    """The delays before each further attempt of a node that always comes to this."""
    made = graph_of(f"a [{attributes}]; start -> a -> exit", **graph)
    found: list[int] = []
    while len(found) < 99:
        ended = done("a", outcome, attempt=len(found) + 1)
        again = engine.retry(made, ended, draw=draw, now=NOW)
        if again is None:
            return found
        found.append(again.delay_ms)
    return found


@pytest.mark.parametrize(
    ("attributes", "graph", "retried"),
    [
        pytest.param("", {}, {}, id="nothing said"),
        pytest.param(
            "max_retries=2",
            {},
            {"again": 2, "bad": 2, "busy": 2, "late": 2, "full": 2},
            id="a number on the node",
        ),
        pytest.param("max_retries=0", {"default_max_retries": "4"}, {}, id="0 on the node"),
        pytest.param(
            "retry_policy=linear", {}, {"again": 2, "busy": 2, "late": 2}, id="a policy alone"
        ),
        pytest.param(
            "retry_policy=none", {"default_max_retries": "4"}, {}, id="the policy of none"
        ),
        pytest.param(
            'retry_policy=linear, max_retries="1"',
            {},
            {"again": 1, "bad": 1, "busy": 1, "late": 1, "full": 1},
            id="the number beats the policy",
        ),
        pytest.param(
            "",
            {"default_max_retries": "3"},
            {"again": 3, "busy": 3, "late": 3},
            id="a number on the graph",
        ),
        pytest.param(
            "", {"default_max_retry": "1"}, {"again": 1, "busy": 1, "late": 1}, id="its older name"
        ),
    ],
)
def test_what_is_tried_again_and_how_often(
    attributes: str, graph: dict[str, str], retried: dict[str, int]
) -> None:
    outcomes = {
        "again": AGAIN,
        "bad": BAD,
        "busy": BUSY,
        "late": LATE,
        "full": FULL,
        "no": NO,
        "wrong": WRONG,
        "no again": replace(NO, status="retry"),
        "ok": OK,
        "partly": PARTLY,
        "skipped": Outcome(status="skipped"),
    }

    found = {name: len(delays(attributes, outcome, **graph)) for name, outcome in outcomes.items()}

    assert {name: count for name, count in found.items() if count} == retried


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ("max_retries=4", [200, 400, 800, 1600]),
        ("retry_policy=standard", [200, 400, 800, 1600]),
        ("retry_policy=aggressive", [500, 1000, 2000, 4000]),
        ("retry_policy=linear", [500, 500]),
        ("retry_policy=patient", [2000, 6000]),
        ("retry_policy=linear, max_retries=3", [500, 500, 500]),
        ("retry_policy=none, max_retries=2", [200, 400]),
        (
            "retry_policy=patient, max_retries=6",
            [2000, 6000, 18000, 54000, 60000, 60000],
        ),
    ],
)
def test_the_delays_of_a_policy(attributes: str, wanted: list[int]) -> None:
    assert delays(attributes, BUSY) == wanted


def test_a_draw_scales_each_delay_the_longest_too() -> None:
    assert delays("retry_policy=standard", BUSY, draw=0.5) == [100, 200, 400, 800]
    assert delays("retry_policy=patient, max_retries=5", BUSY, draw=1.25)[-1] == 75000


def test_a_retry_records_draw_delay_and_time() -> None:
    graph = graph_of("a [max_retries=1]; start -> a -> exit")

    again = engine.retry(graph, done("a", BAD, duration_ms=7), draw=1.25, now=NOW)

    assert again is not None
    assert (again.outcome, again.duration_ms, again.draw) == (BAD, 7, 1.25)
    assert (again.delay_ms, again.retry_at) == (250, "2026-01-01T00:00:00.250Z")
    assert engine.moment(again.retry_at) == NOW + timedelta(milliseconds=250)
