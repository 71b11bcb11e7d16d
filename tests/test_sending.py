"""How a ref here stands to the remote's."""

from __future__ import annotations

import pytest

from git_fabro import sending
from git_fabro.branches import Source
from git_fabro.checkpoint.model import Oid
from tests.conftest import GitRepo


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ("one", "one", "same"),
        ("one", None, "ahead"),
        ("two", "one", "ahead"),
        ("one", "two", "behind"),
        ("two", "side", "diverged"),
        ("two", "absent", "unknown"),
    ],
)
def test_a_ref_stands_in_one_of_five_ways_to_the_remotes(
    repo: GitRepo, ours: str, theirs: str | None, expected: str
) -> None:
    oids = {"one": repo.commit({"a": "1\n"}), "absent": "f" * 40}
    oids["two"] = repo.commit({"a": "2\n"})
    repo.git("switch", "-q", "--detach", oids["one"])
    oids["side"] = repo.commit({"a": "3\n"})
    objects = Source.open(repo.path).objects

    there = Oid(oids[theirs]) if theirs is not None else None
    assert sending.standing(objects, Oid(oids[ours]), there) == expected


def test_a_shallow_clone_cannot_always_tell_sy12(repo: GitRepo) -> None:
    root = repo.commit({"a": "1\n"})
    ours = repo.commit({"a": "2\n"})
    repo.git("switch", "-q", "--detach", root)
    theirs = repo.commit({"a": "3\n"})
    (repo.path / ".git/objects" / root[:2] / root[2:]).unlink()

    objects = Source.open(repo.path).objects
    assert sending.standing(objects, Oid(ours), Oid(theirs)) == "unknown"
