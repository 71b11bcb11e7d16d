"""Two runs side by side: where they part, and what each came to from there on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from git_fabro.checkpoint.foreign_values import in_our_words
from git_fabro.checkpoint.timeline import Entry
from git_fabro.place import Detail, History, Place


@dataclass(frozen=True, slots=True)
class Side:
    """A checkpoint of one of two runs, with its details."""

    entry: Entry
    detail: Detail

    def to_json(self) -> dict[str, object]:
        return {
            "ordinal": self.entry.ordinal,
            "status": self.entry.status,
            "duration_ms": self.detail.duration_ms,
            "files_changed": self.detail.files_changed,
            "run_commit": self.entry.run_commit,
            "meta_commit": self.entry.meta_commit,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A visit in two runs; a side is None where the run has no such visit."""

    node: str | None
    visit: int | None
    left: Side | None
    right: Side | None

    @property
    def is_same(self) -> bool:
        """Whether both came to the same and, where that is known, changed as many files."""
        if self.left is None or self.right is None:
            return False
        sides = (self.left, self.right)
        statuses = {in_our_words(side.entry.status or "") for side in sides}
        files = {side.detail.files_changed for side in sides} - {None}
        return len(statuses) == 1 and len(files) <= 1

    def to_json(self) -> dict[str, object]:
        return {
            "node": self.node,
            "visit": self.visit,
            "left": self.left.to_json() if self.left is not None else None,
            "right": self.right.to_json() if self.right is not None else None,
            "same": self.is_same,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs: the checkpoints that they share, oldest first, and the rest pair by pair."""

    shared: tuple[Entry, ...]
    pairs: tuple[Pair, ...]


def compare(left: History, right: History) -> Comparison:
    """Where two runs part, and what each came to from there on, node by node."""
    ones, others = list(left.places())[::-1], list(right.places())[::-1]
    count = 0
    for one, other in zip(ones, others, strict=False):
        if not _is_one(one.entry, other.entry):
            break
        count += 1
    return Comparison(
        tuple(place.entry for place in ones[:count]),
        tuple(_pairs(left, ones[count:], right, others[count:])),
    )


def _is_one(one: Entry, other: Entry) -> bool:
    """Whether two runs share a checkpoint: by its commits, never by a common root."""
    if one.run_commit is not None or other.run_commit is not None:
        return one.run_commit == other.run_commit
    return one.meta_commit == other.meta_commit


def _pairs(
    left: History, ones: Sequence[Place], right: History, others: Sequence[Place]
) -> Iterator[Pair]:
    """The visits of both, in the order of the left; what only the right has where it stands."""
    known = {_visit(one) for one in ones}
    waiting = {_visit(other): other for other in others}
    for one in ones:
        other = waiting.get(_visit(one))
        for visit in list(waiting) if other is not None else ():
            if visit == _visit(one):
                break
            if visit not in known:
                yield _pair(left, None, right, waiting.pop(visit))
        waiting.pop(_visit(one), None)
        yield _pair(left, one, right, other)
    for alone in waiting.values():
        yield _pair(left, None, right, alone)


def _visit(place: Place) -> tuple[object, ...]:
    """What a checkpoint is a checkpoint of; a commit by hand is by its number."""
    entry = place.entry
    return (entry.node, entry.visit) if entry.node is not None else (entry.kind, entry.ordinal)


def _pair(left: History, one: Place | None, right: History, other: Place | None) -> Pair:
    there = one if one is not None else other
    return Pair(
        node=there.entry.node if there is not None else None,
        visit=there.entry.visit if there is not None else None,
        left=Side(one.entry, left.detail(one)) if one is not None else None,
        right=Side(other.entry, right.detail(other)) if other is not None else None,
    )
