"""The fold: what each kind of record does to the state, and that nothing else changes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from git_fabro.checkpoint import codec
from git_fabro.workflow import records
from git_fabro.workflow.fold import evolve, replay
from git_fabro.workflow.records import (
    AttemptFailed,
    BranchFinished,
    BranchPlan,
    NodeFinished,
    NodeStarted,
    ParallelFinished,
    ParallelStarted,
    QuestionAnswered,
    QuestionAsked,
    QuestionCancelled,
    QuestionExpired,
    QuestionRefused,
    Record,
    RunApplied,
    RunFinished,
    RunForked,
    RunNotice,
    RunPaused,
    RunResumed,
    RunStopped,
    RunUnpaused,
    Unknown,
)
from git_fabro.workflow.state import Answer, Outcome
from tests.workflow.graphs import BAD, OK, Walk, at, graph_of

LATER = "2026-01-01T01:00:00.000Z"
LINE = "a; b; start -> a -> b -> exit"
FAN = """
    s [shape=component]; x; q [shape=hexagon]; y; z; j [shape=tripleoctagon]
    start -> s; s -> x -> q; q -> j [label=ok]; s -> y -> j; s -> z -> j; j -> exit
"""


def asked(question: str, **more: Any) -> QuestionAsked:
    return QuestionAsked(question=question, ask=more.pop("ask", 1), text="?", **more)


def begun(source: str = LINE) -> Walk:
    walk = Walk(graph_of(source))
    walk.step()
    return walk


def opened() -> Walk:
    """A run in its fan-out: branches x and y run, z is skipped."""
    walk = begun(FAN)
    walk.tell(NodeStarted(handler="parallel"), at("s"))
    plans = (BranchPlan(id="x"), BranchPlan(id="y"), BranchPlan(id="z", skipped=True))
    walk.tell(
        ParallelStarted(
            base_sha="77a0", join="j", join_policy="wait_all", max_parallel=4, branches=plans
        ),
        at("s"),
    )
    return walk


def finish_branch(walk: Walk, name: str, status: str = "success") -> None:
    walk.tell(BranchFinished(id=name, status=status), at("s", branch=f"s@1/{name}"))


def finish_node(walk: Walk, node: str, branch: str, **more: Any) -> None:
    position = at(node, branch=branch)
    walk.tell(NodeStarted(handler="command"), position)
    walk.tell(NodeFinished(handler="command", outcome=OK, **more), position)


def test_a_run_begins_with_its_context() -> None:
    walk = Walk(graph_of(LINE), {"graph.goal": "ship"})

    state = walk.state

    assert (state.seq, state.status, state.started_at) == (2, "running", walk.records[1].at)
    assert state.line.next_node_id == "start"
    assert state.line.context_values == state.initial_context == {"graph.goal": "ship"}


def test_a_started_node_is_counted_and_empties_the_label() -> None:
    walk = begun()
    walk.step(replace(OK, preferred_label="later"))
    assert walk.line.context_values["preferred_label"] == "later"

    walk.tell(NodeStarted(handler="agent", fidelity="full", thread="t"), at("b"))

    line = walk.line
    assert (line.node_visits["b"], line.open_visit) == (1, "b@1")
    kept = ("internal.fidelity", "internal.thread_id", "preferred_label")
    assert [line.context_values[key] for key in kept] == ["full", "t", ""]


@pytest.mark.parametrize("handler", ["conditional", "exit", "start"])
def test_a_control_node_leaves_the_label(handler: str) -> None:
    walk = begun()
    walk.step(replace(OK, preferred_label="later"))

    walk.tell(NodeStarted(handler=handler), at("b"))

    assert walk.line.context_values["preferred_label"] == "later"


def test_a_deadline_is_kept_until_its_node_has_ended() -> None:
    walk = begun()
    walk.tell(NodeStarted(handler="wait", deadline=LATER), at("a"))
    assert walk.state.deadlines == {"a@1": LATER}

    walk.tell(NodeFinished(handler="wait", outcome=OK), at("a"))

    assert walk.state.deadlines == {}


def test_a_failed_attempt_is_counted_while_its_visit_is_open() -> None:
    walk = begun()
    walk.tell(NodeStarted(handler="command"), at("a"))
    again = AttemptFailed(outcome=BAD, duration_ms=1, draw=1.0, delay_ms=200, retry_at=LATER)
    walk.tell(again, at("a"))
    assert (walk.state.attempts, walk.state.deadlines) == ({"a@1": 1}, {"a@1": LATER})
    assert walk.line.open_visit == "a@1"

    walk.tell(NodeFinished(handler="command", outcome=OK, attempts=2), at("a", attempt=2))

    assert (walk.state.attempts, walk.state.deadlines) == ({}, {})
    assert walk.line.node_retries == {"start": 0, "a": 1}
    assert walk.line.context_values["internal.retry_count.a"] == 1


def test_a_finished_node_updates_the_context_and_the_engines_keys_win() -> None:
    walk = begun()

    walk.step(replace(OK, context_updates={"k": [1], "outcome": "mine", "current_node": "mine"}))

    context = walk.line.context_values
    assert {key: context[key] for key in ("k", "outcome", "current_node")} == {
        "k": [1],
        "outcome": "success",
        "current_node": "a",
    }
    assert walk.state.timestamp == walk.records[-1].at


def test_the_failure_keys_are_empty_unless_the_last_node_failed() -> None:
    walk = begun()
    walk.step(BAD)
    failed_context = walk.line.context_values
    walk.step()

    keys = ("failure_class", "failure_signature")
    assert [failed_context[key] for key in keys] == [
        "deterministic",
        "a|deterministic|exit status <n>",
    ]
    assert [walk.line.context_values[key] for key in keys] == ["", ""]


def test_the_exit_is_no_completed_node() -> None:
    walk = begun()
    walk.through()

    assert walk.line.completed_nodes == ("start", "a", "b")
    assert (walk.line.current_node, walk.line.ended, walk.state.reason) == ("exit", "exit", "exit")


QUESTION = {"question": "a@1", "ask": 1, "asked_seq": 6}


@pytest.mark.parametrize(
    ("event", "answer"),
    [
        (
            QuestionAnswered(**QUESTION, choice="Y", label="Yes", target="b"),
            Answer(how="answered", choice="Y", label="Yes", target="b"),
        ),
        (QuestionAnswered(**QUESTION, text="free"), Answer(how="answered", text="free")),
        (
            QuestionExpired(**QUESTION, waited_ms=1, default="b"),
            Answer(how="expired", target="b"),
        ),
        (QuestionExpired(**QUESTION, waited_ms=1), Answer(how="expired")),
        (QuestionRefused(**QUESTION, reason="no"), Answer(how="refused", reason="no")),
        (
            QuestionCancelled(**QUESTION, reason="join_policy"),
            Answer(how="cancelled", reason="join_policy"),
        ),
    ],
)
def test_an_open_question_blocks_until_it_has_an_answer(event: Any, answer: Answer) -> None:
    walk = begun()
    walk.tell(NodeStarted(handler="human"), at("a"))
    walk.tell(asked("a@1", deadline=LATER), at("a"))
    gate = walk.state.gates["a@1"]
    assert (walk.state.status, walk.state.deadlines) == ("blocked", {"a@1": LATER})
    assert (gate.asked_seq, gate.asked_at, gate.answer) == (6, walk.records[-1].at, None)

    walk.tell(event, at("a"))

    assert (walk.state.status, walk.state.deadlines) == ("running", {})
    assert walk.state.gates == {"a@1": replace(gate, answer=answer)}
    walk.tell(NodeFinished(handler="human", outcome=OK), at("a"))
    assert walk.state.gates == {}


def test_a_retry_of_a_gate_takes_its_question_away() -> None:
    walk = begun()
    walk.tell(NodeStarted(handler="human"), at("a"))
    walk.tell(asked("a@1"), at("a"))
    again = AttemptFailed(outcome=BAD, duration_ms=1, draw=1.0, delay_ms=200, retry_at=LATER)

    walk.tell(again, at("a"))

    assert walk.state.gates == {}


def test_an_answer_to_no_question_changes_nothing() -> None:
    walk = begun()
    before = walk.state

    walk.tell(QuestionRefused(question="b@7", ask=1, asked_seq=1), at("b", 7))

    assert replace(walk.state, seq=0) == replace(before, seq=0)


def test_branches_begin_with_the_context_and_counts_of_their_line() -> None:
    walk = opened()

    branch = walk.state.branches["s@1/x"]

    assert list(walk.state.branches) == ["s@1/x", "s@1/y"]
    assert (branch.status, branch.parent, branch.head_sha) == ("", None, "77a0")
    assert branch.line.context_values == walk.line.context_values
    assert (branch.line.next_node_id, branch.line.completed_nodes) == ("x", ())
    assert walk.state.fan_outs["s@1"].skipped == ("z",)


def test_a_run_is_blocked_once_every_live_branch_waits() -> None:
    walk = opened()
    seen = []

    def tell(event: Any, node: str, branch: str) -> None:
        walk.tell(event, at(node, branch=branch))
        seen.append(walk.state.status)

    finish_node(walk, "x", "s@1/x")
    tell(asked("q@1"), "q", "s@1/x")
    tell(asked("y@1"), "y", "s@1/y")
    tell(QuestionRefused(question="q@1", ask=1, asked_seq=1), "q", "s@1/x")
    tell(NodeFinished(handler="human", outcome=OK), "q", "s@1/x")
    finish_branch(walk, "x")
    seen.append(walk.state.status)
    tell(QuestionRefused(question="y@1", ask=1, asked_seq=1), "y", "s@1/y")

    assert seen == ["running", "blocked", "running", "running", "blocked", "running"]


def test_an_ended_fan_out_adds_its_counts_and_leaves_nothing() -> None:
    walk = opened()
    counted = records.Counted(table="loop", signature="x|deterministic|red")
    finish_node(walk, "x", "s@1/x", counted=counted)
    finish_node(walk, "y", "s@1/y")
    finish_branch(walk, "x")
    finish_branch(walk, "y", "fail")
    walk.tell(ParallelFinished(status="partial_success"), at("s"))
    assert walk.state.fan_outs["s@1"].status == "partial_success"

    walk.tell(NodeFinished(handler="parallel", outcome=OK), at("s"))

    state = walk.state
    assert (state.branches, state.fan_outs) == ({}, {})
    assert state.line.node_visits == {"start": 1, "s": 1, "x": 1, "y": 1}
    assert state.line.loop_failure_signatures == {"x|deterministic|red": 1}
    assert state.line.completed_nodes == ("start", "s")


def test_a_branch_that_is_given_up_takes_its_inner_fan_out_along() -> None:
    walk = opened()
    walk.tell(NodeStarted(handler="parallel"), at("x", branch="s@1/x"))
    plans = (BranchPlan(id="i"), BranchPlan(id="k"))
    inner = ParallelStarted(
        base_sha=None, join="q", join_policy="wait_all", max_parallel=4, branches=plans
    )
    walk.tell(inner, at("x", branch="s@1/x"))
    walk.tell(NodeStarted(handler="human"), at("i", branch="x@1/i"))
    again = AttemptFailed(outcome=BAD, duration_ms=1, draw=1.0, delay_ms=200, retry_at=LATER)
    walk.tell(again, at("i", branch="x@1/i"))
    walk.tell(asked("i@1", ask=2, deadline=LATER), at("i", attempt=2, branch="x@1/i"))
    finish_branch(walk, "y")
    finish_branch(walk, "x", "skipped")

    walk.tell(ParallelFinished(status="success", won="y"), at("s"))
    walk.tell(NodeFinished(handler="parallel", outcome=OK), at("s"))

    state = walk.state
    assert (state.branches, state.fan_outs, state.gates) == ({}, {}, {})
    assert (state.deadlines, state.attempts) == ({}, {})
    assert state.status == "running"


@pytest.mark.parametrize(
    ("event", "status", "reason"),
    [
        (RunPaused(), "paused", ""),
        (RunStopped(cause="signal"), "stopped", "signal"),
        (RunFinished(status="fail", reason="why"), "fail", "why"),
        (RunApplied(base_branch="main", commit="1234", how="no-ff"), "applied", ""),
    ],
)
def test_what_ends_a_run_gives_its_status(event: Any, status: str, reason: str) -> None:
    walk = begun()

    walk.tell(event)

    assert (walk.state.status, walk.state.reason) == (status, reason)


@pytest.mark.parametrize("event", [RunUnpaused(), RunResumed(after=3)])
def test_a_run_that_rests_goes_on(event: Any) -> None:
    walk = begun()
    walk.tell(RunPaused())

    walk.tell(event)

    assert walk.state.status == "running"


def test_a_failed_run_goes_on_at_the_visit_that_runs_anew() -> None:
    walk = begun()
    walk.step(BAD)
    walk.through()
    walk.tell(RunFinished(status="fail", reason="unhandled failures: a@1", unhandled=("a@1",)))

    walk.tell(RunResumed(after=walk.state.seq, again=("a@2",)))

    assert (walk.state.status, walk.line.next_node_id, walk.line.ended) == ("running", "a", "")
    assert walk.through() == "a b exit"
    assert walk.line.unhandled == ()


def test_a_fork_keeps_the_path_and_drops_what_was_pending() -> None:
    walk = begun()
    walk.tell(NodeStarted(handler="human"), at("a"))
    walk.tell(asked("a@1", deadline=LATER), at("a"))

    walk.tell(RunForked(from_={"run": "R"}, run_id="F", changes={"goal": "other"}))

    state = walk.state
    assert (state.status, state.gates, state.deadlines) == ("running", {}, {})
    assert state.line.completed_nodes == ("start",)
    assert state.line.context_values["internal.run_id"] == "F"
    assert state.initial_context == {"internal.run_id": "F", "graph.goal": "other"}


@pytest.mark.parametrize(
    "event",
    [
        Unknown(kind="run.sang", origin="core", data={"song": "la"}),
        RunNotice(level="warning", code="hook", message="?"),
        records.CheckpointMade(git_commit_sha="1", meta_commit_sha="2", ordinal=1),
        records.ArtifactCollected(path="p", sha256="0", bytes=1),
        records.LeaseTaken(owner="o", lease=None, host="h", pid=1, program="p"),
        records.LeaseReleased(owner="o", lease=None, reason="done"),
        records.RunBranch(run_branch="b", base_sha="1"),
        records.GitIdentity(name="n", email="e"),
    ],
)
def test_other_kinds_are_counted_and_change_nothing(event: Any) -> None:
    before = begun().state

    after = evolve(before, Record(seq=99, at=LATER, event=event))

    assert after == replace(before, seq=99)


def test_record_by_record_and_all_at_once_are_one() -> None:
    walk = opened()
    finish_node(walk, "x", "s@1/x")
    finish_node(walk, "y", "s@1/y")
    finish_branch(walk, "x")
    finish_branch(walk, "y")
    walk.tell(ParallelFinished(status="success"), at("s"))
    walk.tell(NodeFinished(handler="parallel", outcome=OK, next=records.Next(node="j")), at("s"))
    walk.through(j=Outcome(status="success", context_updates={"k": 1}))

    for cut in range(len(walk.records) + 1):
        first = replay(walk.records[:cut])
        stored = codec.state_from_json(codec.state_to_json(first))
        assert replay(walk.records[cut:], stored) == replay(walk.records) == walk.state
