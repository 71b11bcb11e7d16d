"""Which runs were pruned: a sync does not bring them back.

Source: git-fabro-format(5), "Refs".
"""

from __future__ import annotations

from collections.abc import Iterable

from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.git.objects import Objects

_LONGEST_BYTES = 100


def pruned(objects: Objects, tips: Iterable[Oid]) -> frozenset[RunId]:
    """The runs that the tombstones of one or several repositories call pruned.

    Each is a tree with a file for each run: ``pruned <ulid>`` or ``kept <ulid>``; of several
    entries for one run the later counts, the one with the larger ULID.

    Raises:
        RecordError: a tip holds no tree, or an entry no text.
    """
    latest: dict[RunId, tuple[str, str]] = {}
    for tip in tips:
        for name, entry in objects.read_tree(objects.tree_of(tip)).items():
            data = objects.read_blob(entry.oid, limit_bytes=_LONGEST_BYTES)
            what, _, ulid = data.decode("ascii", "replace").strip().partition(" ")
            run = RunId(name.decode("ascii", "replace"))
            latest[run] = max(latest.get(run, ("", "")), (ulid, what))
    return frozenset(run for run, (_, what) in latest.items() if what == "pruned")
