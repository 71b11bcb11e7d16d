"""A repository that another tool made is one like any other: here pytest-git's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conftest import GitRepo
from tests.scenario.test_places import fabro, files, run_of
from tests.scenario.test_reports import workflow


def test_a_run_works_in_a_repository_that_pytest_git_made(tmp_path: Path, git_repo: Any) -> None:
    made = GitRepo(Path(git_repo.workspace))
    made.commit({"w.fabro": workflow("echo 1 >f")})

    fabro(made.path, "run", "w.fabro")

    assert files(made, run_of(made)) == ["f", "w.fabro"]
    made.fsck()
