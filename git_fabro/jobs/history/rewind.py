"""Rewinding a run: its refs to an earlier checkpoint, its work tree to that checkpoint's files.

What is to happen was planned first (``plan``). What the work tree held is part of the operation,
so that nothing a person made is lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from git_fabro import adoption, journal, lease, opening, operations, reading, restoring
from git_fabro.checkpoint.model import Move, Oid
from git_fabro.doors import Doors, Tip, WorkTree, fresh_ulid
from git_fabro.errors import ConflictError
from git_fabro.git import worktree
from git_fabro.git.objects import Content
from git_fabro.jobs.history.plan import Place, Plan, Target, refuse_applied
from git_fabro.operations import Operation, WorkTreeChange
from git_fabro.restoring import Restore
from git_fabro.store import RunLog
from git_fabro.workflow import engine
from git_fabro.workflow.records import LeaseReleased, LeaseTaken, Record, RunRewound
from git_fabro.workflow.state import Json

# Who held the run for a moment: not worth a meta commit on the history that is left.
_PASSING = (LeaseTaken, LeaseReleased, RunRewound)
_GLOB = re.compile(r"([*?\[\]\\])")


def rewind(place: Place, planned: Plan) -> Operation:
    """Do what was planned, as one operation.

    Raises:
        LeasedError: another process took the run meanwhile.
        ConflictError: refs or files are not as they were planned on.
        GitError: git cannot write a file; the operation stands, and the next command completes it.
    """
    if planned.is_fabros:
        return _move_only(place, planned)
    log, seen = opening.take(place.doors, place.run, place.directory, place.session())
    with contextlib.ExitStack() as restored:
        try:
            _seal_what_is_new(place, planned, log, seen)
            operation = _operation(log, planned)
            if planned.work is not None and operation.work_tree is not None:
                restored.enter_context(_begun(place, planned, planned.work, operation))
            _move(log, planned, operation)
        except BaseException:
            log.give_up()
            raise
        log.close()
        if planned.work is not None:
            put_files(planned.work, planned, place.doors, log.clock().timestamp())
    return operation


def _move_only(place: Place, planned: Plan) -> Operation:
    """Refs and operation log, as nobody can hold a run that Fabro made, nor add a record to it."""
    command = f"rewind {place.run} @{planned.target.ordinal}"
    operation = Operation(id=fresh_ulid(), command=command, moves=planned.moves)
    objects, refs, when = place.doors.objects, place.doors.refs, int(datetime.now(UTC).timestamp())
    operations.record(objects, refs, operation, by=operations.WHO, when=when, guard=planned.moves)
    return operation


def _seal_what_is_new(place: Place, planned: Plan, log: RunLog, seen: reading.View) -> None:
    """What is in no meta commit yet, into one: the history that is left has it too."""
    refuse_applied(seen.state, place.run)
    tip = Tip(branch=None, ref=planned.moves[0].ref, oid=Oid(log.run_tip or ""), exists=True)
    adoption.adopt_onto(log, tip)
    if log.run_tip != planned.moves[0].old:
        raise ConflictError(f"the run has moved on: {place.run}", hint="git fabro rewind -n")
    if any(not isinstance(entry.record.event, _PASSING) for entry in seen.counted):
        log.seal("records")


def _operation(log: RunLog, planned: Plan) -> Operation:
    """The entry of the operation log, with the work tree as it stands saved."""
    assert log.meta_tip is not None
    assert planned.target.meta_commit is not None
    run, meta = planned.moves
    return Operation(
        id=fresh_ulid(),
        command=f"rewind {log.run} @{planned.target.ordinal}",
        moves=(run, Move(meta.ref, log.meta_tip, planned.target.meta_commit)),
        work_tree=_work_tree_change(log, planned),
    )


def _begun(
    place: Place, planned: Plan, work: WorkTree, operation: Operation
) -> AbstractContextManager[None]:
    assert operation.work_tree is not None
    assert operation.work_tree.before is not None
    restore = Restore(
        operation=operation.id,
        run=place.run,
        path=work.path,
        before=operation.work_tree.before,
        after=planned.target.run_commit,
        keep=planned.keep,
        excludes=planned.excludes,
    )
    return restoring.begun(place.doors.repository, work.view, restore)


def _move(log: RunLog, planned: Plan, operation: Operation) -> None:
    """Both refs, the lease and the operation log in one transaction; then the record of it."""
    assert log.doors is not None
    assert log.lease is not None
    doors, when = log.doors, log.when()
    nobody = lease.commit_for(doors.objects, None, log.lease, by=log.identity, when=when)
    guard = (lease.move_to(log.run, log.lease, nobody), *operation.moves)
    operations.record(doors.objects, doors.refs, operation, by=log.identity, when=when, guard=guard)
    left: dict[str, Json] = {
        "seq": log.state.seq,
        "git_commit_sha": operation.moves[0].old,
        "meta_commit_sha": log.meta_tip,
    }
    log.journal.set_aside(f"journal.{operation.id}.stale")
    _note(log, planned.target, left, operation.id)


def _work_tree_change(log: RunLog, planned: Plan) -> WorkTreeChange | None:
    if planned.work is None:
        return None
    assert log.doors is not None
    before, tree = log.doors.save_work_tree(planned.work, log.identity, log.when())
    if tree != planned.found:
        raise ConflictError(
            f"the work tree has changed meanwhile: {planned.work.path}",
            hint=f"git fabro rewind -n {log.run} @{planned.target.ordinal}",
        )
    return WorkTreeChange(name=f"run {log.run}", before=before, after=planned.target.run_commit)


def _note(log: RunLog, target: Target, left: dict[str, Json], operation: str) -> None:
    """The first record of the new chain; it reaches Git with the next meta commit."""
    assert log.doors is not None
    assert target.meta_commit is not None
    state = reading.state_at(log.doors, target.meta_commit)
    event = RunRewound(
        ordinal=target.ordinal,
        git_commit_sha=target.run_commit,
        meta_commit_sha=target.meta_commit,
        left=left,
        operation=operation,
    )
    at = max(engine.stamp(log.clock()), state.timestamp)
    record = Record(seq=state.seq + 1, at=at, event=event)
    log.journal.append((journal.Entry(record=record, on=target.run_commit),), sync=True)


def put_files(work: WorkTree, planned: Plan, doors: Doors, now_s: float) -> None:
    """The files of the target into the work tree; what no checkpoint knows is not touched.

    Raises:
        ConflictError: the work tree is not what it should be afterwards.
    """
    # What is staged, git would remove with the rest; how it was staged is in the operation.
    doors.untrack(work, planned.keep)
    kept = [_GLOB.sub(r"\\\1", os.fsdecode(path)) for path in planned.keep]
    worktree.reset_work_tree(
        work.view,
        planned.target.run_commit,
        branch=work.tip.ref.removeprefix("refs/heads/"),
        excludes=(*planned.excludes, *kept),
        now_s=now_s,
    )
    tree, _ = doors.snapshot(work)
    if tree != _expected(doors, planned):
        raise ConflictError(
            f"the work tree is not as the checkpoint has it: {work.path}",
            hint=f"git -C {shlex.quote(str(work.path))} status",
        )


def _expected(doors: Doors, planned: Plan) -> Oid:
    """The tree of the target, with the files that stay."""
    assert planned.found is not None
    kept: dict[str, Content] = {
        os.fsdecode(path): doors.objects.entry_at(planned.found, path) for path in planned.keep
    }
    return doors.objects.tree_from(kept, doors.objects.tree_of(planned.target.run_commit))
