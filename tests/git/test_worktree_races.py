"""Work trees beside programs that make and remove them, and their folder, all the time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from git_fabro.git.discover import open_repository
from git_fabro.git.worktree import add_work_tree, list_work_trees, remove_work_tree
from tests.conftest import GitRepo


@contextlib.contextmanager
def beside(step: Callable[[Path], None], path: Path) -> Iterator[None]:
    """Another process that does this again and again."""
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    process = context.Process(target=_repeat, args=(step, path, stop))
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join()


def _repeat(step: Callable[[Path], None], path: Path, stop: threading.Event) -> None:
    while not stop.is_set():
        step(path)


def _come_and_go(folder: Path) -> None:
    (folder / "x").mkdir(parents=True)
    (folder / "x/HEAD").write_text("ref: refs/heads/x\n")
    (folder / "x/gitdir").write_text("/nowhere/.git\n")
    shutil.rmtree(folder / "x")


def _remove_while_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)
    # Faster than this nothing could ever be made in it.
    time.sleep(0.002)


def _lock_heads(folder: Path) -> None:
    for head in folder.glob("*/HEAD"):
        with contextlib.suppress(OSError):
            head.with_name("HEAD.lock").touch()
            head.with_name("HEAD.lock").unlink()
    time.sleep(0.0002)
    time.sleep(0.0002)


def test_a_work_tree_is_removed_though_gc_locks_its_head(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    found = open_repository(repo.path)

    paths = [repo.path.parent / f"w{number}" for number in range(40)]
    for path in paths:
        add_work_tree(found, path)

    with beside(_lock_heads, found.common_dir / "worktrees"):
        for path in paths:
            remove_work_tree(found, path)

    assert len(repo.git("worktree", "list").splitlines()) == 1


def test_a_work_tree_that_goes_while_all_are_listed_is_left_out(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    found = open_repository(repo.path)

    with beside(_come_and_go, found.common_dir / "worktrees"):
        sizes = {len(list_work_trees(found)) for _ in range(3000)}

    assert sizes <= {1, 2}


def test_a_work_tree_is_added_though_gc_removes_the_empty_folder_of_all(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    found = open_repository(repo.path)

    with beside(_remove_while_empty, found.common_dir / "worktrees"):
        for number in range(30):
            added = add_work_tree(found, repo.path.parent / f"w{number}")
            assert (repo.path.parent / f"w{number}" / "a").exists()
            assert added.work_tree is not None
            remove_work_tree(found, added.work_tree)

    assert len(repo.git("worktree", "list").splitlines()) == 1
