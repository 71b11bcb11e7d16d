"""One line of a run, driven for real: deadlines, dry runs, runs without Git, long loops."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import RunId
from git_fabro.errors import RequestError
from git_fabro.jobs.run.crew import Terms
from git_fabro.journal import read
from git_fabro.workflow import engine
from git_fabro.workflow.records import NodeFinished, NodeStarted, RunStopped
from git_fabro.workflow.state import BLOCKED, FAIL, PAUSED, STOPPED, SUCCESS
from tests.scenario.parity import Stage, check, stage, started

HEAD = """digraph D {
    node [shape=parallelogram, script="true"]
    start [shape=Mdiamond]; exit [shape=Msquare]
"""


def staged(folder: Path, body: str, *, settings: str = "", git: bool = True) -> Stage:
    run = stage(folder, source=HEAD + body + "\n}\n", settings=settings, git=git)
    signs = folder / "signs"
    signs.mkdir()
    run.environment["SIGNS"] = str(signs)
    return run


def deadlines(run: Stage, node: str) -> list[str | None]:
    """The deadlines with which a node was started, each time."""
    events = [record.event for record in run.events(NodeStarted) if started(node)(record)]
    return [event.deadline for event in events if isinstance(event, NodeStarted)]


WAITING = "w [shape=insulator, duration=DURATION]; start -> w -> exit"


def test_a_wait_keeps_its_deadline_across_a_resume(tmp_path: Path) -> None:
    run = staged(tmp_path, WAITING.replace("DURATION", "2s"))
    driven = run.in_background()
    driven.until(started("w"))
    run.directory().leave_request("stop", {})
    assert driven.end().status == STOPPED

    state = run.resume()

    assert (state.status, run.path()) == (SUCCESS, "start w exit")
    first, second = deadlines(run, "w")
    assert first == second
    assert first is not None
    [ended] = [record for record in run.events(NodeFinished) if str(record.position) == "w@1"]
    assert ended.at >= first
    check(run)


def test_a_stop_names_what_it_interrupted(tmp_path: Path) -> None:
    run = staged(tmp_path, WAITING.replace("DURATION", "10m"))
    driven = run.in_background()
    driven.until(started("w"))
    run.directory().leave_request("stop", {"id": "01JKXYZ0000000000000000000"})
    driven.end()

    [stopped] = [record.event for record in run.events(RunStopped)]

    assert stopped == RunStopped(
        cause="request", interrupted=("w@1",), request="01JKXYZ0000000000000000000"
    )


def test_a_pause_waits_for_the_node_that_runs(tmp_path: Path) -> None:
    script = "until test -e $SIGNS/go; do sleep 0.02; done"
    run = staged(tmp_path, f'a [script="{script}"]; b; start -> a -> b -> exit')
    driven = run.in_background()
    driven.until(started("a"))
    run.directory().leave_request("pause", {})
    driven.until_holds(lambda: not list(run.directory().pending_requests()))
    (tmp_path / "signs" / "go").write_text("")

    assert (driven.end().status, run.path()) == (PAUSED, "start a")
    assert (run.resume().status, run.path()) == (SUCCESS, "start a b exit")
    check(run)


GATE = """
    q [shape=hexagon, timeout=200ms, MORE]; y; n; r
    start -> q; q -> y [label="[Y] Yes"]; q -> n [label="[N] No"]
    y -> exit; n -> exit; r -> exit
"""


def pass_deadline(run: Stage) -> None:
    """Returns once the deadline of the open question has passed, which it does by itself."""
    [deadline] = run.seen_state().deadlines.values()
    while engine.stamp(datetime.now(UTC)) <= deadline:
        threading.Event().wait(0.01)


@pytest.mark.parametrize(
    ("more", "path", "status", "reason"),
    [
        pytest.param('"human.default_choice"=no', "start q n exit", SUCCESS, "", id="key"),
        pytest.param('"human.default_choice"=n', "start q n exit", SUCCESS, "", id="target"),
        pytest.param("retry_target=r", "start q r exit", SUCCESS, "", id="retry-target"),
        pytest.param(
            "", "start q", FAIL, "q@1: retries exhausted: nobody answered in time", id="nothing"
        ),
        pytest.param("max_retries=1", "start q*2", BLOCKED, "", id="asked-anew"),
    ],
)
def test_a_deadline_that_has_passed_counts_on_resume(
    tmp_path: Path, more: str, path: str, status: str, reason: str
) -> None:
    run = staged(tmp_path, GATE.replace("MORE", more))
    assert run.begin().status == BLOCKED
    pass_deadline(run)

    state = run.resume()

    assert (run.path(), state.status, run.reason()) == (path, status, reason)
    check(run)


def test_an_answer_that_was_left_is_read_before_the_line_parks(tmp_path: Path) -> None:
    run = staged(tmp_path, GATE.replace("timeout=200ms, MORE", ""))
    assert run.begin().status == BLOCKED
    run.directory().leave_request("answer", {"text": "no"}, gate="q@1")

    state = run.resume()

    assert (state.status, run.path()) == (SUCCESS, "start q n exit")
    check(run)


def test_a_gate_is_approved_by_its_first_choice(tmp_path: Path) -> None:
    run = staged(tmp_path, GATE.replace("timeout=200ms, MORE", ""))

    state = run.begin(terms=Terms(auto_approve=True))

    assert (state.status, run.path()) == (SUCCESS, "start q y exit")
    assert state.line.context_values["human.gate.selected"] == "Y"


def test_a_gate_with_free_text_only_is_approved_by_a_text(tmp_path: Path) -> None:
    run = staged(tmp_path, "q [shape=hexagon]; start -> q; q -> exit [freeform=true]")

    state = run.begin(terms=Terms(auto_approve=True))

    context = state.line.context_values
    assert (context["human.gate.selected"], context["human.gate.text"]) == (
        "freeform",
        "auto-approved",
    )


DRY = """
    a [shape=box, prompt="do it"]; b [script="exit 1"]; w [shape=insulator, duration=10m]
    q [shape=hexagon]; s [shape=component, prompt="no agent is asked"]; x; y
    j [shape=tripleoctagon, merge=all]
    start -> a -> b -> w -> q; q -> s [label=Yes]; s -> x -> j; s -> y -> j; j -> exit
"""


def program(run: Stage, *args: str) -> tuple[int, list[str]]:
    """Exit status of the program, and the nodes that finished, as the stream tells them.

    A run without Git is locked by its process, so each step is a process of its own.
    """
    done = subprocess.run(
        [sys.executable, "-m", "git_fabro", *args],
        cwd=run.repo.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=run.environment,
    )
    state = Path(run.environment["XDG_STATE_HOME"]) / "git-fabro"
    [journal] = state.glob("*/*/journal.jsonl")
    run.run = RunId(journal.parent.name)
    records = [entry.record for entry in read(journal).entries]
    ended = (record for record in records if isinstance(record.event, NodeFinished))
    return done.returncode, [str(record.position) for record in ended]


def test_a_dry_run_takes_all_as_success_and_leaves_no_commit(tmp_path: Path) -> None:
    run = staged(tmp_path, DRY)

    status, visits = program(run, "run", "--dry-run", "w.fabro")

    assert status == 0
    assert sorted(visits) == sorted(
        f"{n}@1" for n in ["start", "a", "b", "w", "q", "s", "x", "y", "j", "exit"]
    )
    assert run.repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert run.repo.git("status", "--porcelain") == ""


def test_a_dry_run_of_an_endless_loop_ends(tmp_path: Path) -> None:
    run = staged(tmp_path, "a; start -> a; a -> a; a -> exit [condition=done]")

    status, visits = program(run, "run", "--dry-run", "w.fabro")

    assert (status, visits) == (1, ["start@1", *(f"a@{n}" for n in range(1, 11))])


@pytest.mark.parametrize("git", [True, False], ids=["no-checkpoint", "no-repository"])
def test_a_run_without_git_goes_on_from_its_journal(tmp_path: Path, git: bool) -> None:
    run = staged(
        tmp_path,
        """a [script="echo a >> f"]; q [shape=hexagon]; b [script="echo b >> f"]
        start -> a -> q; q -> b [label=Yes]; b -> exit""",
        git=git,
    )
    assert program(run, "run", "--no-checkpoint", "w.fabro") == (3, ["start@1", "a@1"])
    assert program(run, "resume", run.run) == (3, ["start@1", "a@1"])

    status, visits = program(run, "resume", "--auto-approve", run.run)

    assert (status, visits) == (0, ["start@1", "a@1", "q@1", "b@1", "exit@1"])
    assert (run.repo.path / "f").read_text() == "a\nb\n"
    if git:
        assert run.repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_branches_without_git_work_in_one_folder(tmp_path: Path) -> None:
    run = staged(
        tmp_path,
        """s [shape=component]; a [script="echo a > a"]; b [script="echo b > b"]
        j [shape=tripleoctagon, merge=all]; start -> s; s -> a -> j; s -> b -> j; j -> exit""",
        git=False,
    )

    status, visits = program(run, "run", "w.fabro")

    assert (status, visits[-1]) == (0, "exit@1")
    assert {path.name for path in run.repo.path.iterdir()} == {"a", "b", "w.fabro", "run.toml"}


def test_a_loop_of_a_hundred_visits(tmp_path: Path) -> None:
    run = staged(
        tmp_path,
        """a [script="echo $FABRO_VISIT > n; test $FABRO_VISIT -ge 100"]; start -> a
        graph [loop_restart_signature_limit=0]
        a -> exit [condition="outcome=success"]; a -> a""",
    )

    state = run.begin()

    assert (state.status, state.line.node_visits["a"]) == (SUCCESS, 100)
    assert run.show("fabro/run/RUN:n") == "100"
    count = run.repo.git("rev-list", "--count", "--first-parent", f"main..fabro/run/{run.run}")
    assert count == "100"
    check(run)


def test_a_restart_of_the_loop_keeps_files_and_counts(tmp_path: Path) -> None:
    run = staged(
        tmp_path,
        """a [script="echo $FABRO_VISIT >> n; exit 75"]; start -> a; a -> exit
        a -> b [condition="internal.node_visit_count > 1"]; b -> exit; b
        a -> a [condition="internal.node_visit_count = 1", loop_restart=true]""",
    )

    state = run.begin()

    assert (run.path(), state.status) == ("start a a b exit", SUCCESS)
    assert run.show("fabro/run/RUN:n") == "1\n2"
    assert state.line.completed_nodes == ("a", "b")
    check(run)


def test_setup_prepares_the_work_tree_before_the_first_node(tmp_path: Path) -> None:
    settings = '[setup]\ncommands = ["echo one > made", "echo two >> made"]\n'
    run = staged(tmp_path, 'a [script="cp made seen"]; start -> a -> exit', settings=settings)

    state = run.begin()

    assert state.status == SUCCESS
    assert run.show("fabro/run/RUN:seen") == "one\ntwo"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ('commands = ["true", "exit 3", "echo > never"]', "ended with status 3: exit 3"),
        ('commands = ["exec sleep 600"]\ntimeout_ms = 50', "did not end in time: exec sleep 600"),
    ],
    ids=["status", "timeout"],
)
def test_a_run_whose_setup_fails_runs_no_node(tmp_path: Path, settings: str, why: str) -> None:
    run = staged(tmp_path, "a; start -> a -> exit", settings=f"[setup]\n{settings}\n")

    with pytest.raises(RequestError, match="preparation") as caught:
        run.begin()

    assert caught.value.message == f"preparation {why}"
    assert run.repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert [record.event.kind for record in run.records if record.position] == []
