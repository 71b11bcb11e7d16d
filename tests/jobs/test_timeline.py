"""Timelines of real runs: order, links, details, targets, snapshots; git is the oracle."""

from __future__ import annotations

import pytest

import git_fabro
from git_fabro import history, targets
from git_fabro.branches import Source
from git_fabro.checkpoint.model import RunId
from git_fabro.checkpoint.timeline import Entry
from git_fabro.errors import NotFoundError
from git_fabro.jobs import timeline
from git_fabro.jobs.timeline import Checkpoint
from tests.conftest import GitRepo

TWO = """digraph Two { goal="ship it"; start [shape=Mdiamond]; exit [shape=Msquare]
plan [script="echo planned > plan.txt"]; build [script="echo built > build.txt"]
start -> plan -> build -> exit }
"""
FAN = """digraph { start [shape=Mdiamond]; exit [shape=Msquare]
split [shape=component]; join [shape=tripleoctagon, merge=all]
api [script="echo a > a.txt"]; test [script="true"]; docs [script="echo d > d.txt"]
start -> split; split -> api -> test -> join; split -> docs -> join; join -> exit }
"""


@pytest.fixture
def run(repo: GitRepo) -> RunId:
    """A finished run of two nodes."""
    repo.commit({"two.fabro": TWO})
    return git_fabro.open(repo.path).start(str(repo.path / "two.fabro")).id


@pytest.fixture(params=["git", "no git"])
def source(repo: GitRepo, run: RunId, request: pytest.FixtureRequest) -> Source:
    """What is read from, with and without a git program."""
    found = Source.open(repo.path)
    if request.param == "git":
        return found
    return Source(found.repository._replace(git=None), found.objects, found.refs)


def _entries(source: Source, run: RunId) -> list[Entry]:
    """The oldest first."""
    return [place.entry for place in history.timeline_of(source, run).places()][::-1]


def _rows(source: Source, run: RunId) -> list[Checkpoint]:
    told = history.timeline_of(source, run)
    return [timeline.checkpoint(told, place) for place in targets.places(told)][::-1]


def test_a_run_without_a_branch_is_refused(source: Source) -> None:
    with pytest.raises(NotFoundError, match="no such run: NOPE"):
        history.timeline_of(source, RunId("NOPE"))


def test_the_timeline_is_the_first_parents_above_the_base(
    repo: GitRepo, source: Source, run: RunId
) -> None:
    found = _entries(source, run)

    assert [one.run_commit for one in found] == repo.git(
        "rev-list", "--first-parent", "--reverse", f"main..fabro/run/{run}"
    ).split()
    assert [one.meta_commit for one in found] == repo.git(
        "log",
        "--reverse",
        "--format=%(trailers:key=Fabro-Checkpoint,valueonly,separator=)",
        f"main..fabro/run/{run}",
    ).split()
    assert [one.link for one in found] == ["ok", "ok"]


def test_a_checkpoint_has_its_time_duration_and_files(
    repo: GitRepo, source: Source, run: RunId
) -> None:
    first = _rows(source, run)[0]

    assert (first.ordinal, first.kind, first.node, first.visit) == (1, "node", "plan", 1)
    assert (first.status, first.files_changed, first.link) == ("success", 1, "ok")
    assert first.at[:19] + "Z" == repo.git(
        "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd", first.run_commit
    )
    assert first.duration_ms is not None
    assert first.duration_ms >= 0


def _amend_link(repo: GitRepo, run: str, named: str) -> None:
    """A run tip whose trailer names another commit."""
    text = repo.git("log", "-1", "--format=%B", f"fabro/run/{run}")
    old = repo.git("rev-parse", f"fabro/run/{run}")
    trailer = next(row for row in text.split("\n") if row.startswith("Fabro-Checkpoint: "))
    tree = repo.git("rev-parse", f"{old}^{{tree}}")
    message = text.replace(trailer, f"Fabro-Checkpoint: {named}")
    new = repo.git("commit-tree", tree, "-p", f"{old}^", "-m", message)
    repo.git("update-ref", f"refs/heads/fabro/run/{run}", new)


def test_a_link_to_nothing_is_missing(repo: GitRepo, source: Source, run: RunId) -> None:
    _amend_link(repo, run, "1" * 40)

    last = _entries(source, run)[-1]

    assert (last.link, last.meta_commit, last.named_meta_commit) == ("missing", None, "1" * 40)
    assert _rows(source, run)[-1].duration_ms is None


def test_a_link_to_another_chain_is_foreign(repo: GitRepo, source: Source, run: RunId) -> None:
    other = git_fabro.open(repo.path).start(str(repo.path / "two.fabro")).id
    named = repo.git("rev-parse", f"fabro/meta/{other}")
    _amend_link(repo, run, named)

    last = _entries(source, run)[-1]

    assert (last.link, last.meta_commit, last.named_meta_commit) == ("foreign", None, named)


def test_a_commit_by_hand_has_no_link_and_its_files_are_counted(
    repo: GitRepo, source: Source, run: RunId
) -> None:
    repo.git("switch", "-q", f"fabro/run/{run}")
    repo.commit({"a": "1", "b": "2"})

    last = _rows(source, run)[-1]

    assert (last.kind, last.node, last.link, last.files_changed) == ("commit", None, "none", 2)
    assert (last.meta_commit, last.named_meta_commit, last.duration_ms) == (None, None, None)


def test_nodes_inside_a_fan_out_belong_to_the_parallel_node(repo: GitRepo, source: Source) -> None:
    repo.commit({"fan.fabro": FAN})
    run = git_fabro.open(repo.path).start(str(repo.path / "fan.fabro")).id

    assert history.timeline_of(source, run).interior() == {
        "api": "split",
        "test": "split",
        "docs": "split",
    }
