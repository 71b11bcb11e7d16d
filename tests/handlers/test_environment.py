"""What a node's program finds in its environment."""

from __future__ import annotations

import subprocess

import pytest

from git_fabro.handlers.environment import node_environment


def test_nothing_of_the_callers_git_arrives() -> None:
    caller = {"PATH": "/bin", "GIT_DIR": "/r/.git", "GIT_INDEX_FILE": "i", "GITHUB_TOKEN": "t"}

    merged = node_environment(caller, {}, {}, {})

    assert merged == {"PATH": "/bin", "GITHUB_TOKEN": "t"}


def test_the_last_one_to_name_a_variable_wins() -> None:
    merged = node_environment(
        {"A": "caller", "B": "caller", "C": "caller", "D": "caller"},
        {"B": "settings", "C": "settings", "D": "settings", "GIT_PAGER": "cat"},
        {"C": "variables", "D": "variables", "FABRO_GOAL": "variables"},
        {"D": "fabro", "FABRO_GOAL": "ship"},
    )

    assert merged == {
        "A": "caller",
        "B": "settings",
        "C": "variables",
        "D": "fabro",
        "GIT_PAGER": "cat",
        "FABRO_GOAL": "ship",
    }


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        *(("a", True), ("_A1", True), ("1a", False), ("a-b", False), ("a.b", False)),
        *(("", False), ("é", False), ("a\n", False)),
    ],
)
def test_a_variable_that_no_shell_can_spell_is_left_out(name: str, legal: bool) -> None:
    assert (name in node_environment({}, {}, {name: "x"}, {})) == legal


def test_a_goal_of_any_length_lets_programs_start() -> None:
    goal = "é" * 200_000

    merged = node_environment({"PATH": "/bin:/usr/bin"}, {}, {}, {"FABRO_GOAL": f"a\0{goal}"})

    done = subprocess.run(["env"], env=merged, capture_output=True, text=True, check=True)
    assert f"FABRO_GOAL=aé{goal[:1000]}" in done.stdout
