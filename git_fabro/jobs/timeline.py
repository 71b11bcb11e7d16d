"""The checkpoints of a run as rows, newest first, with the snapshots between them; and targets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

from git_fabro import branches
from git_fabro.checkpoint import timeline
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Entry, Kind, Link
from git_fabro.errors import RecordError
from git_fabro.git import walks
from git_fabro.place import History, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint as ``log --json`` and ``show --json`` print it (git-fabro-log(1)).

    ``kind`` is ``node``, ``commit`` for one made by hand (node, visit and status are None), or
    ``snapshot`` (``ordinal`` is None, ``checkpoint_id`` is set). ``at`` is RFC 3339; the commits
    are named in full; ``link`` is as in ``Entry``.
    """

    ordinal: int | None
    kind: Kind
    node: str | None
    visit: int | None
    status: str | None
    at: str
    duration_ms: int | None
    files_changed: int | None
    run_commit: Oid | None
    meta_commit: Oid | None
    named_meta_commit: Oid | None
    link: Link
    checkpoint_id: str | None = None

    def to_json(self) -> dict[str, object]:
        value = asdict(self)
        if self.checkpoint_id is None:
            del value["checkpoint_id"]
        return value


def checkpoint(history: History, place: Place) -> Checkpoint:
    """A place with its time, its duration and how many files it changed."""
    entry, detail = place.entry, history.detail(place)
    return Checkpoint(
        ordinal=entry.ordinal,
        kind=entry.kind,
        node=entry.node,
        visit=entry.visit,
        status=entry.status,
        at="" if entry.when is None else stamp(entry.when),
        duration_ms=detail.duration_ms,
        files_changed=detail.files_changed,
        run_commit=entry.run_commit,
        meta_commit=entry.meta_commit,
        named_meta_commit=entry.named_meta_commit,
        link=entry.link,
        checkpoint_id=entry.checkpoint_id,
    )


def stamp(when: int) -> str:
    """A time in seconds since the epoch as records write it: RFC 3339, UTC, milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(when))


def places(history: History) -> Iterator[Place]:
    """The places, newest first, each below the snapshots that were taken on it.

    Snapshots that stand on no commit of the timeline come last.
    """
    taken = _snapshots(history)
    for place in history.places():
        if taken and place.step is not None:
            yield from taken.pop(place.step.oid, ())
        yield place
    for left in taken.values():
        yield from left


def _snapshots(history: History) -> dict[Oid, list[Place]]:
    """The snapshots of a run, newest first, by the commit that they stand on."""
    source = history.source
    found: dict[Oid, list[Place]] = {}
    for name, oid in reversed(list(branches.snapshots(source, history.branches.run).items())):
        try:
            step = walks.one_step(source.objects, oid)
        except RecordError as exc:
            history.problems.append(exc.message)
            continue
        entry = Entry(
            ordinal=None,
            kind="snapshot",
            node=None,
            visit=None,
            status=None,
            run_commit=oid,
            meta_commit=None,
            named_meta_commit=None,
            link="none",
            when=step.when,
            checkpoint_id=name,
        )
        found.setdefault(step.parent or oid, []).append(Place(entry, step, step.parent))
    return found


class Found(NamedTuple):
    """The place that a target names, and what is to be said about it; "" is nothing."""

    place: Place
    said: str


def find(history: History, target: str) -> Found:
    """The checkpoint or snapshot that a person means.

    Raises:
        NotFoundError: none is meant by it.
        RequestError: it is malformed, or names several.
    """
    seen: dict[str, Place] = {}

    def entries() -> Iterator[Entry]:
        for place in places(history):
            seen[place.entry.name] = place
            yield place.entry

    hint = f"git fabro log {history.branches.run}"
    resolved = timeline.resolve(target, entries(), history.interior, hint=hint)
    return Found(seen[resolved.entry.name], resolved.said)
