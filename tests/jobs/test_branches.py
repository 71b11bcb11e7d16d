"""Fan-outs: what branches leave, who is cancelled, who waits, and what a resume finds."""

from __future__ import annotations

from pathlib import Path

from git_fabro.jobs.run.crew import Terms
from git_fabro.workflow.records import (
    BranchFinished,
    NodeFinished,
    NodeStarted,
    ParallelFinished,
    QuestionCancelled,
    Record,
)
from git_fabro.workflow.state import BLOCKED, FAIL, PAUSED, STOPPED, SUCCESS
from tests.scenario.parity import Stage, check, stage, started

HEAD = """digraph F {
    node [shape=parallelogram, script="true"]
    start [shape=Mdiamond]; exit [shape=Msquare]; j [shape=tripleoctagon, MERGE]
    s [shape=component, POLICY]
    start -> s; j -> exit
"""
#: A command that ends once a file is there, and one that tells that it runs.
WAITS = "until test -e $SIGNS/go; do sleep 0.02; done"


def fan(folder: Path, body: str, policy: str = "", merge: str = "merge=all") -> Stage:
    head = HEAD.replace("POLICY", policy).replace("MERGE", merge)
    run = stage(folder, source=head + body + "\n}\n")
    signs = folder / "signs"
    signs.mkdir()
    run.environment["SIGNS"] = str(signs)
    return run


def go(folder: Path) -> None:
    (folder / "signs" / "go").write_text("")


def ended(run: Stage) -> dict[str, str]:
    events = [record.event for record in run.events(BranchFinished)]
    return {e.id: e.status for e in events if isinstance(e, BranchFinished)}


def files(run: Stage, revision: str) -> set[str]:
    names = run.repo.git("ls-tree", "-r", "--name-only", revision).splitlines()
    return set(names) - {"README", "run.toml", "w.fabro"}


def test_the_results_are_in_file_order_with_what_each_branch_changed(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        """z [script="echo z > z"]; a [script="echo said; exit 1"]; k [script="true"]
        s -> z -> j; s -> a -> j; s -> k [condition="never"]; k -> j""",
    )

    state = run.begin()

    outcome = run.finished("s@1").outcome
    head = run.repo.git("rev-parse", run.branch_ref("s@1/z"))
    failed_head = run.repo.git("rev-parse", run.branch_ref("s@1/a"))
    assert (state.status, outcome.status) == ("partial_success", "partial_success")
    assert outcome.context_updates["parallel.branch_count"] == 3
    assert outcome.context_updates["parallel.results"] == [
        {
            "id": "z",
            "status": "success",
            "head_sha": head,
            "nodes": ["z@1"],
            "context": {"command.output": "", "command.stderr": ""},
        },
        {
            "id": "a",
            "status": "fail",
            "head_sha": failed_head,
            "nodes": ["a@1"],
            "failure_reason": "unhandled failures: a@1",
            "failure_class": "deterministic",
            "context": {"command.output": "said\n", "command.stderr": ""},
        },
        {"id": "k", "status": "skipped"},
    ]
    check(run)


def test_a_fan_out_of_skipped_branches_fails(tmp_path: Path) -> None:
    run = fan(tmp_path, "a; b; s -> a [condition=no]; s -> b [condition=no]; a -> j; b -> j")

    state = run.begin()

    assert (state.status, run.path()) == (FAIL, "start s{} j exit")
    failure = run.finished("s@1").outcome.failure
    assert failure is not None
    assert failure.message == "every branch was skipped by its condition"
    check(run)


def at_once(run: Stage) -> int:
    """How many branches had begun and not ended, at most."""
    running, most = set(), 0
    for record in run.all_records():
        branch = record.position.branch if record.position else None
        if isinstance(record.event, BranchFinished):
            running.discard(branch)
        elif isinstance(record.event, NodeStarted) and branch:
            running.add(branch)
        most = max(most, len(running))
    return most


MANY = "; ".join(f'{name} [script="sleep 0.05"]; s -> {name} -> j' for name in "abcdef")


def test_no_more_branches_run_at_once_than_the_node_says(tmp_path: Path) -> None:
    run = fan(tmp_path, MANY, "max_parallel=2")

    run.begin()

    assert (at_once(run), len(ended(run))) == (2, 6)
    check(run)


def test_the_command_line_lowers_the_limit_and_never_raises_it(tmp_path: Path) -> None:
    run = fan(tmp_path, MANY)

    run.begin(terms=Terms(max_parallel=1))

    assert at_once(run) == 1


def test_the_first_success_cancels_the_others_and_keeps_their_changes(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        """fast [script="until test -e $SIGNS/slow; do sleep 0.02; done; echo f > f"]
        slow [script="echo half > half; echo > $SIGNS/slow; sleep 600"]; never [script="true"]
        s -> fast -> j; s -> slow -> j; s -> never -> j""",
        "join_policy=first_success, max_parallel=2",
        "merge=winner",
    )

    state = run.begin()

    assert (state.status, ended(run)) == (
        SUCCESS,
        {"fast": "success", "never": "skipped", "slow": "fail"},
    )
    assert files(run, run.branch_ref("s@1/slow")) == {"half"}
    assert files(run, f"fabro/run/{run.run}") == {"f"}
    failure = run.finished("slow@1").outcome.failure
    assert failure is not None
    assert failure.failure_class == "cancelled"
    [joined] = [record.event for record in run.events(ParallelFinished)]
    assert isinstance(joined, ParallelFinished)
    assert (joined.status, joined.won) == ("success", "fast")
    check(run)


def test_a_loser_between_two_attempts_is_cancelled_too(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        """fast [script="until test -e $SIGNS/slow; do sleep 0.02; done"]
        slow [script="echo half > half; echo > $SIGNS/slow; exit 1", max_retries=1,
              retry_policy=patient]
        s -> fast -> j; s -> slow -> j""",
        "join_policy=first_success",
        "merge=winner",
    )

    state = run.begin()

    assert (state.status, ended(run)) == (SUCCESS, {"fast": "success", "slow": "fail"})
    assert files(run, run.branch_ref("s@1/slow")) == {"half"}
    assert (state.attempts, state.deadlines) == ({}, {})
    check(run)


NESTED = """
    t [shape=component]; m [shape=tripleoctagon, merge=all]
    a [script="echo a > a"]; b [script="echo b > b"]; c [script="echo c > c"]
    s -> t; t -> a -> m; t -> b -> m; m -> j; s -> c -> j
"""


def test_a_fan_out_inside_a_branch_is_merged_into_it(tmp_path: Path) -> None:
    run = fan(tmp_path, NESTED)

    state = run.begin()

    assert (state.status, run.path()) == (SUCCESS, "start s{t{a / b} m / c} j exit")
    assert files(run, f"fabro/run/{run.run}") == {"a", "b", "c"}
    assert files(run, run.branch_ref("s@1/t")) == {"a", "b"}
    assert state.line.node_visits["a"] == 1
    check(run)


GATES = """
    q [shape=hexagon]; w [script="WAIT"]; x [script="echo x > x"]
    s -> q; q -> x [label=Yes]; x -> j; s -> w -> j
""".replace("WAIT", WAITS)


def test_an_answer_reaches_a_branch_while_another_runs(tmp_path: Path) -> None:
    run = fan(tmp_path, GATES)
    driven = run.in_background()
    driven.until(started("q"))
    driven.until_holds(lambda: run.asks("q@1"))
    driven.until(started("w"))

    left = run.answer("q@1", "yes")
    driven.until(started("x"))
    go(tmp_path)

    assert left == "left"
    assert driven.end().status == SUCCESS
    assert run.path() == "start s{q x / w} j exit"
    check(run)


def test_an_answer_reaches_a_fan_out_inside_a_branch_while_another_runs(tmp_path: Path) -> None:
    inner = GATES.replace("s -> q;", "s -> t; t -> q; t -> c -> m; m -> j;").replace(
        "x -> j", "x -> m"
    )
    run = fan(tmp_path, "t [shape=component]; m [shape=tripleoctagon]; c;" + inner)
    driven = run.in_background()
    driven.until_holds(lambda: run.asks("q@1"))
    driven.until(started("w"))
    driven.until(lambda record: is_end(record, "t@1/c"))

    run.answer("q@1", "yes")
    driven.until(started("x"))
    go(tmp_path)

    assert driven.end().status == SUCCESS
    check(run)


def is_end(record: Record, branch: str) -> bool:
    position = record.position
    ended = isinstance(record.event, BranchFinished)
    return ended and position is not None and position.branch == branch


def test_a_run_is_blocked_when_all_its_branches_wait(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        """p [shape=hexagon]; q [shape=hexagon]; x [script="echo x > x"]; z [script="echo z > z"]
        s -> p; p -> x [label=Yes]; x -> j; s -> q; q -> z [label=Yes]; z -> j""",
    )

    seen = [run.begin().status]
    run.answer("q@1", "yes")
    seen.append(run.resume().status)
    run.answer("p@1", "yes")
    seen.append(run.resume().status)

    assert seen == [BLOCKED, BLOCKED, SUCCESS]
    assert run.path() == "start s{p x / q z} j exit"
    assert files(run, f"fabro/run/{run.run}") == {"x", "z"}
    check(run)


def test_a_loser_that_waits_for_a_person_is_not_asked_any_more(tmp_path: Path) -> None:
    inner = "t [shape=component]; m [shape=tripleoctagon]; c; n; q [shape=hexagon]; "
    run = fan(
        tmp_path,
        inner + f'w [script="{WAITS}"]; s -> w -> j; s -> t; t -> q -> m; t -> c -> m; m -> n -> j',
        "join_policy=first_success",
        "merge=winner",
    )
    driven = run.in_background()
    driven.until_holds(lambda: run.asks("q@1"))
    driven.until(lambda record: is_end(record, "t@1/c"))
    go(tmp_path)

    state = driven.end()

    assert (state.status, state.gates, state.branches) == (SUCCESS, {}, {})
    cancelled = [r.position.branch for r in run.events(QuestionCancelled) if r.position]
    assert cancelled in ([], ["t@1/q"])
    check(run)


def test_a_pause_lets_running_branches_end_their_nodes(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        f"""a [script="{WAITS}; echo a > a"]; a2; b [script="{WAITS}; sleep 0.3; echo b > b"]; b2
        s -> a -> a2 -> j; s -> b -> b2 -> j""",
    )
    driven = run.in_background()
    driven.until(started("a"))
    driven.until(started("b"))
    run.directory().leave_request("pause", {})
    driven.until_holds(lambda: not list(run.directory().pending_requests()))
    go(tmp_path)

    assert driven.end().status == PAUSED
    assert run.path() == "start s{a / b}"
    assert run.resume().status == SUCCESS
    assert run.path() == "start s{a a2 / b b2} j exit"
    assert [len([r for r in run.records if started(node)(r)]) for node in ("a", "b")] == [1, 1]
    check(run)


def test_a_stop_ends_every_branch_and_a_resume_runs_them_anew(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        f"""a [script="{WAITS}; echo a > a"]; b [script="echo b > b"]; b2 [script="{WAITS}"]
        s -> a -> j; s -> b -> b2 -> j""",
    )
    driven = run.in_background()
    driven.until(started("a"))
    driven.until(started("b2"))
    run.directory().leave_request("stop", {})
    assert driven.end().status == STOPPED
    go(tmp_path)

    state = run.resume()

    assert state.status == SUCCESS
    visits = [str(record.position) for record in run.events(NodeFinished)]
    assert sorted(visits) == sorted(set(visits))
    assert files(run, f"fabro/run/{run.run}") == {"a", "b"}
    check(run)


def test_a_value_over_the_limit_stays_whole_in_a_branch(tmp_path: Path) -> None:
    run = fan(
        tmp_path,
        """a [script="yes 0123456789 | head -c 150000"]; g [shape=diamond]; b; c [script="true"]
        s -> a -> g; g -> b [condition="command.output contains 0123456789"]; g -> c; c -> j
        b -> j; s -> d -> j; d""",
    )

    state = run.begin()

    assert (state.status, run.path()) == (SUCCESS, "start s{a g b / d} j exit")
    check(run)


def test_a_failure_at_a_conditional_join_is_the_branchs(tmp_path: Path) -> None:
    run = fan(tmp_path, 'j [shape=diamond]; a [script="exit 1"]; b; s -> a -> j; s -> b -> j')

    run.begin()

    assert ended(run) == {"a": "fail", "b": "success"}
