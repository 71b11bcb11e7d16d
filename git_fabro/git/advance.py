"""Taking a work tree forward with its branch, where nobody has changed anything in it."""

from __future__ import annotations

from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git.discover import Repository, open_repository


def obstacle(path: Path, old: Oid, new: Oid) -> str:
    """Why the files of a work tree cannot go from one commit to another; "" if they can.

    Nothing in it may differ from the old commit, untracked files neither, and no ignored file may
    lie where the new commit has one.
    """
    tree = open_repository(path)
    try:
        if _run(tree, "status", "--porcelain", "-z"):
            return f"its work tree has changes: {path}"
        _run(tree, "read-tree", "-n", "-m", "-u", old, new)
    except GitError as exc:
        return exc.message
    return ""


def advance(path: Path, old: Oid, new: Oid) -> None:
    """Takes index and files of a work tree from one commit to another, once its branch has moved.

    Raises:
        GitError: a file stands in the way, or git cannot write it.
    """
    _run(open_repository(path), "read-tree", "-m", "-u", old, new)


def _run(tree: Repository, *args: str) -> bytes:
    if tree.git is None:
        raise GitError("a work tree is moved by the git program", hint="install git")
    return tree.git.run(args, cwd=tree.work_tree, git_dir=tree.git_dir, work_tree=tree.work_tree)
