"""``git fabro attach``: a run is followed as it happens."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pexpect

from tests.cli.typed import Shell, Typed, process, program, stable, until

HELD = """\
first@1 ...
first@1 success (<spent>)
held@1 ...
held@1 success (<spent>)
last@1 ...
last@1 success (<spent>)
<run> success
  git log --first-parent fabro/run/<run>
  git merge fabro/run/<run>
"""


def test_a_detached_run_is_followed_to_its_end(shell: Shell, tmp_path: Path) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")
    follower = process(shell.folder, "attach", "held", "-q")
    held = '"attempt":1,"node":"held"'
    until(lambda: held in shell.exactly("events", "held").out, "the second node begins")

    (tmp_path / "go").touch()
    out, err = follower.communicate()

    assert Typed(follower.returncode, stable(out), err) == Typed(0, HELD, "")


def test_the_output_of_nodes_is_shown(shell: Shell) -> None:
    shell("run", "two")

    typed = shell("attach", "two")

    assert (typed.status, typed.err) == (0, "")
    assert "plan@1 | planned\n" in typed.out
    assert "build@1 | built\n" in typed.out


def test_records_come_as_json_lines(shell: Shell) -> None:
    shell("run", "two")

    typed = shell.exactly("attach", "--json", "two")

    assert typed.out == shell.exactly("events", "two").out
    assert json.loads(typed.out.splitlines()[-1])["kind"] == "lease.released"


def test_a_run_that_rests_tells_why(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("attach", "-q") == Typed(
        3,
        "review@1 ...\n"
        "review@1 asks: Ship it?\n"
        "<run> blocked\n"
        "  git fabro answer <run> review@1 CHOICE\n"
        "  git fabro resume <run>\n",
        "run <run> (the newest)\n",
    )


def test_ctrl_c_leaves_the_run_running(shell: Shell, tmp_path: Path) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")
    follower = process(shell.folder, "attach", "held")
    assert follower.stdout is not None
    assert follower.stdout.readline() == "first@1 ...\n"

    follower.send_signal(signal.SIGINT)
    _, err = follower.communicate()

    run = shell.run_id()
    assert follower.returncode == 130
    assert err == f"left running: {run}\nhint: git fabro attach {run}\n"
    assert shell("list", "-q").out == "<run>\n"
    (tmp_path / "go").touch()
    assert shell("wait", "held").status == 0


def test_a_question_is_answered_at_the_terminal(shell: Shell) -> None:
    shell("run", "asks")
    command, *arguments = program("attach", "asks")
    terminal = pexpect.spawn(
        command, arguments, cwd=str(shell.folder), env=dict(os.environ), timeout=30
    )

    terminal.expect_exact("review@1: Ship it?")
    terminal.expect_exact("> ")
    terminal.sendline("n")
    terminal.expect(pexpect.EOF)
    terminal.close()

    assert '"choice":"N"' in shell("events").out
    assert shell("answer", "asks").status == 1
