"""What a proof is told of a repository: its limits, and where a shallow one ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_fabro.branches import Source
from git_fabro.checkpoint.finding import Limits
from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RecordError, RequestError
from git_fabro.facts import COMMIT_BYTES, RepositoryFacts, limits_of
from tests.conftest import GitRepo


def limits(repo: GitRepo) -> Limits:
    return limits_of(Source.open(repo.path).repository)


def test_limits_are_the_usual_ones_unless_the_configuration_says_more(repo: GitRepo) -> None:
    assert limits(repo) == Limits()

    repo.git("config", "fabro.server.maxRecordBytes", "2m")
    repo.git("config", "fabro.server.maxFileBytes", "300")
    repo.git("config", "fabro.server.checkSecrets", "record")
    repo.git("config", "--add", "fabro.secrets.pattern", "INTERNAL-[0-9]+")

    found = limits(repo)
    assert (found.record_bytes, found.file_bytes, found.secrets) == (2 << 20, 300, "record")
    assert found.mask.data(b"INTERNAL-12") == b"***"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maxRecordBytes", "-1"),
        ("maxRecordBytes", "1t"),
        ("maxFileBytes", ""),
        ("checkSecrets", "some"),
    ],
)
def test_a_limit_that_is_none_is_refused(repo: GitRepo, key: str, value: str) -> None:
    repo.git("config", f"fabro.server.{key}", value)

    with pytest.raises(RequestError, match=f"fabro.server.{key}"):
        limits(repo)


def test_the_end_of_a_shallow_repository_is_known(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit({"a": "1"})
    end = repo.commit({"a": "2"})
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.path}", str(tmp_path / "shallow"))

    assert RepositoryFacts(Source.open(repo.path)).boundary == frozenset()
    assert RepositoryFacts(Source.open(tmp_path / "shallow")).boundary == {end}


def test_a_commit_without_measure_is_not_read(repo: GitRepo) -> None:
    tree = repo.git("mktree")
    text = b"x" * COMMIT_BYTES
    made = Oid(repo.git("commit-tree", tree, stdin=text))

    with pytest.raises(RecordError, match="too large for a commit"):
        RepositoryFacts(Source.open(repo.path)).commit(made)
