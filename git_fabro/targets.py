"""A timeline with the snapshots between its checkpoints, and what a person means by a target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from git_fabro import branches
from git_fabro.checkpoint import timeline
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Entry
from git_fabro.errors import RecordError
from git_fabro.git import walks
from git_fabro.place import History, Place


def places(history: History) -> Iterator[Place]:
    """The places, newest first, each below the snapshots that were taken on it.

    Snapshots that stand on no commit of the timeline come last.
    """
    taken = _snapshots(history)
    if not taken:
        yield from history.places()
        return
    for place in history.places():
        if place.step is not None:
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


def before(history: History, place: Place) -> Place | None:
    """The checkpoint before a place; None before the first one, and of a snapshot."""
    found = iter(history.places())
    for one in found:
        if one.entry.name == place.entry.name:
            return next(found, None)
    return None
