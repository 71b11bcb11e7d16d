"""Notes of runs, to a remote and from one: what the other side has noted stays as it is there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime

from git_fabro import course
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, parse_oid, zero
from git_fabro.course import Tips
from git_fabro.doors import Doors
from git_fabro.git import notes

#: So many commits of a run are looked at for notes.
_MOST = 100_000


def to_send(
    doors: Doors, runs: Iterable[Tips], ours: Oid | None, theirs: Oid | None
) -> Move | None:
    """The move of a remote's notes to themselves with ours on these runs; None: it has them all.

    Args:
        doors: The repository; it has the objects of ``theirs``.
        runs: Down from which tips notes are sent; a run without metadata is passed over.
        ours: Our notes; None: there are none.
        theirs: The remote's notes; None: there are none.

    Raises:
        GitError: git cannot list commits.
    """
    if ours is None:
        return None
    named: list[Oid] = []
    by = None
    for tips in runs:
        if tips.meta_tip is not None:
            named += _noted_objects(doors, tips.run_tip, tips.meta_tip)
            by = doors.objects.read_commit(tips.meta_tip).author
    if by is None:
        return None
    made = notes.carried(doors.objects, ours, theirs, named, by=by, when=_now())
    return None if made is None else Move(layout.NOTES_REF, theirs or zero(made), made)


def received(doors: Doors, theirs: Oid) -> Move | None:
    """The move of our notes to themselves with a remote's on what has none here; None: no news."""
    objects, ours = doors.objects, doors.refs.read(layout.NOTES_REF)
    if ours is None or (ours != theirs and objects.is_ancestor(ours, theirs)):
        return Move(layout.NOTES_REF, ours or zero(theirs), theirs)
    new = notes.notes_at(objects, theirs).keys() - notes.notes_at(objects, ours).keys()
    by = objects.read_commit(theirs).author
    made = notes.carried(objects, theirs, ours, new, by=by, when=_now())
    return None if made is None else Move(layout.NOTES_REF, ours, made)


def _noted_objects(doors: Doors, run_tip: Oid | None, meta: Oid) -> list[Oid]:
    """What of a run can have notes: its meta commits, and the commits above its base."""
    objects, repository = doors.objects, doors.repository
    listed = list(objects.history(meta, limit=_MOST))
    if run_tip is None or repository.git is None:
        return listed
    base = course.base_of(doors, meta)
    below = ["--not", base] if base is not None and objects.exists(base) else []
    args = ["rev-list", f"--max-count={_MOST}", run_tip, *below]
    printed = os.fsdecode(repository.git.run(args, git_dir=repository.git_dir))
    return [*listed, *(parse_oid(line) for line in printed.splitlines())]


def _now() -> int:
    return int(datetime.now(UTC).timestamp())
