from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.git.snapshot.entries import read_index
from git_fabro.git.snapshot.model import UncoveredError
from tests.conftest import GitRepo

_FILES = {"a": "1", "b/c": "2", "b/d/e": "3", "x" * 200: "long", "b/" + "y" * 130: "long"}


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_an_index_of_each_version_has_the_entries_and_trees_that_git_lists(
    repo: GitRepo, version: str
) -> None:
    repo.commit(_FILES)
    repo.git("update-index", "--index-version", version)

    found = read_index((repo.path / ".git/index").read_bytes())

    listed = "".join(
        f"{entry.mode:o} {entry.oid.hex()} 0\t{path.decode()}\0"
        for path, entry in found.entries.items()
    )
    assert listed == repo.git("ls-files", "-s", "-z")
    assert {path.decode(): oid.hex() for path, oid in found.trees.items()} == {
        "": repo.git("rev-parse", "HEAD^{tree}"),
        "b/": repo.git("rev-parse", "HEAD:b"),
        "b/d/": repo.git("rev-parse", "HEAD:b/d"),
    }


def test_a_folder_with_something_staged_has_no_tree(repo: GitRepo) -> None:
    repo.commit(_FILES)
    repo.write({"b/new": "n"})
    repo.git("add", "b/new")

    found = read_index((repo.path / ".git/index").read_bytes())

    assert list(found.trees) == [b"b/d/"]


@pytest.mark.parametrize("place", [0, 5, 12, 60, 75, 100, -30, -1])
def test_a_damaged_index_is_refused(repo: GitRepo, place: int) -> None:
    repo.commit(_FILES)
    data = bytearray((repo.path / ".git/index").read_bytes())
    data[place] ^= 0xFF

    with pytest.raises(UncoveredError, match="damaged"):
        read_index(bytes(data))


@given(st.binary(max_size=200), st.sampled_from([2, 3, 4]))
def test_any_bytes_are_an_index_or_refused(body: bytes, version: int) -> None:
    data = b"DIRC" + version.to_bytes(4) + (2).to_bytes(4) + body + bytes(20)

    with contextlib.suppress(UncoveredError):
        assert len(read_index(data).entries) <= 2
