"""Objects read at once: as git has them, and had from memory until the next ones are."""

from __future__ import annotations

import shutil

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import MissingObjectError
from git_fabro.git import ahead
from git_fabro.git.discover import Repository, open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.program import Git
from tests.conftest import GitRepo

LINES = b"blob 3\nmissing\0\n\n"


@pytest.fixture
def repository(repo: GitRepo) -> Repository:
    """One commit of two files, one of which looks like an answer of git's."""
    repo.commit({"a": LINES, "below/empty": b""})
    return open_repository(repo.path)


def _git(repository: Repository) -> Git:
    assert repository.git is not None
    return repository.git


def test_each_object_is_given_as_git_has_it(repo: GitRepo, repository: Repository) -> None:
    tip = repo.git("rev-parse", "HEAD")
    names = (tip, f"{tip}^{{tree}}", f"{tip}:a", f"{tip}:below/empty")

    found = ahead.read(_git(repository), repository.git_dir, names)

    oids = [Oid(oid) for oid in repo.git("rev-parse", *names).split()]
    kinds = ["commit", "tree", "blob", "blob"]
    assert found == {
        oid: (kind, repo.git_bytes("cat-file", kind, oid))
        for oid, kind in zip(oids, kinds, strict=True)
    }


def test_what_is_absent_is_left_out(repo: GitRepo, repository: Repository) -> None:
    tip = repo.git("rev-parse", "HEAD")
    names = ("0" * 40, f"{tip}:nowhere", f"{tip}:a", f"{tip}:below/a b c")

    found = ahead.read(_git(repository), repository.git_dir, names)

    assert found == {Oid(repo.git("rev-parse", "HEAD:a")): ("blob", LINES)}


def test_a_git_that_fails_gives_nothing(repo: GitRepo, repository: Repository) -> None:
    tip = repo.git("rev-parse", "HEAD")

    assert ahead.read(_git(repository), repo.path / "nowhere", (tip,)) == {}


def test_what_was_read_ahead_is_had_from_memory_until_more_is(
    repo: GitRepo, repository: Repository
) -> None:
    objects, blob = open_objects(repository), Oid(repo.git("rev-parse", "HEAD:a"))

    objects.read_ahead(repository.git, [blob])

    shutil.rmtree(repository.objects_dir / blob[:2])
    assert objects.read_blob(blob) == LINES
    objects.read_ahead(repository.git, ["HEAD^{tree}"])
    with pytest.raises(MissingObjectError):
        objects.read_blob(blob)


def test_without_git_nothing_is_read_ahead(repo: GitRepo, repository: Repository) -> None:
    objects, blob = open_objects(repository), Oid(repo.git("rev-parse", "HEAD:a"))

    objects.read_ahead(None, [blob])

    assert objects.read_blob(blob) == LINES
