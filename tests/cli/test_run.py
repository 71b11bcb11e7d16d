"""``git fabro run``: what it prints, how it ends, what it refuses."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pexpect
import pytest

from tests.cli.typed import Shell, Typed, process, program, stable, until
from tests.conftest import GitRepo

DONE = """\
<run> success
3 nodes in <spent>, branch fabro/run/<run>
  git log --first-parent fabro/run/<run>
  git merge fabro/run/<run>
"""
ALONE = """\
<run> success
3 nodes in <spent>, no checkpoints
  git fabro show <run>
"""
BLOCKED = """\
<run> blocked
1 node in <spent>, branch fabro/run/<run>
  git fabro answer <run> review@1 CHOICE
  git fabro resume <run>
"""
NO_REPOSITORY = "warning: not a git repository: the run has no checkpoints, only its journal\n"


def test_a_run_ends_with_its_status_and_what_can_follow(shell: Shell, repo: GitRepo) -> None:
    assert shell("run", "two") == Typed(0, DONE, "run <run>\n")

    run = shell.run_id()
    assert repo.git("show", f"fabro/run/{run}:build.txt") == "built"
    assert repo.git("status", "--porcelain") == ""


def test_a_run_tells_its_progress_to_who_asks(shell: Shell) -> None:
    told = (
        "run <run>\nplan@1 ...\nplan@1 success (<spent>)\nbuild@1 ...\nbuild@1 success (<spent>)\n"
    )

    assert shell("run", "-v", "two") == Typed(0, DONE, told)


def test_the_summary_is_a_document(shell: Shell) -> None:
    typed = shell("run", "--json", "two")

    assert (typed.status, typed.err) == (0, "")
    assert json.loads(typed.out) == {
        "branch": "fabro/run/<run>",
        "node": "exit",
        "nodes": 3,
        "questions": [],
        "reason": "",
        "run_id": "<run>",
        "status": "success",
        "unhandled": [],
    }


def test_a_question_without_a_terminal_parks_the_run(shell: Shell) -> None:
    assert shell("run", "asks") == Typed(3, BLOCKED, "run <run>\n")


def test_a_failure_is_status_1(shell: Shell) -> None:
    shell.folder.joinpath("bad.fabro").write_text(
        "digraph { start [shape=Mdiamond]; exit [shape=Msquare]\n"
        ' a [shape=parallelogram, script="exit 7"]\n start -> a -> exit }\n'
    )

    typed = shell("run", "bad.fabro", "--dirty", "head")

    assert typed.status == 1
    assert typed.out == (
        "<run> fail: unhandled failures: a@1\n"
        "2 nodes in <spent>, branch fabro/run/<run>\n"
        "  git log --first-parent fabro/run/<run>\n"
        "  git fabro resume <run>\n"
    )


@pytest.mark.parametrize("option", ["--dry-run", "--no-checkpoint"])
def test_a_run_may_leave_git_alone(shell: Shell, repo: GitRepo, option: str) -> None:
    before = repo.git("for-each-ref")

    assert shell.apart("run", "two", option) == Typed(0, ALONE, "run <run>\n")

    assert repo.git("for-each-ref") == before


def test_outside_a_repository_only_the_journal_is_kept(shell: Shell, outside: Shell) -> None:
    file = str(shell.folder / "fabro/workflows/two/workflow.fabro")

    assert outside.apart("run", file) == Typed(0, ALONE, f"{NO_REPOSITORY}run <run>\n")


def test_before_the_first_commit_a_run_has_a_root_of_its_own(tmp_path: Path, shell: Shell) -> None:
    fresh = GitRepo(tmp_path / "fresh")
    fresh.path.mkdir()
    fresh.git("init", "-q")

    typed = shell.at(fresh.path)("run", str(shell.folder / "fabro/workflows/two/workflow.fabro"))

    assert typed == Typed(0, DONE, "run <run>\n")


def test_a_bare_repository_runs_files_but_not_in_place(tmp_path: Path, shell: Shell) -> None:
    bare = GitRepo(tmp_path / "bare.git")
    GitRepo(tmp_path).git("clone", "-q", "--bare", "repo", "bare.git")
    file = str(shell.folder / "fabro/workflows/two/workflow.fabro")
    prompt = shell.at(bare.path)

    assert prompt("run", file) == Typed(0, DONE, "run <run>\n")
    assert prompt("run", "--in-place", file) == Typed(
        128,
        "",
        "fatal: a bare repository has no work tree to run in: --in-place\n"
        "hint: run without --in-place\n",
    )


def test_uncommitted_changes_are_named(shell: Shell, repo: GitRepo) -> None:
    repo.write({"new.txt": "new"})

    typed = shell("run", "two")

    assert typed.err == (
        "warning: uncommitted changes are not in the run; "
        "to take them along: git fabro run --dirty carry\n"
        "run <run>\n"
    )


@pytest.mark.parametrize(
    ("argv", "err"),
    [
        pytest.param(
            ["nope"],
            "fatal: no such workflow: nope\nhint: git fabro workflow list\n",
            id="name",
        ),
        pytest.param(
            ["nope.fabro"],
            "fatal: no such workflow file: nope.fabro\nhint: git fabro workflow list\n",
            id="file",
        ),
        pytest.param(
            ["two", "--executor", "cloud"],
            "fatal: no such executor: cloud\nhint: git fabro run --executor local\n",
            id="executor",
        ),
        pytest.param(
            ["two", "--label", "x"],
            "fatal: --label takes K=V, not: x\nhint: --label KEY=VALUE\n",
            id="label",
        ),
        pytest.param(
            ["two", "--goal", "a", "--goal-file", "b"],
            "fatal: both --goal and --goal-file were given\nhint: git fabro run -h\n",
            id="two goals",
        ),
        pytest.param(
            ["two", "--goal-file", "nope"],
            "fatal: cannot read the goal: nope: No such file or directory\n"
            "hint: git fabro run --goal TEXT\n",
            id="goal file",
        ),
        pytest.param(
            ["two", "--dirty", "maybe"],
            "fatal: --dirty is head, carry or in-place, not: maybe\n"
            "hint: git fabro run --dirty head\n",
            id="dirty",
        ),
        pytest.param(
            ["-d", "nope"],
            "fatal: no such workflow: nope\nhint: git fabro workflow list\n",
            id="detached",
        ),
    ],
)
def test_what_cannot_run_is_refused_before_anything_exists(
    shell: Shell, repo: GitRepo, argv: list[str], err: str
) -> None:
    before = repo.git("for-each-ref")

    assert shell.exactly("run", *argv) == Typed(128, "", err)

    assert repo.git("for-each-ref") == before


def test_a_workflow_with_errors_shows_them_all(shell: Shell) -> None:
    shell.folder.joinpath("bad.fabro").write_text(
        "digraph { start [shape=Mdiamond]; exit [shape=Msquare]; start -> exti }\n"
    )

    typed = shell.exactly("run", "bad.fabro")

    assert (typed.status, typed.out) == (128, "")
    assert '1:66: edge target "exti" is not declared; did you mean "exit"?' in typed.err
    assert typed.err.splitlines()[-2].startswith("fatal: workflow has errors: ")
    assert typed.err.splitlines()[-1].startswith("hint: git fabro validate ")


def test_text_from_outside_cannot_steer_the_terminal(shell: Shell) -> None:
    shell.folder.joinpath("evil.fabro").write_text(
        'digraph { goal="a\x1b[2Jb\u202ec"; start [shape=Mdiamond]; exit [shape=Msquare]\n'
        " bad [shape=parallelogram, script=\"printf 'x\\033]0;t\\007y' >&2; exit 1\"]\n"
        " start -> bad -> exit }\n"
    )

    texts = [
        shell.exactly(*argv)
        for argv in (
            ("run", "-v", "evil.fabro"),
            ("list", "-a"),
            ("list", "-a", "--json"),
            ("show",),
            ("show", "--json"),
            ("show", "--node", "bad"),
            ("show", "--context", "command.stderr"),
            ("events",),
            ("events", "--pretty"),
            ("graph", "evil.fabro", "--json"),
        )
    ]

    for typed in texts:
        printed = typed.out + typed.err
        assert not [one for one in printed if one in "\x1b\x07\u202e\x9b\r\x7f"], printed
    assert "a\\x1b[2Jb\\u202ec" in texts[1].out


def test_detached_prints_the_id_and_goes_on_alone(shell: Shell) -> None:
    began = shell.apart("run", "-d", "two")

    assert began == Typed(0, "<run>\n", "")
    assert shell("wait") == Typed(0, "<run> success\n", "run <run> (the newest)\n")


def test_detached_prints_a_document_to_who_asks(shell: Shell) -> None:
    began = shell.apart("run", "-d", "--json", "two")

    assert (began.status, json.loads(began.out)) == (0, {"run_id": "<run>"})
    shell("wait")


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_a_run_in_good_order(
    shell: Shell, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    driver = process(shell.folder, "run", "held", environment={"GATE": str(tmp_path)})
    until(lambda: '"node": "held"' in _state(shell), "the second node begins")

    driver.send_signal(number)
    out, _ = driver.communicate()

    assert driver.returncode == status
    assert stable(out) == (
        "<run> stopped: signal\n"
        "2 nodes in <spent>, branch fabro/run/<run>\n"
        "  git log --first-parent fabro/run/<run>\n"
        "  git fabro resume <run>\n"
    )


def _state(shell: Shell) -> str:
    typed = shell.exactly("list", "--json")
    return typed.out if json.loads(typed.out)["runs"] else ""


def test_a_question_is_asked_at_the_terminal(shell: Shell) -> None:
    command, *arguments = program("run", "asks")
    terminal = pexpect.spawn(
        command, arguments, cwd=str(shell.folder), env=dict(os.environ), timeout=30
    )

    terminal.expect_exact("review@1: Ship it?\r\n  [Y] Yes\r\n  [N] No\r\n> ")
    terminal.sendline("maybe")
    terminal.expect_exact("no choice of review@1: maybe\r\n> ")
    terminal.sendline("yes")
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert terminal.exitstatus == 0
    assert '"status": "success"' in shell("list", "-a", "--json").out


def test_the_end_of_input_parks_the_run(shell: Shell) -> None:
    command, *arguments = program("run", "asks")
    terminal = pexpect.spawn(
        command, arguments, cwd=str(shell.folder), env=dict(os.environ), timeout=30
    )

    terminal.expect_exact("> ")
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert terminal.exitstatus == 3


def test_a_question_at_the_terminal_may_be_answered_elsewhere(shell: Shell) -> None:
    command, *arguments = program("run", "asks")
    terminal = pexpect.spawn(
        command, arguments, cwd=str(shell.folder), env=dict(os.environ), timeout=30
    )
    terminal.expect_exact("> ")

    assert shell("answer", "review@1", "yes").out == "answer left for the driver: review@1\n"

    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
