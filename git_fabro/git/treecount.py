"""How many paths differ between two trees; a tree that stands at many paths is opened once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from git_fabro.checkpoint.model import Oid, TreeEntry
from git_fabro.checkpoint.unfolding import MOST_PATHS, unfolded
from git_fabro.git.encoding import TREE_MODE, parse_tree

_Pair = tuple[Oid | None, Oid | None]
_Entries = Mapping[bytes, TreeEntry]


class Differing(NamedTuple):
    """How many files differ, and how many paths, which are files and folders.

    Either is one more than ``MOST_PATHS`` where it is more than that.
    """

    files: int
    paths: int


def count(source: Oid, target: Oid, read: Callable[[Oid], bytes], object_format: str) -> Differing:
    """How many paths differ, as ``git diff --raw --no-renames`` has rows.

    Args:
        source: A tree.
        target: Another one.
        read: The bytes of a tree; asked once or twice for each that differs.
        object_format: ``sha1`` or ``sha256``.

    Raises:
        RecordError: a tree is damaged.
    """
    top: _Pair = (source, target)
    files: dict[_Pair, int] = {}
    below: dict[_Pair, Sequence[_Pair]] = {}
    waiting = [] if source == target else [top]
    while waiting:
        pair = waiting.pop()
        if pair not in below:
            old, new = (
                {} if tree is None else parse_tree(read(tree), object_format) for tree in pair
            )
            files[pair], below[pair] = _differing(old, new)
            waiting += below[pair]
    paths = {pair: own + len(below[pair]) for pair, own in files.items()}
    return Differing(
        unfolded(top, below, files, most=MOST_PATHS), unfolded(top, below, paths, most=MOST_PATHS)
    )


def _differing(old: _Entries, new: _Entries) -> tuple[int, list[_Pair]]:
    """How many files differ in a folder itself, and the folders below it that do."""
    files = 0
    folders: list[_Pair] = []
    for name in old.keys() | new.keys():
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        pair = (_folder(before), _folder(after))
        if pair != (None, None):
            folders.append(pair)
        # What becomes a folder goes as a file; what changes its type otherwise is one file still.
        sides = (before is not None and pair[0] is None, after is not None and pair[1] is None)
        files += any(sides)
    return files, folders


def _folder(entry: TreeEntry | None) -> Oid | None:
    return entry.oid if entry is not None and entry.mode == TREE_MODE else None
