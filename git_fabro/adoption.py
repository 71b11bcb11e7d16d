"""Commits that somebody made by hand on a run's lines: each becomes a checkpoint of its own."""

from __future__ import annotations

from collections.abc import Sequence

from git_fabro import lease
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.message import notes_by_hand
from git_fabro.checkpoint.model import Move, Oid
from git_fabro.doors import Tip, WorkTree
from git_fabro.errors import ConflictError, FabroError, GitError
from git_fabro.store import RunLog
from git_fabro.workflow.records import CheckpointMade, LeaseReleased

_MOST = 1000


def adopt(log: RunLog, work: WorkTree) -> None:
    """Commits that somebody made on this line meanwhile become checkpoints of their own.

    A tip that does not descend from ours is taken as it is; an operation keeps the old one.

    If Git fails, the next checkpoint finds them again.

    Raises:
        LostLeaseError: another process holds the run now.
    """
    if log.doors is None:
        return
    with log.lock:
        now, tip = log.doors.tip_of(work), work.tip
        if now is None or now == tip.oid:
            return
        if tip.branch is None:
            adopt_onto(log, tip)
        elif log.doors.objects.is_ancestor(tip.oid, now):
            tip.oid = now


def adopt_onto(log: RunLog, tip: Tip) -> None:
    """The same for the run branch itself, whatever its work tree holds.

    Raises:
        LostLeaseError: another process holds the run now.
    """
    try:
        _adopt_all(log, tip)
    except (GitError, ConflictError) as exc:
        log.survive(exc, None)


def _adopt_all(log: RunLog, tip: Tip) -> None:
    assert log.doors is not None
    now = log.doors.refs.read(tip.ref)
    if now is None or now == tip.oid:
        return
    descends = log.doors.objects.is_ancestor(tip.oid, now)
    if not descends:
        left = Move(tip.ref, tip.oid, now)
        log.doors.keep_left(f"adopt {log.run}", left, log.identity, log.when())
    stop = tip.oid if descends else None
    made = list(log.doors.objects.history(now, stop=stop, limit=_MOST if descends else 1))
    for commit in reversed(made):
        _adopt_one(log, tip, commit, Move(tip.ref, now, now))


def record_by_hand(log: RunLog, tip: Tip, commits: Sequence[tuple[Oid, int]]) -> None:
    """Names commits on the run branch, each with its ordinal, and frees the lease with the last.

    Raises:
        ConflictError: a ref has moved, or another process holds the run.
        GitError: the repository refuses.
    """
    assert log.doors is not None
    with log.lock:
        now = log.doors.refs.read(tip.ref)
        for number, (commit, ordinal) in enumerate(commits, 1):
            parents = log.doors.objects.parents(commit)
            tip.oid, log.ordinal = parents[0] if parents else tip.oid, ordinal - 1
            standing = Move(tip.ref, now or tip.oid, now or tip.oid)
            _adopt_one(log, tip, commit, standing, frees=number == len(commits))
        log.write_derived(at_once=True)


def _adopt_one(log: RunLog, tip: Tip, commit: Oid, standing: Move, *, frees: bool = False) -> None:
    """A meta commit that names a commit made by hand: the link of that checkpoint."""
    assert log.doors is not None
    before = log.mark()
    patch = log.doors.patch(tip.oid, log.doors.objects.tree_of(commit), log.mask)
    ordinal = log.ordinal + 1
    made = CheckpointMade(
        git_commit_sha=commit,
        meta_commit_sha=None,
        ordinal=ordinal,
        diff_summary=patch.summary,
        cause="commit",
    )
    log.put(made)
    if frees:
        log.put(LeaseReleased(owner=log.holder.owner, lease=log.lease, reason="done"))
    try:
        meta = log.commit_meta(f"commit {commit[:12]}", commit=commit, ordinal=ordinal)
        ref = layout.meta_ref(log.run, log.namespace)
        nobody = _nobody(log) if frees else None
        log.move(standing, Move(ref, log.meta_tip or meta, meta), lease_to=nobody)
    except FabroError:
        log.back_to(before)
        raise
    log.stand_on(tip, commit, meta)
    log.add_notes(notes_by_hand(log.run, commit, meta))


def _nobody(log: RunLog) -> Oid:
    assert log.doors is not None
    objects = log.doors.objects
    return lease.commit_for(objects, None, log.lease, by=log.identity, when=log.when())
