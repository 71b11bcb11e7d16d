"""``git fabro graph``: workflows and runs, drawn."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.typed import Shell, Typed

TWO = """\
start (start)
  -> plan
plan (command)
  -> build
build (command)
  -> exit
exit (exit)
"""
RUN = """\
start (start) success
  => review
review (human) next
  -> ship "[Y] Yes"
  -> hold "[N] No"
ship (command)
  -> exit
hold (command)
  -> exit
exit (exit)
"""


def test_a_workflow_is_drawn_as_text(shell: Shell) -> None:
    assert shell("graph", "two") == Typed(0, TWO, "")


def test_a_run_is_drawn_with_what_has_happened(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("graph", shell.run_id()) == Typed(0, RUN, "")
    assert "start (start)\x1b[32m success\x1b[m\n" in shell("graph", "--color", shell.run_id()).out


def test_a_run_without_git_is_drawn_too(shell: Shell, outside: Shell) -> None:
    outside.apart("run", str(shell.folder / "fabro/workflows/asks/workflow.fabro"))

    assert outside("graph", outside.run_id()) == Typed(0, RUN, "")


def test_a_workflow_is_drawn_as_dot(shell: Shell) -> None:
    typed = shell("graph", "two", "--dot")

    assert typed.status == 0
    assert typed.out.startswith('digraph "Two" {\n  "start" [shape=Mdiamond, label="start"]\n')
    assert '  "plan" -> "build"' in typed.out


def test_a_workflow_is_drawn_as_a_document(shell: Shell) -> None:
    found = json.loads(shell("graph", "two", "--json").out)

    assert (found["name"], found["goal"]) == ("Two", "ship it")
    assert found["nodes"][1] == {
        "id": "plan",
        "kind": "command",
        "label": "plan",
        "status": None,
        "visits": 0,
    }
    assert found["edges"][0] == {
        "source": "start",
        "target": "plan",
        "label": "",
        "conditional": False,
        "taken": False,
    }


def test_pictures_are_made_by_graphviz(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    fake = folder / "dot"
    fake.write_text('#!/bin/sh\nread -r first\necho "$1 $first"\n')
    fake.chmod(0o755)
    shell.patch.setenv("PATH", str(folder), prepend=":")

    assert shell("graph", "two", "--svg") == Typed(0, '-Tsvg digraph "Two" {\n', "")
    assert shell("graph", "two", "--png") == Typed(0, '-Tpng digraph "Two" {\n', "")
    fake.write_text("#!/bin/sh\necho no >&2\nexit 1\n")
    assert shell("graph", "two", "--svg") == Typed(128, "", "fatal: dot failed: no\n")


def test_without_graphviz_dot_is_offered(shell: Shell) -> None:
    shell.patch.setenv("PATH", "/nonexistent")

    assert shell("graph", "two", "--svg") == Typed(
        128,
        "",
        "fatal: Graphviz is not installed: no dot on PATH\nhint: git fabro graph --dot two\n",
    )


def test_what_cannot_be_drawn_is_refused(shell: Shell) -> None:
    assert shell("graph", "nope") == Typed(
        128, "", "fatal: no such workflow: nope\nhint: git fabro workflow list\n"
    )
    assert shell("graph", "two", "--svg", "--dot") == Typed(
        128, "", "fatal: choose one of --svg, --png, --dot, --json\nhint: git fabro graph -h\n"
    )
