"""No git program on PATH: looking, fork and a rewind of refs give what they give with one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import GitRepo
from tests.scenario.test_places import PROGRAM
from tests.scenario.test_reports import go

NO_GIT = {"PATH": "/nonexistent"}
_AGE = re.compile(r"\b[0-9]+s\b")
_NEW = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{12,40}\b|[0-9-]{10}[T ][0-9:.]{8,12}Z?")


def typed(folder: Path, *words: str, without: bool) -> tuple[int, str, str]:
    done = subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        env={**os.environ, **(NO_GIT if without else {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def twins(repo: GitRepo, tmp_path: Path) -> tuple[GitRepo, GitRepo]:
    """Two bare clones of a repository with a run of three nodes, equal to the byte."""
    go(repo, "echo 1 >f", "echo 2 >f", "echo 3 >f")
    first, second = tmp_path / "first.git", tmp_path / "second.git"
    subprocess.run(["git", "clone", "-q", "--mirror", repo.path, first], check=True)
    shutil.copytree(first, second, symlinks=True)
    return GitRepo(first), GitRepo(second)


LOOKING = [
    ["list", "-a"],
    ["list", "-a", "--json"],
    ["log"],
    ["log", "--graph", "--stat"],
    ["log", "--json"],
    ["show"],
    ["show", "@2"],
    ["show", "--json"],
    ["diff"],
    ["diff", "@1", "@3", "--context"],
    ["diff", "--json"],
    ["events"],
    ["rewind", "--list"],
    ["rewind", "-n", "@1"],
    ["rewind", "@9"],
]


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_looking_is_the_same(twins: tuple[GitRepo, GitRepo], words: list[str]) -> None:
    one, other = twins

    found = typed(other.path, *words, without=True)
    expected = typed(one.path, *words, without=False)

    assert [_AGE.sub("<age>", str(text)) for text in found] == [
        _AGE.sub("<age>", str(text)) for text in expected
    ]
    assert found[1] + found[2] != ""


def test_compare_is_the_same(twins: tuple[GitRepo, GitRepo]) -> None:
    one, _ = twins
    run = one.git("for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/fabro/run")
    _, fork, _ = typed(one.path, "fork", run, "@2", without=True)

    found = typed(one.path, "compare", run, fork.strip(), without=True)

    assert found == typed(one.path, "compare", run, fork.strip(), without=False)
    assert found[0] == 0


def test_a_rewind_moves_the_same_refs(twins: tuple[GitRepo, GitRepo]) -> None:
    one, other = twins

    with_git = typed(one.path, "rewind", "@1", "-y", without=False)
    without = typed(other.path, "rewind", "@1", "-y", without=True)

    assert without == with_git
    assert without[0] == 0
    assert heads(other) == heads(one)
    assert len(set(heads(other).split("\n"))) == 3
    assert typed(other.path, "undo", without=True)[0] == 0
    typed(one.path, "undo", without=False)
    assert heads(other) == heads(one)
    assert other.git("fsck", "--strict", "--no-dangling") == ""


def test_a_fork_has_the_same_history(twins: tuple[GitRepo, GitRepo]) -> None:
    one, other = twins

    with_git = typed(one.path, "fork", "@2", "--goal", "else", without=False)
    without = typed(other.path, "fork", "@2", "--goal", "else", without=True)

    assert (without[0], with_git[0]) == (0, 0)
    names = "--format=%(refname) %(tree) %(contents:subject)"
    told = [
        _NEW.sub("<new>", repo.git("for-each-ref", names, f"refs/heads/fabro/*/{fork.strip()}"))
        for repo, fork in ((one, with_git[1]), (other, without[1]))
    ]
    assert told[0] == told[1] != ""
    assert _NEW.sub("<new>", without[2]) == _NEW.sub("<new>", with_git[2])
    assert other.git("fsck", "--strict", "--no-dangling") == ""


def heads(repo: GitRepo) -> str:
    return repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
