"""Which paths differ between two trees, by Dulwich's diff, in either object format."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass

from dulwich.diff_tree import CHANGE_ADD, CHANGE_DELETE, tree_changes
from dulwich.errors import ObjectFormatException
from dulwich.object_format import get_object_format
from dulwich.object_store import BaseObjectStore
from dulwich.objects import ObjectID, RawObjectID, ShaFile, Tree
from dulwich.objects import TreeEntry as Entry

from git_fabro.checkpoint.model import Oid, TreeEntry
from git_fabro.checkpoint.unfolding import MOST_PATHS
from git_fabro.errors import RecordError
from git_fabro.git import treecount


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: status A, D, M or T (its type), as git diff --raw says it."""

    path: bytes
    status: str
    old: TreeEntry | None
    new: TreeEntry | None


def diff_trees(
    source: Oid, target: Oid, read: Callable[[Oid], bytes], object_format: str
) -> list[Change]:
    """The paths that differ, sorted.

    Args:
        source: A tree.
        target: Another one.
        read: The bytes of a tree.
        object_format: ``sha1`` or ``sha256``.

    Raises:
        RecordError: a tree is damaged, or more than ``MOST_PATHS`` differ.
    """
    kept: dict[Oid, bytes] = {}

    def read_once(tree: Oid) -> bytes:
        if tree not in kept:
            kept[tree] = read(tree)
        return kept[tree]

    # Dulwich opens a tree at each path where it stands, which may be more than it can ever do.
    if treecount.count(source, target, read_once, object_format).paths > MOST_PATHS:
        raise RecordError(
            f"more than {MOST_PATHS} paths differ: {source[:12]} and {target[:12]}",
            hint="git fabro fsck",
        )
    trees = _Trees(read_once, object_format)
    sides = (ObjectID(source.encode()), ObjectID(target.encode()))
    changes = tree_changes(trees, *sides, change_type_same=True)
    try:
        return sorted((_change(*change) for change in changes), key=lambda it: it.path)
    except (ObjectFormatException, ValueError) as exc:
        raise RecordError(f"not a tree: {exc}") from exc


class _Trees(BaseObjectStore):
    """What Dulwich's diff asks of an object store: trees by name, in either object format."""

    def __init__(self, read: Callable[[Oid], bytes], object_format: str) -> None:
        super().__init__(object_format=get_object_format(object_format))
        self._read = read

    def __getitem__(self, sha1: ObjectID | RawObjectID) -> ShaFile:
        data = self._read(Oid(sha1.decode("ascii")))
        return ShaFile.from_raw_string(Tree.type_num, data, object_format=self.object_format)


def _change(kind: str, old: Entry | None, new: Entry | None) -> Change:
    before, after = _tree_entry(old), _tree_entry(new)
    status = {CHANGE_ADD: "A", CHANGE_DELETE: "D"}.get(kind, "M")
    if before and after and stat.S_IFMT(before.mode) != stat.S_IFMT(after.mode):
        status = "T"
    path = (new or old or Entry(b"", 0, ObjectID(b""))).path
    return Change(path or b"", status, before, after)


def _tree_entry(entry: Entry | None) -> TreeEntry | None:
    if entry is None or entry.mode is None or entry.sha is None:
        return None
    return TreeEntry(entry.mode, Oid(entry.sha.decode("ascii")))
