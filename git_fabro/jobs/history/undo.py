"""Taking operations back, and back again: refs, work tree and index as they were before.

The log is the repository's. An operation is undone by another one that names it; undoing that one
is a redo. Whatever is moved away from stays reachable from the log, so nothing is ever lost by it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import lease, operations, restoring
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, RunId, zero
from git_fabro.doors import Doors, WorkTree, fresh_ulid
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.git import worktree
from git_fabro.jobs.history import ready
from git_fabro.jobs.history.plan import Place, work_tree_of
from git_fabro.operations import Entry, Operation, WorkTreeChange
from git_fabro.restoring import Restore
from git_fabro.rundir import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """An entry of the log as it counts now: ``undone`` is whether a later one took it back."""

    entry: Entry
    undone: bool

    @property
    def operation(self) -> Operation:
        return self.entry.operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What was taken back, and what is to be said about it."""

    operation: Operation
    said: tuple[str, ...] = ()


def logged(doors: Doors) -> list[Logged]:
    """The operation log, newest first."""
    found = list(operations.entries(doors.objects, doors.refs))
    undone: set[str] = set()
    rows: list[Logged] = []
    # From the newest on: an entry that is itself taken back takes nothing back.
    for entry in found:
        is_undone = entry.operation.id in undone
        if entry.operation.undoes is not None and not is_undone:
            undone.add(entry.operation.undoes)
        rows.append(Logged(entry=entry, undone=is_undone))
    return rows


def undo(
    doors: Doors, home: Path, environment: Mapping[str, str], which: str | None = None
) -> Taken:
    """Take back the last operation, or another one that no later one stands upon.

    Raises:
        NotFoundError: there is nothing to undo, or no such operation.
        RequestError: later operations moved the same refs; they are named.
        LeasedError: a run that it touches is being driven.
    """
    rows = logged(doors)
    undos = _undos(rows)
    # The last step may have been a redo: taking that back gives what was there just before it.
    able = [row for row in rows if row.operation.id not in undos and not row.undone]
    if which is None:
        if not able:
            raise NothingError("nothing to undo")
        return _take_back(doors, home, environment, able[0].operation)
    found = [row for row in rows if row.operation.id.startswith(which.upper())]
    if len(found) != 1:
        raise NotFoundError(f"no such operation: {which}", hint="git fabro op log")
    _refuse_covered(found[0], rows)
    return _take_back(doors, home, environment, found[0].operation)


class NothingError(NotFoundError):
    """There is no operation to take back."""


def _refuse_covered(row: Logged, rows: Sequence[Logged]) -> None:
    if row.undone:
        raise RequestError(f"already undone: {row.operation.id}", hint="git fabro op log")
    touched = _touched(row.operation)
    for later in rows[: rows.index(row)]:
        if (
            not later.undone
            and later.operation.undoes is None
            and touched & _touched(later.operation)
        ):
            raise RequestError(
                f"a later operation moved the same: {later.operation.command}",
                hint=f"git fabro undo {later.operation.id}",
            )


def _touched(operation: Operation) -> set[str]:
    names = {move.ref for move in operation.moves}
    return names | ({operation.work_tree.name} if operation.work_tree is not None else set())


def redo(doors: Doors, home: Path, environment: Mapping[str, str]) -> Taken:
    """Take back the last undo.

    Raises:
        NothingError: the last operation is no undo.
        LeasedError: a run that it touches is being driven.
    """
    rows = logged(doors)
    undos = _undos(rows)
    for row in (row for row in rows if not row.undone):
        if row.operation.undoes is None:
            break
        if row.operation.id in undos:
            return _take_back(doors, home, environment, row.operation)
    raise NothingError("nothing to redo")


def _undos(rows: Sequence[Logged]) -> set[str]:
    """The entries that take back something other than an undo."""
    undos: set[str] = set()
    for row in reversed(rows):
        if row.operation.undoes is not None and row.operation.undoes not in undos:
            undos.add(row.operation.id)
    return undos


def _take_back(
    doors: Doors, home: Path, environment: Mapping[str, str], operation: Operation
) -> Taken:
    moves, said = _reversed(doors, operation)
    work: WorkTree | None = None
    change: WorkTreeChange | None = None
    excludes: tuple[str, ...] = ()
    when = int(datetime.now(UTC).timestamp())
    if operation.work_tree is not None and operation.work_tree.before is not None:
        work, excludes = _work_tree(doors, home, environment, operation.work_tree.name)
        if work is None:
            said.append("the work tree is gone: only refs were moved")
        else:
            before, found = doors.save_work_tree(work, operations.WHO, when)
            _refuse_unready(doors, work, found, operation.work_tree.before)
            change = WorkTreeChange(
                name=operation.work_tree.name, before=before, after=operation.work_tree.before
            )
    word = "redo" if operation.command.startswith("undo ") else "undo"
    command = f"{word} {operation.command.removeprefix('undo ').removeprefix('redo ')}"
    entry = Operation(
        id=fresh_ulid(), command=command, moves=tuple(moves), work_tree=change, undoes=operation.id
    )
    guard, by = (*_leases(doors, moves, when), *moves), operations.WHO
    with contextlib.ExitStack() as restored:
        if work is not None and change is not None:
            restored.enter_context(_begun(doors, work, change, entry, excludes))
        operations.record(doors.objects, doors.refs, entry, by=by, when=when, guard=guard)
        if work is not None and change is not None and change.after is not None:
            _put_back(doors, work, change.after, excludes)
    return Taken(operation=operation, said=tuple(said))


def _refuse_unready(doors: Doors, work: WorkTree, found: Oid, state: Oid) -> None:
    """Nothing, if all files that a state has, staged ones too, can be written."""
    objects, hint = doors.objects, "git fsck"
    changes = objects.diff(found, state)
    ready.refuse_colliding(
        work, objects, changes, state, name="that state", hint="git fabro op log"
    )
    ready.refuse_missing(objects, changes, hint=hint)
    for tree in doors.index_trees(state):
        ready.refuse_missing(objects, objects.diff(state, tree), hint=hint)


def _begun(
    doors: Doors,
    work: WorkTree,
    change: WorkTreeChange,
    operation: Operation,
    excludes: tuple[str, ...],
) -> AbstractContextManager[None]:
    assert change.before is not None
    assert change.after is not None
    restore = Restore(
        operation=operation.id,
        run=RunId(change.name.removeprefix("run ")),
        path=work.path,
        before=change.before,
        after=change.after,
        excludes=excludes,
    )
    return restoring.begun(doors.repository, work.view, restore)


def _reversed(doors: Doors, operation: Operation) -> tuple[list[Move], list[str]]:
    """The moves that take an operation back from where its refs stand now."""
    moves, said = [], []
    for move in reversed(operation.moves):
        now = doors.refs.read(move.ref) or zero(move.new)
        if now != move.new:
            said.append(f"{move.ref} had moved on; what came since is kept: {now[:12]}")
        if now != move.old:
            moves.append(Move(move.ref, now, move.old))
    return moves, said


def _leases(doors: Doors, moves: Sequence[Move], when: int) -> list[Move]:
    """The lines for the leases of the runs whose refs move.

    Raises:
        LeasedError: one is being driven.
    """
    me, found = lease.me(fresh_ulid()), []
    for run in dict.fromkeys(run for move in moves if (run := layout.run_of(move.ref)) is not None):
        if doors.refs.read(layout.lease_ref(run)) is None:
            continue
        token = lease.check_free(doors.refs, doors.objects, run, me)
        nobody = lease.commit_for(doors.objects, None, token, by=operations.WHO, when=when)
        found.append(lease.move_to(run, token, nobody))
    return found


def _work_tree(
    doors: Doors, home: Path, environment: Mapping[str, str], name: str
) -> tuple[WorkTree | None, tuple[str, ...]]:
    run = RunId(name.removeprefix("run "))
    place = Place(
        doors=doors, run=run, directory=RunDirectory.of(home, run), environment=environment
    )
    return work_tree_of(place)


def _put_back(doors: Doors, work: WorkTree, state: Oid, excludes: tuple[str, ...]) -> None:
    """Files and index as a state has them."""
    now_s = datetime.now(UTC).timestamp()
    branch = work.tip.ref.removeprefix("refs/heads/")
    worktree.reset_work_tree(work.view, state, branch=branch, excludes=excludes, now_s=now_s)
    doors.restore_index(work, state)
