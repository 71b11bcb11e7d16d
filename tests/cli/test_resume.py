"""``git fabro resume``: what it goes on with, and what it refuses."""

from __future__ import annotations

import json

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo


def test_an_answered_run_goes_on_to_its_end(shell: Shell) -> None:
    shell("run", "asks")
    shell("answer", "review@1", "y")

    assert shell("resume") == Typed(
        0,
        "<run> success\n"
        "3 nodes in <spent>, branch fabro/run/<run>\n"
        "  git log --first-parent fabro/run/<run>\n"
        "  git merge fabro/run/<run>\n",
        "run <run> (the newest)\nrun <run>\n",
    )


def test_the_summary_is_a_document(shell: Shell) -> None:
    shell("run", "asks")
    shell("answer", "review@1", "n")

    typed = shell("resume", "--json", "asks")

    assert (typed.status, typed.err) == (1, "")
    assert json.loads(typed.out) == {
        "branch": "fabro/run/<run>",
        "node": "exit",
        "nodes": 3,
        "questions": [],
        "reason": "unhandled failures: hold@1",
        "run_id": "<run>",
        "status": "fail",
        "unhandled": ["hold@1"],
    }


def test_a_run_without_an_answer_is_blocked_again(shell: Shell) -> None:
    shell("run", "asks")

    typed = shell("resume", "-v", "asks")

    assert (typed.status, typed.out.splitlines()[0]) == (3, "<run> blocked")


def test_detached_prints_the_id(shell: Shell) -> None:
    shell("run", "asks")
    shell("answer", "review@1", "y")

    assert shell.apart("resume", "-d", "asks") == Typed(0, "<run>\n", "")
    assert shell("wait", "asks") == Typed(0, "<run> success\n", "")


def test_a_finished_run_is_refused(shell: Shell) -> None:
    shell("run", "two")
    refused = "fatal: the run has ended in success: <run>\nhint: git fabro show <run>\n"

    assert shell("resume", "two") == Typed(128, "", refused)
    assert shell.apart("resume", "-d", "two") == Typed(128, "", refused)


def test_a_run_that_is_not_there_is_refused(shell: Shell) -> None:
    assert shell("resume") == Typed(
        128, "", "fatal: there are no runs here\nhint: git fabro run WORKFLOW\n"
    )
    assert shell("resume", "nope") == Typed(
        128, "", "fatal: no run found matching 'nope'\nhint: git fabro list -a\n"
    )


def test_a_workflow_that_arrived_by_fetch_is_shown_first(shell: Shell, repo: GitRepo) -> None:
    shell("run", "asks")
    shell("answer", "review@1", "y")
    repo.path.joinpath(".git/fabro/admitted").unlink()
    refused = (
        "fatal: the workflow of this run is not admitted here: <run>\n"
        "hint: git fabro resume --trust <run>\n"
    )

    typed = shell("resume", "asks")
    detached = shell.apart("resume", "-d", "asks")

    assert (typed.status, typed.out) == (128, "")
    assert typed.err.startswith("digraph Asks {\n")
    assert typed.err.endswith(refused)
    assert detached == typed
    assert shell("resume", "--trust", "asks").status == 0
