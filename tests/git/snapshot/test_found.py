"""Faults of the fast engine that an attack on it found, each as the claim that failed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from git_fabro.git.snapshot.fast import FastEngine
from tests.conftest import GitRepo
from tests.git.snapshot.test_fast import Engines, gits_tree


@pytest.fixture
def fast() -> Iterator[Engines]:
    made = Engines()
    yield made
    made.close()


def watching(repo: GitRepo, fast: Engines) -> FastEngine:
    """An engine that believes its journal: the next snapshot looks only at what that tells of."""
    engine = fast(repo, few_files=0)
    engine.record()
    engine.record()
    return engine


@pytest.mark.parametrize("steps", [1, 2])
def test_a_change_through_a_new_name_of_a_file_is_seen_under_all_its_names(
    repo: GitRepo, fast: Engines, steps: int
) -> None:
    repo.commit({"a": "old", "d/b": "x"})
    engine = watching(repo, fast)

    os.link(repo.path / "a", repo.path / "d/c")
    if steps == 2:
        engine.record()
    (repo.path / "d/c").write_text("new")

    assert engine.record().tree == gits_tree(repo)
