"""Commits that somebody made, amended or rebased on a run branch: each is made a checkpoint.

While a process drives the run nothing is written here: the driver does it before its next snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from git_fabro import adoption, handmade, homes, lease, localizing, opening, reading
from git_fabro.checkpoint import layout, message
from git_fabro.checkpoint.model import Move, Oid, RunId
from git_fabro.doors import Doors, Tip
from git_fabro.errors import LeasedError
from git_fabro.git import notes
from git_fabro.opening import Session
from git_fabro.rundir import RunDirectory

Numbered = tuple[Oid, int]  # a commit, and its ordinal


def record(doors: Doors, run: RunId) -> tuple[Oid, ...]:
    """Makes checkpoints of the commits by hand above the last one; which, the oldest first.

    Nothing is written while another process holds the run, or if it is no run of ours.

    Raises:
        RecordError: what is stored does not parse.
        GitError: the repository refuses.
    """
    localizing.make_local(doors, run, fetches=False)
    tips = reading.tips_of(doors, run)
    if tips.meta_tip is None or tips.run_tip is None or not _is_ours(doors, tips.meta_tip):
        return ()
    course = reading.course_of(doors, tips)
    found = [(oid, course.ordinal + at) for at, oid in enumerate(course.unrecorded, 1)]
    return _record(doors, tips, found[-handmade.MOST :])


def remap(doors: Doors, run: RunId, pairs: Sequence[tuple[Oid, Oid]]) -> tuple[Oid, ...]:
    """Makes checkpoints of commits that took the place of others; which, the oldest first.

    What a commit says of itself goes on to count; one that a meta commit had named, or that lost
    what it said, is named again. Notes go along, and the old tip is kept by an operation.

    Args:
        doors: The repository.
        run: The run whose branch they are on.
        pairs: Old and new commits, the oldest first.

    Raises:
        RecordError: what is stored does not parse.
        GitError: the repository refuses.
    """
    tips = reading.tips_of(doors, run)
    if tips.meta_tip is None or tips.run_tip is None or not _is_ours(doors, tips.meta_tip):
        return ()
    if lease.driver_of(doors.objects, tips.lease) is not None:
        return ()
    named = reading.ordinals_by_hand(doors, tips.meta_tip)
    found = []
    for old, new in pairs:
        ordinal = _ordinal(doors, named, old)
        if ordinal and new not in named and (len(pairs) == 1 or not _speaks(doors, new)):
            found.append((new, ordinal))
    made = _record(doors, tips, found)
    _keep(doors, run, tips, pairs)
    return made


def _is_ours(doors: Doors, meta: Oid) -> bool:
    return layout.TRAILER_SEQ in message.trailers_of(doors.objects.read_commit(meta).message)


def _ordinal(doors: Doors, named: dict[Oid, tuple[Oid, int]], old: Oid) -> int | None:
    """The place of a commit on the run branch as it was; None if it was no checkpoint."""
    if old in named:
        return named[old][1]
    if not doors.objects.exists(old):
        return None
    said = message.parse_checkpoint_message(doors.objects.read_commit(old).message)
    return said.ordinal if said is not None else None


def _speaks(doors: Doors, commit: Oid) -> bool:
    """Whether a commit names its meta commit itself."""
    said = message.parse_checkpoint_message(doors.objects.read_commit(commit).message)
    return said is not None


def _record(doors: Doors, tips: reading.Tips, found: Sequence[Numbered]) -> tuple[Oid, ...]:
    run, tip = tips.run, tips.run_tip
    if not found or tip is None or lease.driver_of(doors.objects, tips.lease) is not None:
        return ()
    home = homes.home(doors.repository, doors.repository.top, os.environ)
    directory = RunDirectory.of(home, run)
    try:
        log, _ = opening.take(
            doors, run, directory, Session.of_moment(doors, os.environ), by_hand=True
        )
    except LeasedError:
        return ()
    at = Tip(branch=None, ref=layout.run_ref(run), oid=tip, exists=True)
    try:
        adoption.record_by_hand(log, at, found)
    except BaseException:
        log.give_up()
        raise
    log.close()
    return tuple(oid for oid, _ in found)


def _keep(doors: Doors, run: RunId, tips: reading.Tips, pairs: Sequence[tuple[Oid, Oid]]) -> None:
    """The old tip stays reachable, and what was noted on a commit is noted on the one after it."""
    objects, refs = doors.objects, doors.refs
    assert tips.meta_tip is not None
    by = objects.read_commit(tips.meta_tip).author
    when = int(datetime.now(UTC).timestamp())
    for old, new in pairs:
        if new == tips.run_tip and objects.exists(old):
            doors.keep_left(f"rewrite {run}", Move(layout.run_ref(run), old, new), by, when)
    texts = {new: notes.read_note(objects, refs, old) for old, new in pairs if _speaks(doors, new)}
    doors.annotate({new: text for new, text in texts.items() if text is not None}, by, when)
