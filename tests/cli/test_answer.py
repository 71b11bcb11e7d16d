"""``git fabro answer``: what is asked, and what an answer does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed, process, until

NEWEST = "run <run> (the newest)\n"
ASKED = "review@1: Ship it?\n  [Y] Yes\n  [N] No\n"


def test_what_is_asked_is_listed(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("answer") == Typed(0, ASKED, NEWEST)
    assert shell("answer", "asks") == Typed(0, ASKED, "")
    assert shell("answer", "review@1") == Typed(0, ASKED, NEWEST)
    assert shell("answer", "asks", "review@1") == Typed(0, ASKED, "")


def test_what_is_asked_is_a_document(shell: Shell) -> None:
    shell("run", "asks")

    found = json.loads(shell("answer", "--json").out)

    assert found["run_id"] == "<run>"
    assert found["questions"]["review@1"]["text"] == "Ship it?"
    assert found["questions"]["review@1"]["options"] == [
        {"key": "Y", "label": "Yes", "target": "ship"},
        {"key": "N", "label": "No", "target": "hold"},
    ]


def test_nothing_asked_is_status_1(shell: Shell) -> None:
    shell("run", "two")

    assert shell("answer", "two") == Typed(1, "", "no question is open: <run>\n")
    assert json.loads(shell("answer", "two", "--json").out) == {"questions": {}, "run_id": "<run>"}


@pytest.mark.parametrize("choice", ["Y", "y", "yes", "[Y] Yes", "ship"])
def test_an_answer_is_recorded(shell: Shell, choice: str) -> None:
    shell("run", "asks")

    assert shell("answer", "review@1", choice) == Typed(
        0, "answered: review@1\n", f"{NEWEST}hint: git fabro resume <run>\n"
    )

    answered = [row for row in shell("events").out.splitlines() if "question.answered" in row]
    assert json.loads(answered[0])["data"]["choice"] == "Y"


def test_an_answer_is_a_document(shell: Shell) -> None:
    shell("run", "asks")

    typed = shell("answer", "asks", "review@1", "n", "--json")

    assert json.loads(typed.out) == {
        "answer": "recorded",
        "question": "review@1",
        "run_id": "<run>",
    }


def test_a_question_may_be_declined(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("answer", "review@1", "--refuse", "--reason", "not mine").status == 0

    refused = [row for row in shell("events").out.splitlines() if "question.refused" in row]
    assert json.loads(refused[0])["data"]["reason"] == "not mine"
    assert shell("resume").status == 1


def test_the_first_answer_stands(shell: Shell) -> None:
    shell("run", "asks")
    shell("answer", "review@1", "y")

    assert shell("answer", "review@1", "n") == Typed(
        128,
        "",
        f"{NEWEST}fatal: no open question: review@1 (no question is open)\n"
        "hint: git fabro answer <run>\n",
    )


@pytest.mark.parametrize(
    ("argv", "err"),
    [
        pytest.param(
            ["review@1", "maybe"],
            f"{NEWEST}fatal: no choice of review@1: 'maybe'; choices: Y (Yes), N (No)\n"
            "hint: git fabro answer <run> review@1 Y\n",
            id="choice",
        ),
        pytest.param(
            ["review@2", "y"],
            f"{NEWEST}fatal: no open question: review@2 (open: review@1)\n"
            "hint: git fabro answer <run>\n",
            id="question",
        ),
        pytest.param(
            ["review@2"],
            f"{NEWEST}fatal: no open question: review@2 (open: review@1)\n"
            "hint: git fabro answer <run>\n",
            id="question to be listed",
        ),
        pytest.param(
            ["nope", "review@1", "y"],
            "fatal: no run found matching 'nope'\nhint: git fabro list -a\n",
            id="run",
        ),
        pytest.param(
            ["review@1", "not", "now"],
            f"{NEWEST}fatal: too many arguments: now; a text of several words is quoted\n"
            "hint: git fabro answer <run> review@1 'TEXT'\n",
            id="too many",
        ),
        pytest.param(
            ["--refuse"],
            f"{NEWEST}fatal: --refuse needs a question\nhint: git fabro answer <run>\n",
            id="nothing to refuse",
        ),
        pytest.param(
            ["review@1", "y", "--reason", "x"],
            "fatal: --reason goes with --refuse\nhint: git fabro answer -h\n",
            id="reason",
        ),
    ],
)
def test_what_is_no_answer_is_refused(shell: Shell, argv: list[str], err: str) -> None:
    shell("run", "asks")

    assert shell("answer", *argv) == Typed(128, "", err)


def test_a_run_without_git_is_answered_and_resumed_too(shell: Shell, outside: Shell) -> None:
    outside.apart("run", str(shell.folder / "fabro/workflows/asks/workflow.fabro"))

    assert outside("answer") == Typed(0, ASKED, NEWEST)
    assert outside.apart("answer", "review@1", "y") == Typed(
        0, "answered: review@1\n", f"{NEWEST}hint: git fabro resume <run>\n"
    )
    assert outside.apart("resume").status == 0
    assert outside("wait") == Typed(0, "<run> success\n", NEWEST)


def test_without_a_run_there_is_nothing_to_answer(outside: Shell) -> None:
    assert outside("answer") == Typed(
        128, "", "fatal: there are no runs here\nhint: git fabro run WORKFLOW\n"
    )


#: One branch waits at a gate while the other runs, so a driver lives while the question is open.
BESIDE = """digraph {
  start [shape=Mdiamond]; exit [shape=Msquare]
  split [shape=component]; join [shape=tripleoctagon, merge=all]
  ask [shape=hexagon, label="Go on?"]; yes [script="echo yes"]
  held [script="while ! test -e $GATE/go; do sleep 0.05; done"]
  start -> split; split -> ask; ask -> yes [label="[Y] Yes"]; yes -> join
  split -> held -> join; join -> exit
}
"""


def test_an_answer_to_a_living_driver_is_left_for_it(shell: Shell, tmp_path: Path) -> None:
    shell.folder.joinpath("beside.fabro").write_text(BESIDE)
    driver = process(shell.folder, "run", "beside.fabro", environment={"GATE": str(tmp_path)})
    until(lambda: "question.asked" in _events(shell), "the question is asked")

    assert shell("answer", "ask@1", "y") == Typed(0, "answer left for the driver: ask@1\n", NEWEST)

    until(lambda: "question.answered" in _events(shell), "the driver records it")
    (tmp_path / "go").touch()
    driver.communicate()
    assert driver.returncode == 0
    assert "<time> question.asked     split@1/ask: ask@1 asks: Go on?\n" in (
        shell("events", "--pretty").out
    )


def _events(shell: Shell) -> str:
    listed = shell.exactly("list", "-q").out
    return shell.exactly("events").out if listed else ""
