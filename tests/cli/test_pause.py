"""``git fabro pause``: the run rests after the node that is running."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.typed import Shell, Typed, until

HINT = "hint: git fabro resume <run>\n"


def test_a_run_rests_after_the_running_node(shell: Shell, tmp_path: Path) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")
    held = '"attempt":1,"node":"held"'
    until(lambda: held in shell.exactly("events", "held").out, "the second node begins")

    assert shell("pause", "held") == Typed(0, "asked to pause: <run>\n", "")
    (tmp_path / "go").touch()

    assert shell("wait", "held") == Typed(3, "<run> paused\n", "")
    assert json.loads(shell("list", "--json").out)["runs"][0]["checkpoints"] == 2
    assert shell("resume", "held").status == 0


def test_a_pause_is_a_document(shell: Shell, tmp_path: Path) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")

    typed = shell("pause", "held", "--json")
    (tmp_path / "go").touch()

    assert json.loads(typed.out) == {"asked": "pause", "run_id": "<run>"}
    shell("wait", "held")


def test_without_a_driver_there_is_nothing_to_pause(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("pause", "asks") == Typed(128, "", f"fatal: nobody drives the run: <run>\n{HINT}")


def test_a_run_that_has_ended_is_refused(shell: Shell) -> None:
    shell("run", "two")

    assert shell("pause", "two") == Typed(
        128, "", "fatal: the run has ended in success: <run>\nhint: git fabro show <run>\n"
    )


def test_which_run_must_be_said(shell: Shell) -> None:
    assert shell("pause") == Typed(
        129, "", "fatal: argument is missing: RUN\nhint: git fabro pause -h\n"
    )
