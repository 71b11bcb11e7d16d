from __future__ import annotations

import pytest

from git_fabro.errors import RequestError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.snapshot.choose import Engine, choose_engine
from git_fabro.git.snapshot.model import UncoveredError
from tests.conftest import GitRepo


def engine(repo: GitRepo) -> Engine:
    found = open_repository(repo.path)
    return choose_engine(found, open_objects(found), found.git_dir / "index")


def test_the_fast_engine_is_taken_where_it_serves(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    chosen = engine(repo)

    taken = chosen.record()

    assert (chosen.reason, taken.notices) == ("fast", ())


def test_git_is_taken_where_only_it_serves_and_the_reason_is_said_once(repo: GitRepo) -> None:
    repo.commit({".gitattributes": "* text=auto\n", "a": "1"})
    chosen = engine(repo)

    first, second = chosen.record(), chosen.record()

    assert chosen.reason == "git: '.gitattributes' sets text"
    assert [one.message for one in first.notices] == [
        "snapshots by git itself: '.gitattributes' sets text"
    ]
    assert second.notices == ()


def test_the_fast_engine_is_asked_again_once_its_hindrance_has_gone(repo: GitRepo) -> None:
    repo.commit({".gitattributes": "* text=auto\n", "a": "1"})
    chosen = engine(repo)
    chosen.record()
    repo.write({".gitattributes": "# nothing\n"})

    taken = chosen.record()

    assert chosen.reason == "fast"
    assert [one.message for one in taken.notices] == ["snapshots by the fast engine again"]


def test_a_setting_that_a_node_makes_counts_for_its_own_snapshot(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    chosen = engine(repo)
    chosen.record()
    repo.git("config", "core.autocrlf", "input")

    chosen.record()

    assert chosen.reason == "git: core.autocrlf is input"


def test_many_files_that_no_index_knows_are_read_by_git_once(repo: GitRepo) -> None:
    repo.write({f"d{number % 50}/{number}": "x" for number in range(2_100)})
    chosen = engine(repo)

    reasons = []
    for _ in range(2):
        chosen.record()
        reasons.append(chosen.reason)

    assert reasons == ["git: 2100 files were never read", "fast"]


def test_git_alone_is_the_engine_where_it_was_asked_for(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    repo.git("config", "fabro.snapshot", "git")
    chosen = engine(repo)

    chosen.record()

    assert chosen.reason == "git: fabro.snapshot is git"


def test_the_fast_engine_alone_makes_a_hindrance_an_error(repo: GitRepo) -> None:
    repo.commit({".gitattributes": "* text=auto\n"})
    repo.git("config", "fabro.snapshot", "fast")

    with pytest.raises(UncoveredError, match="sets text") as caught:
        engine(repo).record()

    assert caught.value.hint == "git config fabro.snapshot auto"


@pytest.mark.parametrize("setting", ["fabro.snapshot=slow", "fabro.maxFileSize=1x"])
def test_a_setting_that_means_nothing_is_an_error(repo: GitRepo, setting: str) -> None:
    repo.git("config", *setting.split("="))

    with pytest.raises(RequestError):
        engine(repo)
