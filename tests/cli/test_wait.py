"""``git fabro wait``: the exit status says how a run came to rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed, process, until


def test_success_is_0(shell: Shell) -> None:
    shell("run", "two")

    assert shell("wait", "two") == Typed(0, "<run> success\n", "")


def test_a_question_is_3(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("wait") == Typed(3, "<run> blocked\n", "run <run> (the newest)\n")


def test_failure_is_1(shell: Shell) -> None:
    shell("run", "asks")
    shell("answer", "review@1", "n")
    shell("resume")

    assert shell("wait", "asks") == Typed(1, "<run> fail: unhandled failures: hold@1\n", "")


def test_the_end_is_a_document(shell: Shell) -> None:
    shell("run", "asks")

    assert json.loads(shell("wait", "--json").out) == {
        "branch": "fabro/run/<run>",
        "node": "start",
        "nodes": 1,
        "questions": ["review@1"],
        "reason": "",
        "run_id": "<run>",
        "status": "blocked",
        "unhandled": [],
    }


def test_it_waits_as_long_as_it_takes(shell: Shell, tmp_path: Path) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")
    waiting = process(shell.folder, "wait", "held")

    assert shell("wait", "held", "--timeout", "0") == Typed(
        128, "", "fatal: run has not ended in time: <run>\nhint: git fabro attach <run>\n"
    )
    (tmp_path / "go").touch()
    out, _ = waiting.communicate()

    assert (waiting.returncode, out) == (0, f"{shell.run_id()} success\n")


def test_a_driver_that_was_killed_leaves_an_interrupted_run(shell: Shell, tmp_path: Path) -> None:
    driver = process(shell.folder, "run", "held", environment={"GATE": str(tmp_path)})
    until(lambda: "held@1" in shell.exactly("events", "-q").out + _events(shell), "held begins")

    driver.kill()
    driver.communicate()

    assert shell("wait", "held") == Typed(1, "<run> interrupted\n", "")


def _events(shell: Shell) -> str:
    listed = shell.exactly("list", "-q").out
    return shell.exactly("events", "--pretty").out if listed else ""


@pytest.mark.parametrize("argv", [[], ["nope"]])
def test_without_a_run_there_is_nothing_to_wait_for(shell: Shell, argv: list[str]) -> None:
    assert shell("wait", *argv).status == 128
