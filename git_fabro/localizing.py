"""Local refs for a run that only a remote is known to have: then it can be gone on with here."""

from __future__ import annotations

import time

from git_fabro import branches, history, lease
from git_fabro.branches import Branches, Source
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, RunId, zero
from git_fabro.doors import Doors
from git_fabro.git import remote, transport


def make_local(doors: Doors, run: RunId, *, fetches: bool = True) -> bool:
    """Makes the refs of a run that are missing here, from what a remote had; whether any was.

    Run branch, metadata branch and, where there is none, a lease that nobody holds, in one
    transaction. A ref that is here is not moved. A run that Fabro made is read where it is.

    Args:
        doors: The repository.
        run: The run, by its whole id.
        fetches: Ask the remote where a tracking ref is missing, too.

    Raises:
        GitError: the remote cannot be reached.
        ConflictError: another process made one of the refs.
    """
    source = Source(doors.repository, doors.objects, doors.refs)
    found = branches.branches_of(source, run)
    if fetches and _may_be_elsewhere(source, found):
        _fetch(doors, run)
        found = branches.branches_of(source, run)
    sides = ((found.run_ref, found.run_tip), (found.meta_ref, found.meta_tip))
    made = [
        Move(layout.local_ref(ref), zero(tip), tip)
        for ref, tip in sides
        if ref is not None and tip is not None and layout.is_tracking(ref)
    ]
    if not made or not (found.run_ref and found.meta_ref) or not history.is_ours(source, found):
        return False
    held = (
        []
        if doors.refs.read(layout.lease_ref(run))
        else [lease.made_free(doors.objects, run, when=int(time.time()))]
    )
    doors.refs.move((*held, *made), message=f"fabro: {run}")
    return True


def _may_be_elsewhere(source: Source, found: Branches) -> bool:
    """Whether a branch of a run of ours is not here, and a remote may have it."""
    if not found.tips or (found.run_ref and found.meta_ref):
        return False
    if found.origin != branches.LOCAL or found.run_tip is None:
        return True
    return history.said_at(source, found.run_tip) is not None


def _fetch(doors: Doors, run: RunId) -> None:
    names = remote.names(doors.repository)
    if names:
        limit_s = transport.deadline_s(doors.repository)
        remote.fetch(doors.repository, names[0], run=run, timeout_s=limit_s)
