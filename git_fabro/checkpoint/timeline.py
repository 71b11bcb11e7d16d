"""The ordered checkpoints of a run, and how a person names one of them: ``@3``, ``plan@2``, an id.

Where they are read from is ``history.py``'s; how they are shown is the faces'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import NotFoundError, RequestError

Kind = Literal["node", "commit", "snapshot"]
Link = Literal["ok", "missing", "foreign", "none"]

#: A node inside a fan-out, and the parallel node that it belongs to.
Interior = Mapping[str, str]

_OBJECT = re.compile(r"[0-9a-f]{4,64}\Z")
_ULID_PREFIX = re.compile(r"[0-9A-HJKMNP-TV-Z]{4,26}\Z")
_NUMBER = re.compile(r"\+?[0-9]+\Z", re.ASCII)
_MOST_VISITS = 10


class Entry(NamedTuple):
    """One checkpoint of a timeline, or a snapshot between two.

    ``ordinal`` is the N of ``@N``, None for a snapshot, which has a ``checkpoint_id`` instead.
    Node, visit and status are None for a commit made by hand and for a snapshot.
    ``named_meta_commit`` is what the run commit's trailer says, ``meta_commit`` the one on the
    run's own chain that belongs to it; either commit may be None. ``link`` is ``ok``, ``missing``
    (the named one is not there), ``foreign`` (on another run's chain) or ``none``. ``when`` is the
    time of the commit, in seconds since the epoch. ``problem`` says why the state cannot be read.
    """

    ordinal: int | None
    kind: Kind
    node: str | None
    visit: int | None
    status: str | None
    run_commit: Oid | None
    meta_commit: Oid | None
    named_meta_commit: Oid | None
    link: Link
    when: int | None = None
    checkpoint_id: str | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """What people call it: ``@3``, or the id of a snapshot."""
        return f"@{self.ordinal}" if self.ordinal is not None else self.checkpoint_id or "?"

    @property
    def why(self) -> str:
        """What there is to know about the link, "" where it is good."""
        if self.kind == "snapshot":
            return ""
        if self.run_commit is None:
            return "no run commit"
        if self.link in ("missing", "foreign"):
            where = "is absent" if self.link == "missing" else "is another run's"
            return f"no metadata: {(self.named_meta_commit or '')[:12]} {where}"
        if self.meta_commit is None:
            return "no metadata: no trailer" if self.kind == "node" else "no metadata"
        return ""


class Resolved(NamedTuple):
    """The checkpoint that a target names, and what is to be said about it; "" is nothing."""

    entry: Entry
    said: str = ""


def resolve(
    target: str, newest_first: Iterable[Entry], interior: Callable[[], Interior], *, hint: str
) -> Resolved:
    """The checkpoint that a target names; no more entries are asked for than it takes.

    Args:
        target: As it was typed: ``@3``, ``@-1``, ``plan@2``, ``plan``, the beginning of the name of
            a run or meta commit, or of a snapshot's id.
        newest_first: The run's timeline.
        interior: Gives the nodes inside fan-outs; asked only where nothing else has the name.
        hint: A command that shows what there is.

    Raises:
        NotFoundError: none is meant by it.
        RequestError: it is malformed, or names several.
    """
    if target.startswith("@"):
        return Resolved(_by_ordinal(target, newest_first, hint))
    node, visit = split(target)
    if visit == 0:
        raise RequestError("visit number must be >= 1", hint=hint)
    found = []
    for entry in newest_first:
        if visit is None and entry.node == node:
            return Resolved(entry)
        found.append(entry)
    named = [entry for entry in reversed(found) if entry.node == node]
    if named:
        return Resolved(
            _visit_of(node, visit, named, f"no visit {visit} found for node '{node}'", hint)
        )
    by_id = _by_id(target, found)
    if by_id is not None:
        return Resolved(by_id)
    return _unnamed(node, visit, found, interior(), hint)


def split(target: str) -> tuple[str, int | None]:
    """Node and visit, split at the last ``@`` if a number follows it."""
    node, _, visit = target.rpartition("@")
    return (node, int(visit)) if node and _NUMBER.match(visit) else (target, None)


def _by_ordinal(target: str, newest_first: Iterable[Entry], hint: str) -> Entry:
    text = target[1:]
    if not _NUMBER.match(text.removeprefix("-")):
        raise RequestError(f"invalid ordinal: {_line(target)}", hint=hint)
    number = int(text)
    numbered = (entry for entry in newest_first if entry.ordinal is not None)
    newest = next(numbered, None)
    last = newest.ordinal if newest is not None and newest.ordinal is not None else 0
    if number == 0:
        raise RequestError(f"ordinal must be >= 1 (max @{last})", hint=hint)
    wanted = last + 1 + number if number < 0 else number
    if newest is not None and wanted == last:
        return newest
    found = None
    if 1 <= wanted < last:
        found = next((entry for entry in numbered if entry.ordinal == wanted), None)
    if found is None:
        raise NotFoundError(f"ordinal {target} out of range (max @{last})", hint=hint)
    return found


def _visit_of(
    node: str, visit: int | None, named: Sequence[Entry], missing: str, hint: str
) -> Entry:
    """The last of a node's entries, oldest first, or the first one with this visit."""
    if visit is None:
        return named[-1]
    for entry in named:
        if entry.visit == visit:
            return entry
    visits = [f"{node}@{entry.visit}" for entry in named]
    shown = visits if len(visits) <= _MOST_VISITS else [visits[0], "...", visits[-1]]
    raise NotFoundError(_line(f"{missing} (there is {', '.join(shown)})"), hint=hint)


def _by_id(target: str, found: Sequence[Entry]) -> Entry | None:
    """The entry one of whose commits, or whose id, begins so.

    Raises:
        RequestError: several do.
    """
    named = [entry for entry in found if _has_id(entry, target)]
    if len(named) > 1:
        places = ", ".join(entry.name for entry in reversed(named))
        raise RequestError(f"ambiguous object id: {target} ({places})", hint="type more of it")
    return named[0] if named else None


def _has_id(entry: Entry, target: str) -> bool:
    if _ULID_PREFIX.match(target.upper()) and (entry.checkpoint_id or "").startswith(
        target.upper()
    ):
        return True
    commits = (entry.run_commit or "", entry.meta_commit or "")
    return _OBJECT.match(target) is not None and any(oid.startswith(target) for oid in commits)


def _unnamed(
    node: str, visit: int | None, found: Sequence[Entry], interior: Interior, hint: str
) -> Resolved:
    """The parallel node around a node that has no checkpoint of its own."""
    parallel = interior.get(node)
    if parallel is None:
        raise NotFoundError(_nothing(node, found), hint=hint)
    inside = _line(f"node '{node}' is inside parallel '{parallel}'")
    named = [entry for entry in reversed(found) if entry.node == parallel]
    if not named:
        raise NotFoundError(f"{inside}; no checkpoint found for '{_line(parallel)}'", hint=hint)
    missing = f"{inside}; no visit {visit} found for '{parallel}'"
    return Resolved(_visit_of(parallel, visit, named, missing, hint), inside)


def _nothing(node: str, found: Sequence[Entry]) -> str:
    # Imported here: 4 ms that only those pay who mistype.
    import difflib

    known = list(dict.fromkeys(entry.node for entry in found if entry.node is not None))
    near = difflib.get_close_matches(node, known, n=1)
    text = f"no checkpoint found for node '{_line(node)}'"
    return f"{text}; did you mean '{_line(near[0])}'?" if near else text


def _line(text: str) -> str:
    """Text without what would begin another line; the rest is made harmless where it is printed."""
    return " ".join(text.splitlines()) if "\n" in text else text
