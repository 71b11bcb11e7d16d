"""The values that stand for what Git holds: object names, identities, commits, ref moves."""

from __future__ import annotations

import re
from typing import NamedTuple, NewType

from git_fabro.errors import RecordError

#: An object name in full: 40 hex digits, or 64 in a SHA-256 repository.
Oid = NewType("Oid", str)
#: A run's id: a ULID in upper case (ours), or any one-segment ref name (the Rust program's).
RunId = NewType("RunId", str)

_OID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


def parse_oid(text: str) -> Oid:
    """An object name in full.

    Raises:
        RecordError: the text is none.
    """
    if not _OID.match(text):
        raise RecordError(f"not an object name: {text[:80]!r}")
    return Oid(text)


def zero(like: Oid) -> Oid:
    """The object name that means "no such ref", in the format of another one."""
    return Oid("0" * len(like))


class Identity(NamedTuple):
    """Who a commit is by. Neither part is empty or holds ``<``, ``>``, a newline or NUL."""

    name: str
    email: str


class Commit(NamedTuple):
    """A commit as a value; ``when`` is in whole seconds since the epoch, always written as UTC."""

    tree: Oid
    parents: tuple[Oid, ...]
    author: Identity
    committer: Identity
    when: int
    message: str

    @property
    def subject(self) -> str:
        """The bytes before the first line feed; not git's subject, which joins a paragraph."""
        return self.message.split("\n", 1)[0]


class TreeEntry(NamedTuple):
    """One entry of a tree: mode as git writes it (0o100644, 0o40000, ...)."""

    mode: int
    oid: Oid


class Move(NamedTuple):
    """One line of a ref transaction.

    ``old`` is the value that the ref must have, the zero id if it must not exist; None cannot be
    said (traps: RF1). ``new`` is the zero id to delete, or equal to ``old`` to verify only.
    """

    ref: str
    old: Oid
    new: Oid
