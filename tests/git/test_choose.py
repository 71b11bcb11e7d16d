from __future__ import annotations

import pytest

from git_fabro.errors import RequestError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.snapshot.choose import choose_engine
from tests.conftest import GitRepo


def test_the_choice_says_why(repo: GitRepo) -> None:
    found = open_repository(repo.path)

    choice = choose_engine(found, open_objects(found), found.git_dir / "index")

    assert choice.reason.startswith("reference")


@pytest.mark.parametrize("setting", ["fabro.snapshot=slow", "fabro.maxFileSize=1x"])
def test_a_setting_that_means_nothing_is_an_error(repo: GitRepo, setting: str) -> None:
    repo.git("config", *setting.split("="))
    found = open_repository(repo.path)

    with pytest.raises(RequestError):
        choose_engine(found, open_objects(found), found.git_dir / "index")
