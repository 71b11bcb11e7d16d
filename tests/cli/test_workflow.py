"""``git fabro workflow``: what there is, and a scaffold that runs."""

from __future__ import annotations

import json

import pytest

from tests.cli.typed import Shell, Typed


def test_workflows_are_listed(shell: Shell) -> None:
    assert shell("workflow", "list") == Typed(
        0,
        "asks  fabro/workflows/asks/workflow.fabro  ask first\n"
        "held  fabro/workflows/held/workflow.fabro\n"
        "two   fabro/workflows/two/workflow.fabro   ship it\n",
        "",
    )
    assert shell("workflow", "list", "-z").out == "asks\0held\0two\0"
    assert json.loads(shell("workflow", "list", "--json").out)["workflows"][2] == {
        "file": "fabro/workflows/two/workflow.fabro",
        "goal": "ship it",
        "name": "two",
    }


def test_a_workflow_with_errors_is_listed_as_such(shell: Shell) -> None:
    folder = shell.folder / "fabro/workflows/bad"
    folder.mkdir()
    folder.joinpath("workflow.fabro").write_text("digraph {")

    assert "bad   fabro/workflows/bad/workflow.fabro   (has errors)\n" in (
        shell("workflow", "list").out
    )


def test_where_there_are_none_it_is_said(outside: Shell) -> None:
    assert outside("workflow", "list") == Typed(
        0, "", "no workflows here\nhint: git fabro workflow create NAME\n"
    )
    assert json.loads(outside("workflow", "list", "--json").out) == {"workflows": []}


def test_a_scaffold_runs_as_it_is(shell: Shell) -> None:
    assert shell("workflow", "create", "my-flow") == Typed(
        0,
        "created fabro/workflows/my-flow/workflow.fabro and workflow.toml beside it\n",
        "hint: git fabro run my-flow\n",
    )
    assert shell("validate", "--strict", "my-flow") == Typed(0, "", "no problems\n")
    assert shell("run", "my-flow").status == 0


def test_a_scaffold_is_a_document(shell: Shell) -> None:
    typed = shell("workflow", "create", "--json", "mine")

    assert json.loads(typed.out) == {
        "file": "fabro/workflows/mine/workflow.fabro",
        "name": "mine",
    }
    assert typed.err == ""


def test_nothing_is_overwritten(shell: Shell) -> None:
    assert shell("workflow", "create", "two") == Typed(
        128,
        "",
        "fatal: workflow exists: fabro/workflows/two/workflow.fabro\n"
        "hint: git fabro validate two\n",
    )


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "a b", ""])
def test_what_is_no_name_is_refused(shell: Shell, name: str) -> None:
    assert shell("workflow", "create", name) == Typed(
        128,
        "",
        f"fatal: not a workflow name: {name}; letters, digits, - and _ make one\n"
        "hint: git fabro workflow create NAME\n",
    )
