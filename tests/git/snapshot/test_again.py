from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.snapshot.model import Rules
from git_fabro.git.snapshot.reference import ReferenceEngine
from tests.conftest import GitRepo


def engine_of(path: Path) -> ReferenceEngine:
    found = open_repository(path)
    return ReferenceEngine(found, found.git_dir / "index", Rules())


def objects_of(repo: GitRepo) -> Objects:
    return open_objects(open_repository(repo.path))


def take(repo: GitRepo, *names: str) -> None:
    for oid in repo.git("rev-parse", *names).splitlines():
        (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()


@pytest.fixture
def base(repo: GitRepo) -> Oid:
    repo.commit({"a": "1", "same/b": "2", ".gitattributes": "*.crlf text eol=crlf\n"})
    return Oid(repo.git("rev-parse", "HEAD^{tree}"))


def test_what_was_taken_after_a_snapshot_is_made_again_ob11(repo: GitRepo, base: Oid) -> None:
    engine = engine_of(repo.path)
    repo.write({"new/-c\n": "3", "x.crlf": "one\r\ntwo\r\n", "é": "4"})
    (repo.path / "lnk").symlink_to("nowhere")
    tree = engine.record().tree
    paths = ("new/-c\n", "new", "x.crlf", "é", "lnk", "")
    take(repo, *(f"{tree}:{path}" for path in paths))

    assert engine.look_again(objects_of(repo), base, tree) > 0

    assert repo.git("ls-tree", "-r", "-z", "--name-only", tree).count("\0") == 7
    assert repo.git("cat-file", "-p", f"{tree}:x.crlf") == "one\ntwo"
    repo.git("commit", "-q", "-m", "whole")
    repo.fsck()


def test_a_snapshot_is_remembered_until_it_is_safe_ob11(repo: GitRepo, base: Oid) -> None:
    engine, objects = engine_of(repo.path), objects_of(repo)
    repo.write({"new/c": "3"})
    tree = engine.record().tree
    assert engine.look_again(objects, base, tree) == 0
    take(repo, f"{tree}:new/c", f"{tree}:new", tree)
    repo.write({"new/c": "other by now"})

    assert objects.look_again() == 3

    assert repo.git("cat-file", "-p", f"{tree}:new/c") == "3"


def test_what_cannot_be_made_again_is_named(repo: GitRepo, base: Oid) -> None:
    engine = engine_of(repo.path)
    repo.write({"new/c": "3"})
    tree = engine.record().tree
    take(repo, f"{tree}:new/c")
    repo.write({"new/c": "other by now"})

    with pytest.raises(GitError, match="new/c"):
        engine.look_again(objects_of(repo), base, tree)


def test_a_blob_that_was_taken_before_the_next_snapshot_is_made_again_ob11(
    repo: GitRepo, base: Oid
) -> None:
    engine = engine_of(repo.path)
    repo.write({"new/c": "3"})
    # An old file, or its blob would be written anew in any case.
    os.utime(repo.path / "new/c", (1, 1))
    while time.time() < (repo.path / "new/c").stat().st_ctime + 0.1:
        continue
    tree = engine.record().tree
    take(repo, f"{tree}:new/c", f"{tree}:new", tree)
    repo.write({"new/d": "4"})

    tree = engine.record().tree

    assert repo.git("cat-file", "-p", f"{tree}:new/c") == "3"


def with_submodule(repo: GitRepo, tmp_path: Path) -> None:
    below = GitRepo(tmp_path / "below")
    below.path.mkdir()
    below.git("init", "-q", "-b", "main")
    below.commit({"f": "1"})
    options = ("-c", "protocol.file.allow=always")
    repo.git(*options, "submodule", "--quiet", "add", str(below.path), "sub [1]")
    repo.git("commit", "-q", "-m", "submodule")


@pytest.mark.parametrize("name", ["f", "new"])
def test_a_dirty_submodule_is_told_of_once(repo: GitRepo, tmp_path: Path, name: str) -> None:
    with_submodule(repo, tmp_path)
    engine = engine_of(repo.path)
    assert engine.record().notices == ()
    (repo.path / "sub [1]" / name).write_text("changed")

    first, second = engine.record(), engine.record()

    assert [(one.code, one.path) for one in first.notices] == [("submodule_dirty", b"sub [1]")]
    assert second.notices == ()
    assert first.tree == repo.git("rev-parse", "HEAD^{tree}")


def test_a_submodule_at_another_commit_is_recorded_and_not_dirty(
    repo: GitRepo, tmp_path: Path
) -> None:
    with_submodule(repo, tmp_path)
    commit = GitRepo(repo.path / "sub [1]").commit({"f": "2"})

    snapshot = engine_of(repo.path).record()

    assert snapshot.notices == ()
    assert repo.git("rev-parse", f"{snapshot.tree}:sub [1]") == commit


def test_a_submodule_that_is_not_there_is_not_dirty(repo: GitRepo, tmp_path: Path) -> None:
    with_submodule(repo, tmp_path)
    repo.git("clone", "-q", ".", str(tmp_path / "clone"))

    assert engine_of(tmp_path / "clone").record().notices == ()


@pytest.fixture
def linked(repo: GitRepo, tmp_path: Path, base: Oid) -> Path:
    repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    return tmp_path / "linked"


def test_a_left_lock_of_a_linked_work_tree_is_removed_at_once(repo: GitRepo, linked: Path) -> None:
    engine = engine_of(linked)
    lock = repo.path / ".git/worktrees/linked/index.lock"
    lock.touch()
    began = time.monotonic()

    assert engine.remove_left_lock()

    assert not lock.exists()
    assert not engine.remove_left_lock()
    engine.record()
    assert time.monotonic() - began < 3


def test_a_lock_that_goes_within_a_moment_is_at_work(repo: GitRepo, linked: Path) -> None:
    engine = engine_of(linked)
    lock = repo.path / ".git/worktrees/linked/index.lock"
    lock.touch()
    writing = threading.Timer(0.02, lock.write_text, ["more"])
    writing.start()

    assert not engine.remove_left_lock()

    writing.join()
    assert lock.read_text() == "more"


def test_the_lock_of_the_main_work_tree_or_of_a_private_index_stays(
    repo: GitRepo, linked: Path, tmp_path: Path
) -> None:
    (repo.path / ".git/index.lock").touch()
    (tmp_path / "private.lock").touch()

    assert not engine_of(repo.path).remove_left_lock()
    private = ReferenceEngine(open_repository(linked), tmp_path / "private", Rules())
    assert not private.remove_left_lock()

    assert (repo.path / ".git/index.lock").exists()
    assert (tmp_path / "private.lock").exists()
