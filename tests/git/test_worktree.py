from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import ConflictError, GitError, NotFoundError
from git_fabro.git.discover import Repository, open_repository
from git_fabro.git.worktree import (
    add_work_tree,
    at_work_tree,
    is_clean_at,
    list_work_trees,
    remove_stale_locks,
    remove_work_tree,
    reset_work_tree,
)
from tests.conftest import GitRepo

BRANCH = "fabro/run/X"


@pytest.fixture
def first(repo: GitRepo) -> Oid:
    return Oid(repo.commit({"a": "1", "dir/b": "2", ".gitignore": "*.log\nbuild/\n"}))


@pytest.fixture
def work(repo: GitRepo, first: Oid) -> GitRepo:
    """A linked work tree on a run branch."""
    repo.git("branch", BRANCH, first)
    path = repo.path.parent / "work"
    add_work_tree(open_repository(repo.path), path, branch=BRANCH)
    return GitRepo(path)


def seen(work: GitRepo) -> Repository:
    return open_repository(work.path)


def reset(work: GitRepo, commit: Oid, **more: object) -> tuple[bytes, ...]:
    options = {"branch": BRANCH, "now_s": time.time(), **more}
    return reset_work_tree(seen(work), commit, **options)  # type: ignore[arg-type]


def test_a_work_tree_is_added_on_a_branch(repo: GitRepo, work: GitRepo, first: Oid) -> None:
    added = at_work_tree(open_repository(repo.path), work.path)

    assert added == seen(work)
    assert added.head == f"refs/heads/{BRANCH}"
    assert is_clean_at(added, first)
    assert work.git("status", "--porcelain") == ""


def test_a_work_tree_is_added_detached(repo: GitRepo, first: Oid) -> None:
    added = add_work_tree(open_repository(repo.path), repo.path.parent / "d", commit=first)

    assert added.head is None
    assert is_clean_at(added, first)


def test_a_work_tree_of_a_bare_repository_is_added(repo: GitRepo, first: Oid) -> None:
    bare = repo.path.parent / "bare.git"
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare))

    added = add_work_tree(open_repository(bare), repo.path.parent / "d", commit=first)

    assert not added.is_bare
    assert is_clean_at(added, first)


def test_the_list_is_that_of_git(repo: GitRepo, work: GitRepo, first: Oid) -> None:
    repo.git("worktree", "add", "-q", "--detach", str(repo.path.parent / "new\nline"), first)
    repo.git("worktree", "lock", str(work.path))

    listed = list_work_trees(open_repository(work.path))

    shown = repo.git("worktree", "list", "--porcelain", "-z").split("\0")
    assert {f"worktree {tree.path}" for tree in listed} == {
        line for line in shown if line.startswith("worktree ")
    }
    assert [tree.branch for tree in listed if tree.is_locked] == [f"refs/heads/{BRANCH}"]
    assert [tree.head for tree in listed if tree.branch is None] == [first]


@pytest.mark.parametrize("same", ["branch", "path"])
def test_an_entry_whose_folder_is_gone_is_replaced_and_no_other_one(
    repo: GitRepo, work: GitRepo, first: Oid, same: str
) -> None:
    other = repo.path.parent / "other"
    repo.git("worktree", "add", "-q", "--detach", str(other), first)
    shutil.rmtree(other)
    shutil.rmtree(work.path)
    path = work.path if same == "path" else repo.path.parent / "elsewhere"

    add_work_tree(open_repository(repo.path), path, branch=BRANCH)

    shown = repo.git("worktree", "list", "--porcelain").splitlines()
    assert f"worktree {path}" in shown
    assert f"worktree {other}" in shown
    assert (f"worktree {work.path}" in shown) == (same == "path")


def test_a_branch_that_is_checked_out_elsewhere_is_refused(repo: GitRepo, work: GitRepo) -> None:
    with pytest.raises(GitError, match="already"):
        add_work_tree(open_repository(repo.path), repo.path.parent / "two", branch=BRANCH)


def _add_and_remove(path: str, number: int, results: object) -> None:
    repo = open_repository(path)
    try:
        for round_ in range(5):
            target = Path(path).parent / f"w{number}-{round_}"
            add_work_tree(repo, target)
            remove_work_tree(repo, target)
    finally:
        results.put(number)  # type: ignore[attr-defined]


def test_eight_processes_add_and_remove_at_once_wt16(repo: GitRepo, first: Oid) -> None:
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    workers = [
        context.Process(target=_add_and_remove, args=(str(repo.path), number, results))
        for number in range(8)
    ]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 8
    assert len(repo.git("worktree", "list").splitlines()) == 1


def test_a_removed_work_tree_leaves_nothing(repo: GitRepo, work: GitRepo) -> None:
    work.write({"untracked": "u", "build/cache/x": "c"})
    (work.path / "build/cache").chmod(0o555)

    remove_work_tree(open_repository(repo.path), work.path)
    remove_work_tree(open_repository(repo.path), work.path)

    assert not work.path.exists()
    assert len(repo.git("worktree", "list").splitlines()) == 1
    assert repo.git("rev-parse", BRANCH) == repo.git("rev-parse", "main")


def test_a_work_tree_with_a_repository_in_it_is_not_removed_wt15(
    repo: GitRepo, work: GitRepo
) -> None:
    work.git("init", "-q", "build/nested")

    with pytest.raises(ConflictError, match="build/nested"):
        remove_work_tree(open_repository(repo.path), work.path)

    assert (work.path / "a").exists()


def test_the_main_work_tree_is_never_removed(repo: GitRepo, first: Oid) -> None:
    remove_work_tree(open_repository(repo.path), repo.path)

    assert (repo.path / "a").exists()


def test_a_folder_that_is_no_work_tree_is_not_found(repo: GitRepo, first: Oid) -> None:
    with pytest.raises(NotFoundError):
        at_work_tree(open_repository(repo.path), repo.path.parent)


def test_a_reset_restores_every_kind_of_change(work: GitRepo, first: Oid) -> None:
    tree = work.git("rev-parse", f"{first}^{{tree}}")
    (work.path / "a").unlink()
    (work.path / "a").mkdir()
    shutil.rmtree(work.path / "dir")
    work.write({"a/x": "1", "dir": "file", "new/deep/x": "n", "é\t\n": "u", "staged": "s"})
    work.git("add", "staged")
    (work.path / "link").symlink_to("new")

    assert reset(work, first) == ()

    assert is_clean_at(seen(work), first)
    assert work.git("write-tree") == tree
    assert sorted(os.listdir(work.path)) == [".git", ".gitignore", "a", "dir"]
    assert work.git("status", "--porcelain", "--ignored") == ""


def test_a_reset_moves_no_branch(work: GitRepo, first: Oid) -> None:
    second = Oid(work.commit({"a": "2"}))

    reset(work, first)

    assert work.git("rev-parse", BRANCH) == second
    assert work.git("symbolic-ref", "HEAD") == f"refs/heads/{BRANCH}"
    assert (work.path / "a").read_text() == "1"
    assert not is_clean_at(seen(work), first)


def test_a_reset_brings_head_back_from_another_branch(work: GitRepo, first: Oid) -> None:
    work.git("checkout", "-q", "-b", "agents-own")
    work.commit({"a": "theirs"})

    reset(work, first)

    assert is_clean_at(seen(work), first)
    assert work.git("show", "agents-own:a") == "theirs"


def test_a_reset_detaches_head_where_no_branch_is_named(work: GitRepo, first: Oid) -> None:
    reset(work, first, branch=None)

    assert seen(work).head is None
    assert is_clean_at(seen(work), first)


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick", "revert"])
def test_a_reset_ends_what_was_left_open(work: GitRepo, first: Oid, operation: str) -> None:
    work.commit({"a": "2"})
    work.git("checkout", "-q", "-b", "side", first)
    work.commit({"a": "3"})
    other = {"revert": first}.get(operation, BRANCH)
    work.git(operation, other, ok=(1, 128))
    assert not is_clean_at(seen(work), first)

    reset(work, first, branch=None)

    assert is_clean_at(seen(work), first)
    assert "You are" not in work.git("status")


def test_ignored_files_stay_also_those_that_only_the_former_rules_ignored(
    work: GitRepo, first: Oid
) -> None:
    second = Oid(work.commit({".gitignore": "*.log\nbuild/\n.env\n"}))
    work.write({"x.log": "l", "build/o": "o", ".env": "secret", "untracked": "u"})

    kept = reset(work, first)

    assert kept == (b".env",)
    assert {"x.log", "build", ".env"} <= set(os.listdir(work.path))
    assert not (work.path / "untracked").exists()
    reset(work, second)
    assert is_clean_at(seen(work), second)


def test_excluded_files_stay(work: GitRepo, first: Oid) -> None:
    work.write({"dist/x": "made by a tool", "other": "o"})

    reset(work, first, excludes=("dist/**",))

    assert (work.path / "dist/x").exists()
    assert not (work.path / "other").exists()
    assert is_clean_at(seen(work), first, excludes=("dist/**",))
    assert not is_clean_at(seen(work), first)


def test_nested_repositories_stay_and_are_named_wt15(work: GitRepo, first: Oid) -> None:
    inner = GitRepo(work.path / "sub/nested")
    inner.path.mkdir(parents=True)
    inner.git("init", "-q")
    inner.commit({"theirs": "t"})
    work.write({"sub/ours": "o"})

    kept = reset(work, first)

    assert kept == (b"sub/nested/",)
    assert (inner.path / "theirs").exists()
    assert not (work.path / "sub/ours").exists()


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("name", ["dir", "a", "dir/b"])
def test_a_nested_repository_in_the_way_is_a_conflict_and_nothing_is_touched(
    work: GitRepo, first: Oid, name: str, tracked: bool
) -> None:
    work.git("rm", "-q", "-r", name)
    work.commit()
    inner = GitRepo(work.path / name)
    inner.path.mkdir(parents=True)
    inner.git("init", "-q")
    inner.commit({"b": "theirs"})
    if tracked:
        work.git("add", name)
    work.write({"untracked": "u"})

    with pytest.raises(ConflictError, match="repository of its own"):
        reset(work, first)

    assert (inner.path / "b").read_text() == "theirs"
    assert (work.path / "untracked").exists()


def test_a_gitlink_that_the_commit_lacks_keeps_its_folder(work: GitRepo, first: Oid) -> None:
    inner = GitRepo(work.path / "sub")
    inner.path.mkdir()
    inner.git("init", "-q")
    inner.commit({"b": "theirs"})
    work.commit()

    kept = reset(work, first)

    assert kept == (b"sub/",)
    assert (inner.path / "b").exists()


def test_a_file_swapped_in_with_its_times_is_restored_wt24(work: GitRepo, first: Oid) -> None:
    for round_ in range(10):
        text = f"{round_}"
        stat = (work.path / "a").stat()
        (work.path / "a").write_text(text)
        os.utime(work.path / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns))

        assert is_clean_at(seen(work), first) == (text == "1")
        reset(work, first)

        assert (work.path / "a").read_text() == "1"


def test_an_old_lock_of_the_work_tree_is_removed_and_a_young_one_is_not(
    work: GitRepo, first: Oid
) -> None:
    work.write({"a": "2"})
    lock = seen(work).git_dir / "index.lock"
    lock.touch()
    os.utime(lock, (1, 1))

    reset(work, first)

    assert is_clean_at(seen(work), first)
    assert not lock.exists()


@pytest.mark.parametrize("content", [b"", b"DIRC garbage"])
def test_an_index_that_a_power_cut_damaged_is_made_again(
    work: GitRepo, first: Oid, content: bytes
) -> None:
    work.write({"a": "2", "untracked": "u"})
    (seen(work).git_dir / "index").write_bytes(content)

    reset(work, first)

    assert is_clean_at(seen(work), first)


def test_the_users_own_work_tree_is_never_reset(repo: GitRepo, first: Oid) -> None:
    repo.write({"a": "mine"})

    with pytest.raises(GitError, match="not a linked work tree"):
        reset_work_tree(open_repository(repo.path), first, now_s=time.time())

    assert (repo.path / "a").read_text() == "mine"


def test_no_hook_runs_when_a_work_tree_is_added_or_reset(repo: GitRepo, first: Oid) -> None:
    hook = repo.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {repo.path.parent}/hooked\nexit 1\n")
    hook.chmod(0o755)

    added = add_work_tree(open_repository(repo.path), repo.path.parent / "w")
    reset_work_tree(added, first, now_s=time.time())

    assert not (repo.path.parent / "hooked").exists()


def test_only_old_locks_of_the_refs_that_are_named_are_removed_rf9(
    repo: GitRepo, first: Oid
) -> None:
    now = time.time()
    names = ["refs/heads/fabro/run/OLD", "refs/heads/fabro/run/YOUNG", "refs/fabro/ops"]
    for name, age in zip(names, (10, 0, 10), strict=True):
        lock = repo.path / ".git" / f"{name}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
        os.utime(lock, (now - age, now - age))

    removed = remove_stale_locks(open_repository(repo.path), names[:2], now_s=now)

    assert removed == (names[0],)
    assert [(repo.path / ".git" / f"{name}.lock").exists() for name in names] == [
        False,
        True,
        True,
    ]
