"""First-parent histories: by git and in process the same steps."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import MissingObjectError
from git_fabro.git import walks
from git_fabro.git.discover import Repository, open_repository
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.walks import Step
from tests.conftest import WHEN, GitRepo

NOTES = "refs/notes/fabro"


@pytest.fixture
def repository(repo: GitRepo) -> Repository:
    """Four commits on the first-parent line, one a merge, one empty, one with a note."""
    repo.commit({"a": "1"}, "base")
    repo.git("switch", "-q", "-c", "side")
    repo.commit({"b": "1"}, "on the side")
    repo.git("switch", "-q", "main")
    repo.commit({}, "nothing\n\nwords: and more\n")
    repo.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    repo.commit({"a": "2", "c\nd": "x", "é": "y"}, "many \x1b[2J")
    repo.git("notes", "--ref=fabro", "add", "-m", "noted", "HEAD")
    return open_repository(repo.path)


def _both(repository: Repository) -> tuple[Objects, Oid, list[Step], list[Step]]:
    objects = open_objects(repository)
    assert repository.git is not None
    tip = Oid(os.fsdecode(repository.git.run(["rev-parse", "main"], git_dir=repository.git_dir)))
    tip = Oid(tip.strip())
    by_git = list(walks.steps(repository, objects, tip, notes_ref=NOTES))
    without = repository._replace(git=None)
    return objects, tip, by_git, list(walks.steps(without, objects, tip, notes_ref=NOTES))


def test_both_ways_give_the_same_commits(repo: GitRepo, repository: Repository) -> None:
    objects, tip, by_git, own = _both(repository)

    assert [one[:5] for one in by_git] == [one[:5] for one in own]
    assert [one.oid for one in by_git] == repo.git("rev-list", "--first-parent", "main").split()
    assert {one.when for one in by_git} == {WHEN}
    assert list(walks.chain(repository, objects, tip)) == [one.oid for one in own]
    assert list(walks.chain(repository._replace(git=None), objects, tip)) == [
        one.oid for one in own
    ]


def test_git_counts_paths_and_reads_notes(repository: Repository) -> None:
    _, _, by_git, own = _both(repository)

    assert [one.changed for one in by_git] == [3, 1, 0, 1]
    assert [one.note for one in by_git] == [b"noted\n", b"", b"", b""]
    assert {(one.changed, one.note) for one in own} == {(None, None)}


def test_who_wants_no_notes_gets_the_commits_alone(repo: GitRepo, repository: Repository) -> None:
    repo.git("config", "notes.displayRef", NOTES)
    objects, tip, _, own = _both(repository)

    assert list(walks.steps(repository, objects, tip, notes_ref=None)) == own


@pytest.mark.parametrize(
    "setting",
    ["log.showSignature", "diff.relative", "log.mailmap", "core.quotePath", "diff.noprefix"],
)
def test_settings_of_a_person_change_nothing(
    repo: GitRepo, repository: Repository, setting: str
) -> None:
    _, _, before, _ = _both(repository)
    repo.git("config", setting, "true")
    repo.git("config", "diff.renames", "copies")
    repo.git("config", "color.ui", "always")

    _, _, after, _ = _both(open_repository(repo.path))

    assert after == before


def test_who_wants_one_step_does_not_wait_for_all(repository: Repository) -> None:
    objects, tip, by_git, _ = _both(repository)

    assert list(islice(walks.steps(repository, objects, tip, notes_ref=NOTES), 1)) == by_git[:1]


def test_what_is_absent_is_named_after_what_is_there(repo: GitRepo, repository: Repository) -> None:
    objects, tip, by_git, _ = _both(repository)
    gone = by_git[2].oid
    Path(repo.path, ".git/objects", gone[:2], gone[2:]).unlink()
    found = []

    with pytest.raises(MissingObjectError, match=gone):
        found.extend(walks.steps(repository, objects, tip, notes_ref=NOTES))
    with pytest.raises(MissingObjectError, match=gone):
        list(walks.chain(repository, objects, tip))
