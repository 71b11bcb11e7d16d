"""Every command has a manual page, a summary and a test file; the page knows every option."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from git_fabro.cli import start
from tests.cli.typed import Shell, process

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "man").iterdir())
_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def _page(command: str) -> Path:
    return ROOT / "man" / f"git-fabro-{command}.1"


def test_there_is_a_page_for_each_command_and_no_other() -> None:
    expected = {"git-fabro.1", "git-fabro-format.5", "git-fabro-workflow.7"}

    assert {page.name for page in PAGES} == expected | {
        _page(command).name for command in start.COMMANDS
    }


_SUBCOMMANDS = {"op": ["log", "show"], "workflow": ["list", "create"]}


@pytest.mark.parametrize("command", start.COMMANDS)
def test_a_command_has_a_page_a_test_file_and_a_place_in_the_first_page(command: str) -> None:
    assert f".Nm git fabro {command}" in _page(command).read_text()
    assert f".It Xr git-fabro-{command} 1\n" in (ROOT / "man/git-fabro.1").read_text()
    assert (ROOT / f"tests/cli/test_{command}.py").exists()


@pytest.mark.parametrize("command", start.COMMANDS)
def test_a_page_knows_the_options_of_its_command_and_no_others(
    outside: Shell, command: str
) -> None:
    words = _SUBCOMMANDS.get(command, [""])
    summaries = [outside.exactly(*f"{command} {word}".split(), "-h") for word in words]
    rows = [row for typed in summaries for row in typed.out.split("\n") if row[:5] == "    -"]
    left = " ".join(re.split(r"\s{2,}", row.strip())[0] for row in rows)
    written = "\n".join(
        row for row in _page(command).read_text().split("\n") if row.startswith(".It Fl")
    )

    assert {typed.status for typed in summaries} == {129}
    assert set(_OPTION.findall(written.replace("Fl Fl ", "--").replace("Fl ", "-"))) == set(
        _OPTION.findall(left)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_a_page_is_formatted_without_a_warning(page: Path) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-l", str(page)],
        env={**os.environ, "MANWIDTH": "80"},
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_a_page_has_nothing_that_mandoc_complains_of(page: Path) -> None:
    done = subprocess.run(
        ["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
@pytest.mark.parametrize("argv", [["--help"], ["wait", "--help"], ["wait", "x", "--help"]])
def test_help_is_the_manual_page(outside: Shell, argv: list[str]) -> None:
    shown = process(outside.folder, *argv)

    out, err = shown.communicate()

    assert (shown.returncode, err) == (0, "")
    assert "SYNOPSIS" in out


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_an_alias_has_the_page_of_its_command(outside: Shell) -> None:
    shown = process(outside.folder, "ps", "--help")

    out, _ = shown.communicate()

    assert (shown.returncode, "git-fabro-list" in out) == (0, True)
