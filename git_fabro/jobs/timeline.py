"""The checkpoints of a run as rows for a table or a document."""

from __future__ import annotations

import time
from typing import NamedTuple

from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Kind, Link
from git_fabro.place import History, Place


class Checkpoint(NamedTuple):
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
        value = self._asdict()
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
