"""Local refs for a run that only a remote has."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_fabro import localizing
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import Doors
from tests.cli.typed import Shell, shell
from tests.conftest import GitRepo

__all__ = ["shell"]


@pytest.fixture
def run(shell: Shell) -> RunId:
    """A finished run."""
    shell("run", "-q", "two")
    return RunId(shell.run_id())


@pytest.fixture
def clone(repo: GitRepo, run: RunId, tmp_path: Path) -> GitRepo:
    """A clone of the repository that has the run."""
    assert run
    repo.git("clone", "-q", ".", str(tmp_path / "clone"))
    return GitRepo(tmp_path / "clone")


def make_local(repo: GitRepo, run: RunId, *, fetches: bool = True) -> bool:
    doors = Doors.open(repo.path)
    made = localizing.make_local(doors, run, fetches=fetches)
    doors.close()
    return made


def refs(repo: GitRepo) -> dict[str, str]:
    listed = repo.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in listed)


def test_both_branches_and_a_free_lease_are_made_at_once(
    repo: GitRepo, clone: GitRepo, run: RunId
) -> None:
    first, second = make_local(clone, run), make_local(clone, run)

    there, here = refs(repo), refs(clone)
    names = [f"refs/heads/fabro/{side}/{run}" for side in ("run", "meta")]
    assert (first, second) == (True, False)
    assert [here[name] for name in names] == [there[name] for name in names]
    assert clone.git("log", "-1", "--format=%s", f"refs/fabro/lease/{run}") == "lease: nobody"


def test_a_ref_that_is_here_is_not_moved(clone: GitRepo, run: RunId) -> None:
    clone.git("branch", f"fabro/run/{run}", f"origin/fabro/run/{run}~1")
    before = refs(clone)

    assert make_local(clone, run)
    assert {name: refs(clone)[name] for name in before} == before


def test_what_was_not_fetched_is_asked_for(repo: GitRepo, clone: GitRepo, run: RunId) -> None:
    clone.git("update-ref", "-d", f"refs/remotes/origin/fabro/meta/{run}")

    without, made = make_local(clone, run, fetches=False), make_local(clone, run)

    assert (without, made) == (False, True)
    assert refs(clone)[f"refs/heads/fabro/meta/{run}"] == refs(repo)[f"refs/heads/fabro/meta/{run}"]


def test_a_run_that_fabro_made_is_read_where_it_is(repo: GitRepo, tmp_path: Path) -> None:
    theirs = RunId("01JKXYZ3F9QW0000000000000A")
    repo.git("switch", "-q", "-c", f"fabro/run/{theirs}")
    repo.commit(message=f"fabro({theirs}): plan (success)\n\nFabro-Run: {theirs}")
    repo.git("branch", f"fabro/meta/{theirs}")
    repo.git("clone", "-q", ".", str(tmp_path / "other"))
    other = GitRepo(tmp_path / "other")
    other.git("checkout", "-q", "--detach")
    other.git("branch", "-D", f"fabro/run/{theirs}")
    before = refs(other)

    assert not make_local(other, theirs)
    assert refs(other) == before


def test_a_run_that_nobody_has_is_not_made(clone: GitRepo) -> None:
    assert not make_local(clone, RunId("01JKXYZ3F9QW0000000000000B"))
