"""What is wrong with a record, under which rule, and what a proof of it needs to be told.

Source: git-fabro-fsck(1), "Rules".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from git_fabro.checkpoint.model import Commit, Oid
from git_fabro.checkpoint.secrets import Mask

Rule = Literal[
    "ref-name",
    "link",
    "chain",
    "append-only",
    "records",
    "fold",
    "tree",
    "id",
    "schema",
    "size",
    "digest",
    "secret",
    "rewind",
    "delete",
    "note",
]
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; ``commit`` is the first one that has it, None where none does."""

    rule: Rule
    ref: str
    commit: Oid | None
    message: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with something whose ref and commit the caller knows."""

    rule: Rule
    message: str

    def at(self, ref: str, commit: Oid | None) -> Finding:
        return Finding(rule=self.rule, ref=ref, commit=commit, message=self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may lie in a record, and what in the files beside it.

    ``record_bytes`` is the size of one file of the metadata, ``file_bytes`` of one file of a run
    branch; ``secrets`` says where they are looked for.
    """

    record_bytes: int = 16 * _MIB
    file_bytes: int = 100 * _MIB
    mask: Mask = field(default_factory=Mask)
    secrets: Literal["all", "record", "none"] = "all"


class Facts(Protocol):
    """Objects and refs as they are to be judged, those of a push among them.

    What reads an object raises MissingObjectError where it is absent, RecordError where it is
    damaged or of another kind.
    """

    def commit(self, oid: Oid) -> Commit: ...

    def tree(self, oid: Oid) -> bytes: ...

    def blob(self, oid: Oid) -> bytes: ...

    def size(self, oid: Oid) -> int:
        """The size of an object in bytes, without the memory that its content takes."""

    def exists(self, oid: Oid) -> bool: ...

    def is_ancestor(self, ancestor: Oid, tip: Oid) -> bool: ...

    def ref(self, name: str) -> Oid | None:
        """Where a ref stands, before the push."""

    @property
    def boundary(self) -> Collection[Oid]:
        """The commits below which a shallow repository has nothing."""


def plain(text: str | bytes) -> str:
    """Text in which nothing but printable ASCII is left; the rest is escaped."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    shown = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in shown)


def above(facts: Facts, tip: Oid, old: Oid | None) -> Iterator[tuple[Oid, Commit]]:
    """Commits from a tip down to where the history of an old tip begins, first parents only.

    Both histories are walked at the same pace, so that what the old one has below costs nothing.
    The commit where they meet is not given; without an old tip the root is the last one.

    Raises:
        MissingObjectError: a commit is absent.
        RecordError: an object is no commit.
    """
    met = meeting(facts, tip, old) if old is not None else None
    at: Oid | None = tip
    while at is not None and at != met:
        commit = facts.commit(at)
        yield at, commit
        at = first_parent(facts, at, commit)


def meeting(facts: Facts, tip: Oid, old: Oid) -> Oid | None:
    """The newest commit that two first-parent histories share; None where they share none."""
    sides: tuple[set[Oid], set[Oid]] = (set(), set())
    ends: list[Oid | None] = [tip, old]
    while any(end is not None for end in ends):
        for side in (0, 1):
            at = ends[side]
            if at is None:
                continue
            if at in sides[1 - side]:
                return at
            sides[side].add(at)
            ends[side] = first_parent(facts, at, facts.commit(at))
    return None


def first_parent(facts: Facts, oid: Oid, commit: Commit) -> Oid | None:
    """The commit before; None for a root, and for the last one that a shallow repository has."""
    return commit.parents[0] if commit.parents and oid not in facts.boundary else None
