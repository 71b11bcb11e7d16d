"""What Fabro's files hold: each generation has its values elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from git_fabro.checkpoint.foreign import Generation
from git_fabro.checkpoint.foreign_values import (
    Made,
    duration_ms,
    files_of,
    graph_in,
    has_ranks,
    in_our_words,
    made_with,
    meta_entry,
    run_state,
    state_in,
    status_of,
    trace_folders,
)
from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RecordError
from git_fabro.workflow.state import Failure

GOAL = {"String": "ship it"}
GRAPH = {
    "name": "Ship",
    "nodes": {
        "fork": {"id": "fork", "attrs": {"shape": {"String": "component"}, "n": {"Integer": 1}}},
        "api": {"id": "api", "attrs": {}},
    },
    "edges": [{"from": "fork", "to": "api", "attrs": {}}],
    "attrs": {"goal": GOAL},
}
STARTED = {"run_id": "01K", "start_time": "T", "run_branch": "fabro/run/01K", "base_sha": "e662"}
RUN = {"run_id": "01K", "graph": GRAPH, "workflow_slug": "ship", "base_branch": "main"}
STATE: Any = {
    "timestamp": "2026-03-15T19:14:38.746540Z",
    "current_node": "verify",
    "completed_nodes": ["start", "verify"],
    "node_retries": {"verify": 1},
    "context_values": {"graph.goal": "ship it", "parallel.results": [{"id": "a"}]},
    "logs": [],
    "next_node_id": "fixup",
    "node_visits": {"start": 1, "verify": 2},
    "node_outcomes": {
        "verify": {
            "status": "failed",
            "failure": {"message": "no", "failure_class": "transient_infra"},
            "duration_ms": 71146,
            "usage": None,
        }
    },
}


@pytest.mark.parametrize(
    ("generation", "documents", "made"),
    [
        (
            "G1",
            {
                "manifest.json": {
                    "run_id": "01K",
                    "workflow_name": "Ship",
                    "goal": "ship it",
                    "start_time": "T",
                    "run_branch": "fabro/run/01K",
                    "base_sha": "e662",
                    "base_branch": "main",
                }
            },
            {"workflow": "Ship", "created_at": "T", "base_branch": "main", "base_sha": "e662"},
        ),
        (
            "G2",
            {"run.json": {**RUN, "created_at": "C", "config": {}}, "start.json": STARTED},
            {
                "workflow": "Ship",
                "slug": "ship",
                "created_at": "C",
                "base_branch": "main",
                "base_sha": "e662",
            },
        ),
        (
            "G2b",
            {"start.json": STARTED, "checkpoint.json": STATE},
            {"created_at": "T", "base_sha": "e662"},
        ),
        (
            "G3",
            {"run.json": {**RUN, "settings": {}}},
            {"workflow": "Ship", "slug": "ship", "base_branch": "main", "run_branch": ""},
        ),
        (
            "G4",
            {
                "run.json": {
                    "spec": {
                        "run_id": "01K",
                        "graph": GRAPH,
                        "workflow_slug": "ship",
                        "git": {"branch": "dev", "sha": "5ba1"},
                    },
                    "start": None,
                }
            },
            {
                "workflow": "Ship",
                "slug": "ship",
                "base_branch": "dev",
                "base_sha": "5ba1",
                "run_branch": "",
            },
        ),
        (
            "G4",
            {
                "run.json": {
                    "spec": {"run_id": "01K", "graph": GRAPH, "base_branch": "main"},
                    "start": STARTED,
                }
            },
            {"workflow": "Ship", "created_at": "T", "base_branch": "main", "base_sha": "e662"},
        ),
    ],
    ids=["G1", "G2", "G2b", "G3", "G4 not started", "G4a"],
)
def test_each_generation_has_its_values_elsewhere(
    generation: Generation, documents: Any, made: dict[str, str]
) -> None:
    common = {"run_id": "01K", "goal": "ship it", "run_branch": "fabro/run/01K"}

    assert made_with(generation, documents) == Made(generation=generation, **{**common, **made})


def test_the_state_of_the_last_generation_stands_in_run_json() -> None:
    assert state_in("G4", {"run.json": {"checkpoint": STATE}}) == STATE
    assert state_in("G4", {"run.json": {"checkpoint": None}}) is None
    assert state_in("G1", {"checkpoint.json": STATE}) == STATE
    assert state_in("G3", {}) is None
    assert files_of("G4") == ("run.json",)


@pytest.mark.parametrize(
    ("generation", "run_json", "is_final", "status"),
    [
        ("G1", {}, True, "ended"),
        ("G3", {}, False, "unfinished"),
        ("G4", {"status": {"kind": "running"}, "conclusion": None}, True, "unfinished"),
        ("G4", {"status": {"kind": "running"}, "conclusion": {"status": "succeeded"}}, True, None),
        ("G4", {"conclusion": {"x": 1}}, True, "ended"),
    ],
)
def test_how_a_run_ended_is_said_where_it_is_recorded(
    generation: Generation, run_json: Any, is_final: bool, status: str | None
) -> None:
    found = status_of(generation, {"run.json": run_json}, is_final=is_final)

    assert found == (status or "succeeded")


def test_both_vocabularies_mean_the_same() -> None:
    words = ["succeeded", "failed", "partially_succeeded", "skipped"]

    assert [in_our_words(word) for word in words] == [
        "success",
        "fail",
        "partial_success",
        "skipped",
    ]


def test_a_state_is_a_checkpoint() -> None:
    found = meta_entry(Oid("m1"), STATE)

    assert (found.node, found.visit, found.status) == ("verify", 2, "failed")
    assert duration_ms(STATE, "verify") == 71146
    assert duration_ms(STATE, "start") is None


def test_what_a_checkpoint_does_not_say_is_not_guessed() -> None:
    found = meta_entry(Oid("m1"), {"current_node": "plan"})

    assert (found.node, found.visit, found.status) == ("plan", 1, "?")
    with pytest.raises(RecordError, match="names no current node"):
        meta_entry(Oid("m1"), {"current_node": 7})


def test_a_state_becomes_ours_with_its_own_words() -> None:
    state = run_state(STATE, status="ended")

    assert (state.status, state.timestamp) == ("ended", "2026-03-15T19:14:38.746540Z")
    assert (state.line.current_node, state.line.next_node_id) == ("verify", "fixup")
    assert state.line.completed_nodes == ("start", "verify")
    assert state.line.node_visits == {"start": 1, "verify": 2}
    outcome = state.line.node_outcomes["verify"]
    assert (outcome.status, outcome.failure) == ("failed", Failure("no", "transient_infra"))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "the state is no object"),
        ({"node_outcomes": {"a": "x"}}, "the outcome of a is no object"),
        ({"node_outcomes": {"a": {}}}, "the outcome of a has no status"),
    ],
)
def test_what_is_no_state_is_refused(value: Any, why: str) -> None:
    with pytest.raises(RecordError, match=why):
        run_state(value, status="ended")


def test_a_graph_is_read_from_json() -> None:
    nodes = {"fork": {"shape": "component"}, "api": {}}

    assert graph_in("G3", {"run.json": RUN}) == (nodes, [("fork", "api")])
    assert graph_in("G4", {"run.json": {"spec": {"graph": GRAPH}}}) == (nodes, [("fork", "api")])
    assert graph_in("G1", {}) is None


@pytest.mark.parametrize(
    ("generation", "nodes", "stages", "ranked", "found"),
    [
        (
            "G1",
            ["a", "a-visit_2", "b-visit_x"],
            [],
            False,
            {("a", 1): "nodes/a", ("a", 2): "nodes/a-visit_2", ("b-visit_x", 1): "nodes/b-visit_x"},
        ),
        (
            "G4",
            [],
            ["a@1", "b@c@2", "010-x@1"],
            False,
            {("a", 1): "stages/a@1", ("b@c", 2): "stages/b@c@2", ("010-x", 1): "stages/010-x@1"},
        ),
        (
            "G4",
            [],
            ["010-verify@2", "1234-a@1", "01-b@1", "odd"],
            True,
            {
                ("verify", 2): "stages/010-verify@2",
                ("a", 1): "stages/1234-a@1",
                ("01-b", 1): "stages/01-b@1",
            },
        ),
    ],
)
def test_the_files_of_a_visit_are_found(
    generation: Generation, nodes: list[str], stages: list[str], ranked: bool, found: Any
) -> None:
    assert trace_folders(generation, nodes=nodes, stages=stages, ranked=ranked) == found


def test_stages_have_ranks_where_run_json_calls_them_so() -> None:
    assert has_ranks({"run.json": {"stages": {}}})
    assert not has_ranks({"run.json": {"nodes": {}}})
