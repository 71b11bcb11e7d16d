"""Rewinding a run: its refs to an earlier checkpoint, its work tree to that checkpoint's files.

What is to happen is planned first, and can be looked at. What the work tree held is part of the
operation, so that nothing a person made is lost; files that no checkpoint of the run knows stay.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import adoption, journal, lease, opening, operations, reading, restoring
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Move, Oid, RunId
from git_fabro.checkpoint.secrets import Mask, secret_values
from git_fabro.doors import Doors, Tip, WorkTree, fresh_ulid, shown_path
from git_fabro.errors import ConflictError, NotFoundError, RequestError
from git_fabro.git import worktree
from git_fabro.git.encoding import TREE_MODE
from git_fabro.git.objects import Content
from git_fabro.git.snapshot.choose import choose_engine, rules_of
from git_fabro.opening import Session
from git_fabro.operations import Operation, WorkTreeChange
from git_fabro.restoring import Restore
from git_fabro.rundir import RunDirectory
from git_fabro.store import RunLog
from git_fabro.workflow import engine
from git_fabro.workflow.records import LeaseReleased, LeaseTaken, Record, RunRewound
from git_fabro.workflow.state import APPLIED, Json, RunState

#: Why a file stays.
UNKNOWN = "no checkpoint of this run knows it"
# Who held the run for a moment: not worth a meta commit on the history that is left.
_PASSING = (LeaseTaken, LeaseReleased, RunRewound)
_GLOB = re.compile(r"([*?\[\]\\])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The checkpoint to go back to."""

    ordinal: int
    run_commit: Oid
    meta_commit: Oid


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run is: its repository, its run directory, and the caller's environment."""

    doors: Doors
    run: RunId
    directory: RunDirectory
    environment: Mapping[str, str]

    def session(self) -> Session:
        """This process, for a moment, as the holder of the run."""
        _, values = secret_values(self.environment)
        patterns = self.doors.repository.config_all("fabro.secrets.pattern")
        return Session(
            clock=lambda: datetime.now(UTC),
            mask=Mask.of(values, patterns),
            holder=lease.me(fresh_ulid()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a rewind does: refs; paths that are written, deleted, and kept with why.

    ``work`` is None where the run has no work tree. ``unsaved`` are the paths whose content is in
    no commit and would be overwritten or deleted.
    """

    target: Target
    moves: tuple[Move, ...]
    work: WorkTree | None = None
    excludes: tuple[str, ...] = ()
    found: Oid | None = None  # the tree of the work tree as it stands
    write: tuple[bytes, ...] = ()
    delete: tuple[bytes, ...] = ()
    keep: tuple[bytes, ...] = ()
    unsaved: tuple[bytes, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """``{"hash", "refs": [{ref, old, new}], "write": [], "delete": [], "keep": [...]}``."""
        body: dict[str, Json] = {
            "refs": [{"ref": move.ref, "old": move.old, "new": move.new} for move in self.moves],
            "write": [shown_path(path) for path in self.write],
            "delete": [shown_path(path) for path in self.delete],
            "keep": [{"path": shown_path(path), "why": UNKNOWN} for path in self.keep],
        }
        judged = codec.document({**body, "found": self.found})
        return {"hash": hashlib.sha256(judged).hexdigest(), **body}

    @property
    def hash(self) -> str:
        return str(self.to_json()["hash"])


def plan(place: Place, target: Target) -> Plan:
    """What a rewind to this checkpoint would do; nothing is changed.

    Raises:
        LeasedError: the run is being driven.
        RequestError: the run is closed, or its branch is checked out elsewhere.
        NotFoundError: the run has no branch here.
    """
    doors, run = place.doors, place.run
    tips = reading.tips_of(doors, run)
    if tips.run_tip is None or tips.meta_tip is None:
        raise NotFoundError(f"the run has no branch here: {run}", hint="git fabro list -a")
    if tips.lease is not None:
        lease.check_free(doors.refs, doors.objects, run, place.session().holder)
    _refuse_applied(reading.state_at(doors, tips.meta_tip), run)
    moves = (
        Move(layout.run_ref(run), tips.run_tip, target.run_commit),
        Move(layout.meta_ref(run, tips.namespace), tips.meta_tip, target.meta_commit),
    )
    excludes = excludes_of(doors, tips.meta_tip)
    work = own_work_tree(place, tips.run_tip, excludes)
    begun = Plan(target=target, moves=moves, work=work, excludes=excludes)
    return begun if work is None else _plan_files(doors, work, begun)


def _refuse_applied(state: RunState, run: RunId) -> None:
    if state.status == APPLIED:
        raise RequestError(
            f"the run is applied, and closed to rewind: {run}", hint=f"git fabro fork {run}"
        )


def own_work_tree(place: Place, tip: Oid, excludes: tuple[str, ...]) -> WorkTree | None:
    """The run's own work tree, None where it has none.

    Raises:
        RequestError: the run branch is checked out in another one.
    """
    doors, run, path = place.doors, place.run, place.directory.worktree
    if doors.repository.git is None:
        return None
    ref = layout.run_ref(run)
    for other in worktree.list_work_trees(doors.repository):
        if other.branch == ref and other.is_there and not _same(other.path, path):
            raise RequestError(
                f"the run branch is checked out in another work tree: {other.path}",
                hint=f"git -C {shlex.quote(str(other.path))} switch --detach",
            )
    try:
        view = worktree.at_work_tree(doors.repository, path)
    except NotFoundError:
        return None
    index = view.git_dir / "index"
    chosen = choose_engine(view, doors.objects, index, rules_of(view, excludes))
    at = Tip(branch=None, ref=ref, oid=tip, exists=True)
    return WorkTree(path=path, tip=at, index=index, engine=chosen, repository=view)


def work_tree_of(place: Place) -> tuple[WorkTree | None, tuple[str, ...]]:
    """The run's own work tree as it stands, and the run's exclude patterns; raises as above."""
    tips = reading.tips_of(place.doors, place.run)
    if tips.run_tip is None or tips.meta_tip is None:
        return None, ()
    excludes = excludes_of(place.doors, tips.meta_tip)
    return own_work_tree(place, tips.run_tip, excludes), excludes


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def excludes_of(doors: Doors, meta: Oid) -> tuple[str, ...]:
    """The exclude patterns that a run was made with."""
    data = doors.objects.blob_at(meta, layout.RUN_JSON) or b"{}"
    value: Json = codec.parse_json(data, layout.RUN_JSON)
    for key in ("settings", "checkpoint", "exclude_globs"):
        value = value.get(key) if isinstance(value, dict) else None
    return tuple(str(glob) for glob in value) if isinstance(value, list) else ()


def _plan_files(doors: Doors, work: WorkTree, begun: Plan) -> Plan:
    found, _ = doors.snapshot(work)
    objects, target = doors.objects, begun.target.run_commit
    changes = objects.diff(found, target)
    extra = [change.path for change in changes if change.new is None]
    known = _known(doors, extra, tip=work.tip.oid, stop=target)
    keep = tuple(path for path in extra if path not in known)
    _refuse_covered(doors, work, target, keep, [c.path for c in changes if c.old is None])
    write = tuple(change.path for change in changes if change.new is not None)
    delete = tuple(path for path in extra if path in known)
    unsaved = {change.path for change in objects.diff(work.tip.oid, found)}
    return replace(
        begun,
        found=found,
        write=write,
        delete=delete,
        keep=keep,
        unsaved=tuple(path for path in (*write, *delete) if path in unsaved),
    )


def _refuse_covered(
    doors: Doors, work: WorkTree, target: Oid, keep: tuple[bytes, ...], new: list[bytes]
) -> None:
    """Nothing, unless what is in no commit lies where the checkpoint has something.

    Raises:
        RequestError: an ignored file, or one that no checkpoint knows; it is named.
    """
    top = os.fsencode(work.path)
    ignored = (path for path in new if os.path.lexists(os.path.join(top, path)))
    covered = (path for path in keep if _lies_in_file(doors, target, path))
    for path in (*ignored, *covered):
        raise RequestError(
            f"a file that is in no commit is in the way: {shown_path(path)}",
            hint=f"move it out of {work.path}",
        )


def _lies_in_file(doors: Doors, target: Oid, path: bytes) -> bool:
    """Whether the target has a file where this path has a folder, or a folder in its place."""
    if doors.objects.entry_at(target, path) is not None:
        return True
    parent = path.rpartition(b"/")[0]
    while parent:
        entry = doors.objects.entry_at(target, parent)
        if entry is not None:
            return entry.mode != TREE_MODE
        parent = parent.rpartition(b"/")[0]
    return False


def _known(doors: Doors, paths: list[bytes], *, tip: Oid, stop: Oid) -> set[bytes]:
    """Those of the paths that a checkpoint after the target holds; the last one is asked first."""
    known: set[bytes] = set()
    unknown = list(paths)
    for commit in doors.objects.history(tip, stop=stop):
        if not unknown:
            break
        held = {path for path in unknown if _has_file(doors, commit, path)}
        known |= held
        unknown = [path for path in unknown if path not in held]
    return known


def _has_file(doors: Doors, commit: Oid, path: bytes) -> bool:
    entry = doors.objects.entry_at(commit, path)
    return entry is not None and entry.mode != TREE_MODE


def rewind(place: Place, planned: Plan) -> str:
    """Do what was planned, as one operation; its id.

    Raises:
        LeasedError: another process took the run meanwhile.
        ConflictError: refs or files are not as they were planned on.
        GitError: git cannot write a file; the operation stands, and the next command completes it.
    """
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
    return operation.id


def _seal_what_is_new(place: Place, planned: Plan, log: RunLog, seen: reading.View) -> None:
    """What is in no meta commit yet, into one: the history that is left has it too."""
    _refuse_applied(seen.state, place.run)
    tip = Tip(branch=None, ref=planned.moves[0].ref, oid=Oid(log.run_tip or ""), exists=True)
    adoption.adopt_onto(log, tip)
    if log.run_tip != planned.moves[0].old:
        raise ConflictError(f"the run has moved on: {place.run}", hint="git fabro rewind -n")
    if any(not isinstance(entry.record.event, _PASSING) for entry in seen.counted):
        log.seal("records")


def _operation(log: RunLog, planned: Plan) -> Operation:
    """The entry of the operation log, with the work tree as it stands saved."""
    assert log.meta_tip is not None
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
