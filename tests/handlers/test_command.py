"""Command nodes: scripts, run for real, and what they come to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from git_fabro.handlers import command
from git_fabro.handlers.call import Interrupted, Stop
from git_fabro.workflow.state import (
    DETERMINISTIC,
    FAIL,
    SUCCESS,
    TIMED_OUT,
    TRANSIENT,
    Failure,
    Outcome,
)
from tests.handlers.calls import a_call, a_node


def outcome(status: str, output: str = "", stderr: str = "", failure: Failure | None = None):
    updates = {"command.output": output, "command.stderr": stderr}
    return Outcome(status=status, context_updates=updates, failure=failure)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", outcome(SUCCESS)),
        ("echo hi; echo there >&2", outcome(SUCCESS, "hi\n", "there\n")),
        ("exit 3", outcome(FAIL, failure=Failure("exit status 3"))),
        (
            "echo out; printf 'first\n\nlast one \n\n' >&2; exit 1",
            outcome(FAIL, "out\n", "first\n\nlast one \n\n", Failure("exit status 1: last one")),
        ),
        ("echo a; echo b; exit 1", outcome(FAIL, "a\nb\n", "", Failure("exit status 1: b"))),
        ("echo 429 >&2; exit 1", outcome(FAIL, "", "429\n", Failure("exit status 1: 429"))),
        ("exit 75", outcome(FAIL, failure=Failure("exit status 75", TRANSIENT))),
        ("kill -9 $$", outcome(FAIL, failure=Failure("ended by signal 9"))),
        ('echo \'{"outcome":"fail"}\'', outcome(SUCCESS, '{"outcome":"fail"}\n')),
        (r"printf '\377'", outcome(SUCCESS, "\ufffd")),
        ("echo hunter22", outcome(SUCCESS, "***\n")),
        (
            r"printf '\033[31mred\033[0m \001'; exit 2",
            outcome(FAIL, "\x1b[31mred\x1b[0m \x01", "", Failure("exit status 2: red")),
        ),
    ],
)
def test_the_exit_status_decides_and_the_output_is_text(tmp_path, script, expected) -> None:
    assert command.run(a_call(tmp_path, script)).outcome == expected


def test_a_reason_is_cut(tmp_path: Path) -> None:
    done = command.run(a_call(tmp_path, "printf '%300s' x | tr ' ' y; exit 1"))

    assert done.outcome.failure == Failure("exit status 1: " + "y" * 200, DETERMINISTIC)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"timeout_s": 0.2}, "timed out after 0.2s"),
        ({"stall_timeout_s": 0.2}, "no output for 0.2s"),
    ],
    ids=["timeout", "stall"],
)
def test_a_time_limit_is_a_failure_of_its_own_class(tmp_path, limits, message) -> None:
    call = a_call(tmp_path, "trap 'exit 0' TERM; echo hi; sleep 600 & wait", **limits)

    done = command.run(call)

    assert done.outcome == outcome(FAIL, "hi\n", "", Failure(message, TIMED_OUT))
    assert json.loads(done.trace["script_timing.json"])["timed_out"] is True


@pytest.mark.parametrize("size", [0, 200_000], ids=["short", "too long for an argument"])
@pytest.mark.parametrize(
    ("language", "script", "said"),
    [
        ("shell", "#{pad}\necho $((1 + 1)) $PWD", "2 {work}\n"),
        ("python", "#{pad}\nimport os\nprint(1 + 1, os.getcwd())", "2 {work}\n"),
    ],
)
def test_a_script_in_its_language_in_the_work_tree(tmp_path, language, script, said, size) -> None:
    node = a_node(language=language)
    call = a_call(tmp_path, script.replace("{pad}", "x" * size), node)

    done = command.run(call)

    assert done.outcome == outcome(SUCCESS, said.replace("{work}", str(tmp_path / "work")))


def test_the_trace_says_what_was_run_and_how_long(tmp_path: Path) -> None:
    done = command.run(a_call(tmp_path, "echo hunter22; exit 4", timeout_s=600.0))

    trace = {name: json.loads(data) for name, data in done.trace.items()}
    assert trace["script_timing.json"].pop("duration_ms") >= 0
    assert trace == {
        "script_invocation.json": {
            "command": "echo ***; exit 4",
            "language": "shell",
            "timeout_ms": 600_000,
        },
        "script_timing.json": {"exit_code": 4, "timed_out": False},
    }


def test_a_stop_leaves_no_outcome(tmp_path: Path) -> None:
    stop = Stop()
    stop.set("stop")

    with pytest.raises(Interrupted):
        command.run(a_call(tmp_path, "sleep 600", stop=stop))
