"""Git's pager: used at a terminal, and as the configuration says."""

from __future__ import annotations

import os

import pexpect
import pytest

from tests.cli.typed import Shell, program
from tests.conftest import GitRepo


def _at_terminal(shell: Shell, *argv: str, **variables: str) -> tuple[int, str]:
    """The status of a command at a terminal, and all that was seen there."""
    command, *arguments = program(*argv)
    environment = {**os.environ, "TERM": "xterm", **variables}
    terminal = pexpect.spawn(
        command, arguments, cwd=str(shell.folder), env=environment, timeout=30, dimensions=(50, 200)
    )
    seen = terminal.read().decode()
    terminal.close()
    return terminal.exitstatus, seen


@pytest.mark.parametrize(
    ("settings", "variables", "mark"),
    [
        pytest.param({}, {"GIT_PAGER": "sed s/^/1:/"}, "1:", id="GIT_PAGER"),
        pytest.param({"core.pager": "sed s/^/2:/"}, {"PAGER": "cat"}, "2:", id="core.pager"),
        pytest.param({}, {"PAGER": "sed s/^/3:/"}, "3:", id="PAGER"),
        pytest.param({"pager.fabro": "sed s/^/4:/"}, {"GIT_PAGER": "cat"}, "4:", id="pager.fabro"),
        pytest.param(
            {"pager.fabro": "false", "pager.fabro-graph": "sed s/^/5:/"}, {}, "5:", id="command"
        ),
        pytest.param({}, {"GIT_PAGER": "cat"}, "", id="cat"),
        pytest.param({"pager.fabro": "false"}, {"GIT_PAGER": "sed s/^/x:/"}, "", id="false"),
        pytest.param(
            {"pager.fabro-graph": "off"}, {"GIT_PAGER": "sed s/^/x:/"}, "", id="off for one"
        ),
        pytest.param(
            {}, {"GIT_PAGER": "sed s/^/x:/", "GIT_PAGER_IN_USE": "true"}, "", id="within another"
        ),
    ],
)
def test_long_output_goes_through_the_pager_that_is_chosen(
    shell: Shell, repo: GitRepo, settings: dict[str, str], variables: dict[str, str], mark: str
) -> None:
    for key, value in settings.items():
        repo.git("config", key, value)

    status, seen = _at_terminal(shell, "graph", "two", **variables)

    assert status == 0
    assert seen.split("\r\n")[:2] == [f"{mark}start (start)", f"{mark}  -> plan"]


def test_a_pager_that_is_left_early_is_no_error(shell: Shell) -> None:
    shell("run", "two")

    status, seen = _at_terminal(shell, "events", GIT_PAGER="head -c 5")

    assert status in (0, 141)
    assert "Traceback" not in seen


def test_colour_goes_through_the_pager(shell: Shell) -> None:
    shell("run", "asks")

    _, seen = _at_terminal(shell, "list", GIT_PAGER="sed s/^/p:/")

    assert "\x1b[33mblocked\x1b[m" in seen


def test_documents_are_not_paged(shell: Shell) -> None:
    _, seen = _at_terminal(shell, "list", "--json", GIT_PAGER="sed s/^/p:/")

    assert "p:" not in seen
