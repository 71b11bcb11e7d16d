"""Runs seen from outside: rows, the whole, records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import git_fabro
from git_fabro import homes
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import Doors
from git_fabro.errors import NotFoundError
from git_fabro.jobs import look
from git_fabro.jobs.look import Stop, Watch
from tests.conftest import GitRepo

TWO = """digraph Two { goal="ship it"; start [shape=Mdiamond]; exit [shape=Msquare]
plan [script="echo planned > plan.txt"]; build [script="echo built > build.txt"]
start -> plan -> build -> exit }
"""


@pytest.fixture
def run(repo: GitRepo) -> RunId:
    """A finished run of two nodes."""
    repo.commit({"two.fabro": TWO})
    return git_fabro.open(repo.path).start(str(repo.path / "two.fabro")).id


@pytest.fixture
def doors(repo: GitRepo) -> Doors:
    return Doors.open(repo.path)


def _home(doors: Doors) -> Path:
    return homes.home(doors.repository, doors.repository.top, dict(os.environ))


def test_a_row_says_where_a_run_stands(doors: Doors, run: RunId) -> None:
    row = look.row(doors, _home(doors), run)

    assert (row.run_id, row.status, row.workflow, row.goal) == (run, "success", "two", "ship it")
    assert (row.node, row.checkpoints, row.problem) == ("exit", 2, "")
    assert row.created_at <= row.updated_at


def test_a_run_that_cannot_be_read_is_a_row_with_its_problem(
    repo: GitRepo, doors: Doors, run: RunId
) -> None:
    repo.git("update-ref", f"refs/heads/fabro/meta/{run}", "HEAD")

    row = look.row(doors, _home(doors), run)

    assert (row.status, row.checkpoints) == ("?", 0)
    assert row.problem.startswith("no checkpoint.json in ")
    assert row.created_at


def test_a_run_that_is_not_there_is_refused(doors: Doors, run: RunId) -> None:
    with pytest.raises(NotFoundError, match="no such run: NOPE"):
        look.look(doors, _home(doors), RunId("NOPE"))


def test_the_refs_alone_are_enough(doors: Doors, run: RunId, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"

    assert look.look(doors, elsewhere, run) == look.look(doors, _home(doors), run)
    assert list(look.records(doors, elsewhere, run)) == list(look.records(doors, _home(doors), run))


def test_damage_ends_the_records_with_a_stop(repo: GitRepo, doors: Doors, run: RunId) -> None:
    second = repo.git("rev-list", "--reverse", f"fabro/meta/{run}").split()[1]
    blob = repo.git("rev-parse", f"{second}:records.jsonl")
    repo.path.joinpath(".git/objects", blob[:2], blob[2:]).unlink()

    *good, stop = look.records(doors, _home(doors), run)

    assert [one.seq for one in good if not isinstance(one, Stop)] == [1, 2, 3, 4, 5]
    assert isinstance(stop, Stop)
    assert stop.after == 5


def test_a_watch_gives_each_record_once(doors: Doors, run: RunId) -> None:
    watch = Watch(doors, _home(doors), run, after=15)

    assert [one.seq for one in watch.new_records()] == [16, 17]
    assert list(watch.new_records()) == []


def test_a_watch_sees_what_has_moved(repo: GitRepo, doors: Doors) -> None:
    asks = (
        'digraph { start [shape=Mdiamond]; exit [shape=Msquare]; q [shape=hexagon, label="?"]\n'
        'a [script="true"]; start -> q; q -> a [label="[Y] Yes"]; a -> exit }\n'
    )
    repo.commit({"asks.fabro": asks})
    started = git_fabro.open(repo.path).start(str(repo.path / "asks.fabro"))
    watch = Watch(doors, _home(doors), started.id)
    before, seen = watch.look(), len(list(watch.new_records()))

    started.resume(auto_approve=True)

    assert (before.status, watch.look().status) == ("blocked", "success")
    assert next(watch.new_records()).seq == seen + 1


def test_who_says_running_without_a_driver_is_interrupted(
    repo: GitRepo, doors: Doors, run: RunId
) -> None:
    second = repo.git("rev-list", "--reverse", f"fabro/meta/{run}").split()[1]
    repo.git("update-ref", f"refs/heads/fabro/meta/{run}", second)
    repo.git("update-ref", f"refs/heads/fabro/run/{run}", f"fabro/run/{run}~1")

    whole = look.look(doors, _home(doors), run)

    assert (whole.state.status, whole.status) == ("running", "interrupted")
    assert Watch(doors, _home(doors), run).look() == whole
