"""What is looked at before the first file of a work tree is written: can all of them be.

A restore that finds out half way leaves neither the files before nor the files after.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable

from git_fabro.checkpoint.model import Oid
from git_fabro.doors import WorkTree, shown_path
from git_fabro.errors import MissingObjectError, RequestError
from git_fabro.git.encoding import GITLINK_MODE, TREE_MODE
from git_fabro.git.objects import Objects
from git_fabro.git.treediff import Change


def refuse_missing(objects: Objects, changes: Iterable[Change], *, hint: str) -> None:
    """Nothing, if the content of every path that is to be written can be had.

    Raises:
        MissingObjectError: a blob is absent, and no remote that promised it gives it.
    """
    for path, new in ((change.path, change.new) for change in changes):
        if new is None or new.mode == GITLINK_MODE or objects.exists(new.oid):
            continue
        try:
            objects.read_blob(new.oid)
        except MissingObjectError as error:
            raise MissingObjectError(
                f"the content of {shown_path(path)} is missing, nothing was changed: {new.oid}",
                hint=hint,
            ) from error


def refuse_colliding(
    work: WorkTree, objects: Objects, changes: Iterable[Change], goal: Oid, *, name: str, hint: str
) -> None:
    """Nothing, if no two names that are to be written are one file where case does not count.

    Args:
        work: Whose ``core.ignorecase`` says whether case counts there.
        objects: Where the trees are.
        changes: What is to be written; folders that stay as they are, are not looked at.
        goal: The commit or tree that the work tree is to hold.
        name: What the goal is called in the error.
        hint: The next command.

    Raises:
        RequestError: two names of one folder differ in case only; all such names are listed.
    """
    if not work.view.config_bool("core.ignorecase"):
        return
    folders = {folder for change in changes for folder in _folders(change.path)}
    found = [path for folder in sorted(folders) for path in _colliding(objects, goal, folder)]
    if found:
        listed = ", ".join(shown_path(path) for path in found)
        raise RequestError(
            f"names of {name} that are one file where case does not count: {listed}", hint=hint
        )


def _folders(path: bytes) -> Iterable[bytes]:
    """The folders above a path, the top (an empty name) last."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def _colliding(objects: Objects, goal: Oid, folder: bytes) -> list[bytes]:
    entry = objects.entry_at(goal, folder) if folder else None
    if folder and (entry is None or entry.mode != TREE_MODE):
        return []
    tree = objects.tree_of(goal) if entry is None else entry.oid
    alike: dict[str, list[bytes]] = defaultdict(list)
    for name in objects.read_tree(tree):
        alike[os.fsdecode(name).casefold()].append(name)
    prefix = folder + b"/" if folder else b""
    return [prefix + name for names in alike.values() if len(names) > 1 for name in names]
