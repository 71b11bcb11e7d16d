"""Faults of the fast engine that an attack on it found, each as the claim that failed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.doors import Doors, Tip, WorkTree
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.refs import Refs
from git_fabro.git.snapshot.choose import choose_engine
from git_fabro.git.snapshot.fast import FastEngine
from git_fabro.git.snapshot.model import UncoveredError
from git_fabro.git.snapshot.reference import seed_index
from git_fabro.git.snapshot.two import in_two
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


def test_a_work_tree_that_was_made_anew_is_not_told_of_by_the_old_ones_journal(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "old"})
    (repo.path / ".git").rename(repo.path.with_name("git dir"))
    link = f"gitdir: {repo.path.with_name('git dir')}\n"
    repo.write({".git": link})
    engine = watching(repo, fast)

    shutil.rmtree(repo.path)
    repo.write({".git": link, "a": "old"})
    engine.record()
    repo.write({"b": "new"})

    assert engine.record().tree == gits_tree(repo)


def test_a_work_tree_in_the_place_of_another_that_moved_with_its_folder_is_looked_at(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "old"})
    engine, home = watching(repo, fast), repo.path.parent

    shutil.copytree(home, home.with_name("copy"), symlinks=True)
    home.rename(home.with_name("moved"))
    home.with_name("copy").rename(home)
    repo.write({"a": "new"})

    assert engine.record().tree == gits_tree(repo)


@pytest.mark.parametrize("name", [r"x\.git", r"x\GIT~1", r"x\.git. \y", r".git:x"])
def test_a_name_that_git_refuses_is_left_to_git(repo: GitRepo, fast: Engines, name: str) -> None:
    repo.commit({"a": "1"})
    repo.write({name: "x"})

    with pytest.raises(UncoveredError, match="a name that git refuses"):
        fast(repo).record()


@pytest.mark.parametrize("name", [".gitmodules", "d/.GITMODULES", "gitmod~1", r"x\.gitmodules"])
def test_gitmodules_as_a_link_is_left_to_git(repo: GitRepo, fast: Engines, name: str) -> None:
    repo.commit({"a": "1", "d/b": "2", ".gitmodules": "# none\n"})
    (repo.path / name).unlink(missing_ok=True)
    (repo.path / name).symlink_to("a")

    with pytest.raises(UncoveredError, match="a link that git refuses"):
        fast(repo).record()


def test_folders_deeper_than_calls_may_be_are_recorded(repo: GitRepo, fast: Engines) -> None:
    deep = "d/" * 900
    repo.commit({f"{deep}tracked": "1"})
    repo.write({f"{deep}new": "2"})

    assert fast(repo).record().tree == gits_tree(repo)


def test_an_index_brought_up_hides_no_change_that_git_would_have_seen_wt23(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "old", "b": "x"})
    _wait_for_a_second()
    repo.write({"a": "one"})
    repo.git("add", "a")
    _wait_for(0.1)
    engine = fast(repo)
    repo.write({"b": "y"})
    tree = engine.record().tree
    repo.write({"a": "two"})
    _wait_for_a_second()

    engine.settle(tree)

    index = repo.path / ".git/private.index"
    variables = os.environ | {"GIT_INDEX_FILE": str(index)}
    done = subprocess.run(["git", "diff"], cwd=repo.path, env=variables, capture_output=True)
    assert b"+two" in done.stdout


def _wait_for_a_second() -> None:
    """To the beginning of the next second of the file system's clock."""
    _wait_for(1.01 - time.time() % 1)


def _wait_for(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        continue


def test_two_processes_look_where_ended_ones_are_not_waited_for() -> None:
    former = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = in_two(lambda things: [(place, [b"x"]) for place, _ in enumerate(things)], "abcd")
    finally:
        signal.signal(signal.SIGCHLD, former)

    assert [place for place, _ in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("line", [b"*\rtext", b"* -diff\rtext", b"* text\0"])
def test_attributes_part_where_git_parts_them(repo: GitRepo, fast: Engines, line: bytes) -> None:
    repo.commit({"a": "1"})
    repo.write({".gitattributes": line, "b": "1\r\n"})

    with pytest.raises(UncoveredError, match="sets text"):
        fast(repo).record()


def test_a_setting_is_true_by_any_number_but_zero(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1"})
    repo.git("config", "core.ignoreCase", "2")

    with pytest.raises(UncoveredError, match=r"core\.ignorecase is 2"):
        fast(repo).record()


def test_a_file_that_an_included_file_includes_counts_at_once(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1"})
    folder = repo.path.parent / "else/where"
    folder.mkdir(parents=True)
    (folder / "first").write_text("[include] path = second\n")
    repo.git("config", "include.path", str(folder / "first"))
    engine = fast(repo)
    engine.record()

    (folder / "second").write_text("[core] autocrlf = true\n")

    with pytest.raises(UncoveredError, match=r"core\.autocrlf is true"):
        engine.record()


def test_settings_of_a_branch_count_once_it_is_checked_out(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1"})
    included = repo.path.with_name("included")
    included.write_text("[core] autocrlf = true\n")
    repo.git("config", "includeIf.onbranch:other.path", str(included))
    engine = fast(repo)
    engine.record()

    repo.git("switch", "-q", "-c", "other")

    with pytest.raises(UncoveredError, match=r"core\.autocrlf is true"):
        engine.record()


def test_files_are_turned_back_though_git_was_to_bring_the_index_up(repo: GitRepo) -> None:
    repo.git("config", "index.version", "4")
    repo.commit({"a": "old", "b": "1"})
    found = open_repository(repo.path)
    objects = open_objects(found)
    index = found.git_dir / "private.index"
    seed_index(found, index)
    tip = Tip(branch=None, ref="refs/heads/main", oid=Oid(repo.git("rev-parse", "@")), exists=True)
    engine = choose_engine(found, objects, index)
    work = WorkTree(path=repo.path, tip=tip, index=index, engine=engine, repository=found)
    doors = Doors(repository=found, objects=objects, refs=Refs(found, objects))
    repo.write({"a": "new"})
    tree = engine.record().tree

    doors.set_files_from(work, tree, work.tip.oid)

    assert (repo.path / "a").read_text() == "old"


def test_a_file_that_was_staged_in_the_place_of_a_folder_is_recorded(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1", "d/b": "2"})
    engine = fast(repo)
    engine.record()

    shutil.rmtree(repo.path / "d")
    repo.write({"d": "3"})
    stage_all(repo)

    assert engine.record().tree == gits_tree(repo)


def stage_all(repo: GitRepo) -> None:
    """As a node does that runs git itself, in the index that the engine follows."""
    variables = os.environ | {"GIT_INDEX_FILE": str(repo.path / ".git/private.index")}
    subprocess.run(["git", "add", "-A"], cwd=repo.path, env=variables, check=True)
