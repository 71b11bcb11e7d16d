"""What differs between two trees as text: counted lines and patches, by git or without it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from git_fabro.checkpoint.model import Oid, TreeEntry
from git_fabro.git.discover import Repository
from git_fabro.git.encoding import GITLINK_MODE
from git_fabro.git.objects import Objects
from git_fabro.git.treediff import Change

_PLUMBING = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
#: A file with a NUL so far from its start is binary, as for git.
_BINARY_WITHIN = 8000
_CONTEXT = 3


class Counted(NamedTuple):
    """A path that differs; added and deleted lines are None for what is no text."""

    path: bytes
    status: str
    added: int | None
    deleted: int | None


def count(
    repository: Repository, objects: Objects, old: Oid, new: Oid, changes: Sequence[Change]
) -> list[Counted]:
    """The lines that each of these changes between two commits or trees adds and deletes."""
    if repository.git is None or not changes:
        return [_counted(objects, change) for change in changes]
    args = ["diff-tree", "-r", "-z", "--numstat", *_PLUMBING, old, new, "--", *_paths(changes)]
    printed = repository.git.with_base(GIT_LITERAL_PATHSPECS="1").run(
        args, git_dir=repository.git_dir
    )
    numbers: dict[bytes, tuple[int | None, int | None]] = {}
    for row in printed.split(b"\0"):
        added, _, rest = row.partition(b"\t")
        deleted, tab, path = rest.partition(b"\t")
        if tab:
            numbers[path] = (_number(added), _number(deleted))
    nothing = (None, None)
    return [
        Counted(change.path, change.status, *numbers.get(change.path, nothing))
        for change in changes
    ]


def patch(
    repository: Repository, objects: Objects, old: Oid, new: Oid, changes: Sequence[Change]
) -> Iterator[str]:
    """The lines of a patch with these changes, in git's form; undecodable bytes as escapes."""
    if not changes:
        return
    if repository.git is None:
        for change in changes:
            yield from _own_patch(objects, change)
        return
    args = ["diff-tree", "-r", "-p", *_PLUMBING, old, new, "--", *_paths(changes)]
    printed = repository.git.with_base(GIT_LITERAL_PATHSPECS="1").run(
        args, git_dir=repository.git_dir
    )
    for row in printed.removesuffix(b"\n").split(b"\n"):
        yield row.decode("utf-8", "backslashreplace")


def _paths(changes: Sequence[Change]) -> list[str]:
    # A long command line is refused; then git looks at all paths, and rows nobody wants are many.
    names = [os.fsdecode(change.path) for change in changes]
    return names if sum(map(len, names)) < 50_000 else []


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


def _counted(objects: Objects, change: Change) -> Counted:
    old, new = _text(objects, change.old), _text(objects, change.new)
    if old is None or new is None:
        return Counted(change.path, change.status, None, None)
    added = deleted = 0
    for tag, begin, end, start, stop in _matcher(old, new).get_opcodes():
        if tag != "equal":
            deleted += end - begin
            added += stop - start
    return Counted(change.path, change.status, added, deleted)


def _text(objects: Objects, entry: TreeEntry | None) -> list[str] | None:
    """The lines of a file; none where there is no file, None for what is no text."""
    if entry is None:
        return []
    if entry.mode == GITLINK_MODE:
        return [f"Subproject commit {entry.oid}\n"]
    data = objects.read_blob(entry.oid)
    if b"\0" in data[:_BINARY_WITHIN]:
        return None
    # Line feeds only: splitlines would cut at what a text may hold within a line.
    rows = data.decode("utf-8", "backslashreplace").split("\n")
    whole = [f"{row}\n" for row in rows[:-1]]
    return [*whole, rows[-1]] if rows[-1] else whole


def _matcher(old: Sequence[str], new: Sequence[str]) -> difflib.SequenceMatcher[str]:
    return difflib.SequenceMatcher(None, old, new, autojunk=False)


def _own_patch(objects: Objects, change: Change) -> Iterator[str]:
    name = change.path.decode("utf-8", "backslashreplace")
    yield f"diff --git a/{name} b/{name}"
    yield from _modes(change)
    zeros = "0" * len((change.old or change.new or TreeEntry(0, Oid(""))).oid)
    before = change.old.oid if change.old is not None else zeros
    after = change.new.oid if change.new is not None else zeros
    if before == after:
        return
    modes = {entry.mode for entry in (change.old, change.new) if entry is not None}
    one = change.old is not None and change.new is not None and len(modes) == 1
    yield f"index {before}..{after}" + (f" {modes.pop():06o}" if one else "")
    old, new = _text(objects, change.old), _text(objects, change.new)
    sides = (
        f"a/{name}" if change.old is not None else "/dev/null",
        f"b/{name}" if change.new is not None else "/dev/null",
    )
    if old is None or new is None:
        yield f"Binary files {sides[0]} and {sides[1]} differ"
        return
    # A name with a blank ends in a tab, as in git.
    source, target = (f"{side}\t" if " " in side else side for side in sides)
    for row in difflib.unified_diff(old, new, source, target, n=_CONTEXT):
        yield row.removesuffix("\n")
        if not row.endswith("\n"):
            yield "\\ No newline at end of file"


def _modes(change: Change) -> Iterator[str]:
    if change.old is None and change.new is not None:
        yield f"new file mode {change.new.mode:06o}"
    elif change.new is None and change.old is not None:
        yield f"deleted file mode {change.old.mode:06o}"
    elif change.old and change.new and change.old.mode != change.new.mode:
        yield f"old mode {change.old.mode:06o}"
        yield f"new mode {change.new.mode:06o}"
