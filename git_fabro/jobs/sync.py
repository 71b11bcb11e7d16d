"""Bringing runs here and at a remote up to each other: forward only, and nothing is overwritten.

What each side has is fetched into tracking refs first. Then it is decided, run by run, what moves
here, what moves there, and what is left; only then does anything move.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from git_fabro import homes, lease, operations, restoring, sending, sharing, tombstones
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, RunId, zero
from git_fabro.course import Tips
from git_fabro.doors import Doors, fresh_ulid
from git_fabro.errors import ConflictError, FabroError, GitError
from git_fabro.git import advance, remote, worktree
from git_fabro.git.remote import Pushed
from git_fabro.operations import Operation, WorkTreeChange
from git_fabro.restoring import Restore
from git_fabro.rundir import RunDirectory

What = Literal["fetched", "pushed", "diverged", "kept", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """One ref: where it moved, or why it did not.

    ``fetched``: moved here; ``pushed``: moved there; ``diverged``: each side has what the other has
    not; ``kept``: it cannot move here now; ``refused``: the remote did not take it.
    """

    ref: str
    what: What
    old: Oid | None
    new: Oid
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a sync came to; refs that were the same on both sides are not listed."""

    remote: str
    refs: tuple[Synced, ...]

    @property
    def is_whole(self) -> bool:
        """Whether both sides have the same now."""
        return all(one.what in ("fetched", "pushed") for one in self.refs)


def sync(doors: Doors, name: str, *, run: RunId | None = None, dry_run: bool = False) -> Report:
    """Fetches, moves forward what can be, pushes what is ahead, and names what is left.

    Args:
        doors: The repository.
        name: The remote.
        run: Only this run; None: all.
        dry_run: Fetch only, and say what would move.

    Raises:
        GitError: the remote cannot be reached.
    """
    remote.fetch(doors.repository, name, run=run)
    sides = _Sides.read(doors, name)
    plans = [_decide(doors, one, sides) for one in sides.runs() if run is None or one == run]
    if any(plan.there for plan in plans) and _has_no_branch(doors, name, sides):
        plans = [plan.without_pushes() for plan in plans]
    if dry_run:
        rows = [row for plan in plans for row in plan.rows()]
        rows += _decide_notes(doors, sides, plans, rows).rows()
        return Report(remote=name, refs=tuple(rows))
    rows = [row for plan in plans for row in _fetch(doors, plan)]
    rows += _push(doors, name, [plan for plan in plans if plan.there])
    rows += _move_notes(doors, name, _decide_notes(doors, sides, plans, rows))
    return Report(remote=name, refs=tuple(rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """The refs of runs here, and those that the remote has, under the same names."""

    ours: Mapping[str, Oid]
    theirs: Mapping[str, Oid]
    gone: frozenset[RunId]

    @classmethod
    def read(cls, doors: Doors, name: str) -> _Sides:
        prefixes = (
            layout.META_PREFIX,
            layout.HIDDEN_META_PREFIX,
            layout.RUN_PREFIX,
            layout.SNAPSHOT_PREFIX,
            layout.PARALLEL_PREFIX,
        )
        refs = doors.refs
        ours = {ref: oid for one in prefixes for ref, oid in refs.list(one).items()}
        theirs = {
            one + ref.removeprefix(layout.tracking_ref(name, one)): oid
            for one in prefixes
            for ref, oid in refs.list(layout.tracking_ref(name, one)).items()
        }
        for ref in (layout.NOTES_REF, layout.PRUNED_REF):
            here, there = refs.read(ref), refs.read(layout.tracking_ref(name, ref))
            ours |= {ref: here} if here is not None else {}
            theirs |= {ref: there} if there is not None else {}
        tombs = [side[layout.PRUNED_REF] for side in (ours, theirs) if layout.PRUNED_REF in side]
        return cls(ours=ours, theirs=theirs, gone=tombstones.pruned(doors.objects, tombs))

    def runs(self) -> list[RunId]:
        """The runs that either side has, the oldest first; none that was pruned."""
        found = {layout.run_of(ref) for ref in (*self.ours, *self.theirs)}
        return sorted(run for run in found if run is not None and run not in self.gone)

    def of(self, run: RunId) -> list[str]:
        """The refs of a run on either side: its record first, then what rests on it."""
        branches = (layout.meta_ref(run), layout.meta_ref(run, "hidden"), layout.run_ref(run))
        below = (layout.snapshot_prefix(run), layout.parallel_prefix(run))
        known = sorted({*self.ours, *self.theirs})
        others = [ref for ref in known if ref.startswith(below) and _is_whole(run, ref)]
        return [ref for ref in branches if ref in self.ours or ref in self.theirs] + others


def _is_whole(run: RunId, ref: str) -> bool:
    """Whether a ref below those of a run is called as one; a remote may have others there."""
    prefix = layout.snapshot_prefix(run)
    return not ref.startswith(prefix) or layout.is_ulid(ref.removeprefix(prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    """What is to move here and there, and what is left."""

    here: tuple[Move, ...] = ()
    there: tuple[Move, ...] = ()
    left: tuple[Synced, ...] = ()

    def rows(self) -> Iterator[Synced]:
        yield from (_row(move, "fetched") for move in self.here)
        yield from (_row(move, "pushed") for move in self.there)
        yield from self.left


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan(_Moves):
    """The same, of one run."""

    run: RunId

    def without_pushes(self) -> _Plan:
        why = "there is no branch there yet, and a run's is not to be the first"
        kept = tuple(_row(move, "kept", why) for move in self.there)
        return replace(self, there=(), left=(*self.left, *kept))

    def tips(self, sides: _Sides) -> Tips:
        """Where the branches of the run stand on both sides once everything has moved."""
        at = {**sides.ours, **{move.ref: move.new for move in (*self.here, *self.there)}}
        heads, hidden = (at.get(layout.meta_ref(self.run, one)) for one in ("heads", "hidden"))
        return Tips(
            run=self.run,
            run_tip=at.get(layout.run_ref(self.run)),
            meta_tip=heads or hidden,
            lease=None,
            namespace="hidden" if hidden and not heads else "heads",
        )


def _row(move: Move, what: What, why: str = "") -> Synced:
    old = None if move.old == zero(move.old) else move.old
    return Synced(ref=move.ref, what=what, old=old, new=move.new, why=why)


def _decide(doors: Doors, run: RunId, sides: _Sides) -> _Plan:
    here, there, diverged = [], [], []
    for ref in sides.of(run):
        ours, theirs = sides.ours.get(ref), sides.theirs.get(ref)
        if ours is None:
            assert theirs is not None
            here.append(Move(ref, zero(theirs), theirs))
            continue
        standing = sending.standing(doors.objects, ours, theirs)
        if standing == "ahead":
            there.append(Move(ref, theirs or zero(ours), ours))
        elif standing == "behind":
            assert theirs is not None
            here.append(Move(ref, ours, theirs))
        elif standing != "same":
            assert theirs is not None
            diverged.append(Move(ref, ours, theirs))
    branches = [*here, *there, *diverged]
    both_ways = any(map(_is_branch, here)) and any(map(_is_branch, there))
    if both_ways or any(map(_is_branch, diverged)):
        # The two branches of a run go together, or not at all.
        why = "each side has what the other has not"
        return _Plan(run=run, left=tuple(_row(move, "diverged", why) for move in branches))
    left = tuple(_row(move, "diverged", "it is another one there") for move in diverged)
    why = _why_kept(doors, run, here) if any(map(_is_branch, here)) else ""
    if why:
        kept = tuple(_row(move, "kept", why) for move in here)
        return _Plan(run=run, there=tuple(there), left=(*left, *kept))
    return _Plan(run=run, here=tuple(here), there=tuple(there), left=left)


def _has_no_branch(doors: Doors, name: str, sides: _Sides) -> bool:
    """Whether what is pushed now would become the remote's default branch."""
    if any(ref.startswith(layout.HEADS) for ref in sides.theirs):
        return False
    return not remote.advertised(doors.repository, name, "refs/heads/*")


def _is_branch(move: Move) -> bool:
    return layout.run_of(move.ref) is not None


def _why_kept(doors: Doors, run: RunId, moves: Sequence[Move]) -> str:
    """Why the branches of a run cannot move here now; "" if they can."""
    holder = lease.driver_of(doors.objects, doors.refs.read(layout.lease_ref(run)))
    if holder is not None:
        return f"process {holder.pid} on {holder.host} drives it"
    if homes.has_journal(homes.home(doors.repository, doors.repository.top, os.environ), run):
        # After a rewind that was not pushed, too: what the remote has is then not simply newer.
        return "it has records here that are in no commit yet"
    move = _moved_branch(run, moves)
    for path in _checked_out(doors, run) if move is not None else ():
        assert move is not None
        if path != _own_work_tree(doors, run):
            return f"it is checked out in {path}"
        return advance.obstacle(path, move.old, move.new)
    return ""


def _moved_branch(run: RunId, moves: Sequence[Move]) -> Move | None:
    """The move of the run branch, if it is here already."""
    ref = layout.run_ref(run)
    return next((one for one in moves if one.ref == ref and one.old != zero(one.old)), None)


def _checked_out(doors: Doors, run: RunId) -> list[Path]:
    trees = worktree.list_work_trees(doors.repository)
    return [one.path for one in trees if one.branch == layout.run_ref(run) and one.is_there]


def _own_work_tree(doors: Doors, run: RunId) -> Path:
    home = homes.home(doors.repository, doors.repository.top, os.environ)
    return RunDirectory.of(home, run).worktree.resolve()


def _fetch(doors: Doors, plan: _Plan) -> Iterator[Synced]:
    """Moves what moves here, in one transaction that the lease stands in."""
    yield from plan.left
    if not plan.here:
        return
    try:
        _move_here(doors, plan)
    except (ConflictError, GitError) as exc:
        yield from (_row(move, "kept", exc.message) for move in plan.here)
        return
    yield from (_row(move, "fetched") for move in plan.here)


def _move_here(doors: Doors, plan: _Plan) -> None:
    """What was here and moves, is an operation; the files of the run's work tree go along.

    Raises:
        ConflictError: the refs have moved meanwhile, or somebody took the run.
        GitError: git refuses.
    """
    lines = (*_lease_line(doors, plan.run), *plan.here)
    left = tuple(move for move in plan.here if move.old != zero(move.old))
    if not left:
        doors.refs.move(lines, message=f"fabro: {plan.run}")
        return
    tree = _own_checked_out(doors, plan)
    change = tree.change if tree is not None else None
    operation = Operation(id=fresh_ulid(), command=f"sync {plan.run}", moves=left, work_tree=change)
    when = int(datetime.now(UTC).timestamp())
    with tree.begun(doors, operation.id) if tree is not None else contextlib.nullcontext():
        by = operations.WHO
        operations.record(doors.objects, doors.refs, operation, by=by, when=when, guard=lines)
        if tree is not None:
            advance.advance(tree.path, tree.move.old, tree.move.new)


@dataclass(frozen=True, slots=True)
class _WorkTree:
    """The run's own work tree, where nothing differs from what its branch moves away from."""

    run: RunId
    path: Path
    move: Move

    @property
    def change(self) -> WorkTreeChange:
        """The two commits, each of which is all that there is."""
        return WorkTreeChange(name=f"run {self.run}", before=self.move.old, after=self.move.new)

    def begun(self, doors: Doors, operation: str) -> AbstractContextManager[None]:
        """While the files go along: what dies in between, the next command completes."""
        restore = Restore(
            operation=operation,
            run=self.run,
            path=self.path,
            before=self.move.old,
            after=self.move.new,
        )
        view = worktree.at_work_tree(doors.repository, self.path)
        return restoring.begun(doors.repository, view, restore)


def _own_checked_out(doors: Doors, plan: _Plan) -> _WorkTree | None:
    """The work tree whose branch moves; that it is the run's own was looked at before."""
    move = _moved_branch(plan.run, plan.here)
    paths = _checked_out(doors, plan.run) if move is not None else []
    return _WorkTree(plan.run, paths[0], move) if paths and move is not None else None


def _lease_line(doors: Doors, run: RunId) -> list[Move]:
    """Holds the transaction back if somebody takes the run meanwhile.

    A run that comes from a remote gets a lease that nobody holds.
    """
    token = doors.refs.read(layout.lease_ref(run))
    if token is not None:
        return [lease.held_by(run, token)]
    return [lease.made_free(doors.objects, run, when=int(datetime.now(UTC).timestamp()))]


def _push(doors: Doors, name: str, plans: Sequence[_Plan]) -> Iterator[Synced]:
    """Pushes what is ahead: all runs at once; if that is refused, each by itself."""
    moves = [move for plan in plans for move in plan.there]
    done = _sent(doors, name, moves)
    if done.is_done or len(plans) == 1:
        yield from _pushed(moves, done)
        return
    for plan in plans:
        yield from _pushed(plan.there, _sent(doors, name, plan.there))


def _sent(doors: Doors, name: str, moves: Sequence[Move]) -> Pushed:
    try:
        return remote.push(doors.repository, name, moves)
    except GitError as exc:
        refs = tuple(remote.RefPushed(move.ref, "refused", exc.message) for move in moves)
        return Pushed(refs=refs, said=exc.stderr)


def _pushed(moves: Iterable[Move], done: Pushed) -> Iterator[Synced]:
    outcomes = {one.ref: one for one in done.refs}
    said = done.server_said
    for move in moves:
        outcome = outcomes.get(move.ref)
        if outcome is not None and outcome.what != "refused":
            yield _row(move, "pushed")
            continue
        why = outcome.reason if outcome is not None else "not sent, as another ref was refused"
        yield _row(move, "refused", f"{why}: {said}" if said else why)


def _decide_notes(
    doors: Doors, sides: _Sides, plans: Sequence[_Plan], rows: Iterable[Synced]
) -> _Moves:
    """Puts the notes of both sides together: all of theirs here, and there those of these runs.

    Those of a run that is left wait with it, as the remote lacks the commits that they are on.
    """
    ours, theirs = sides.ours.get(layout.NOTES_REF), sides.theirs.get(layout.NOTES_REF)
    waiting = {layout.run_of(row.ref) for row in rows if row.what not in ("fetched", "pushed")}
    tips = [plan.tips(sides) for plan in plans if plan.run not in waiting]
    try:
        here = sharing.received(doors, theirs) if theirs is not None else None
        there = sharing.to_send(doors, tips, here.new if here is not None else ours, theirs)
    except FabroError as exc:
        tip = ours or theirs
        assert tip is not None
        row = Synced(ref=layout.NOTES_REF, what="kept", old=None, new=tip, why=exc.message)
        return _Moves(left=(row,))
    return _Moves(
        here=(here,) if here is not None else (), there=(there,) if there is not None else ()
    )


def _move_notes(doors: Doors, name: str, moves: _Moves) -> Iterator[Synced]:
    yield from moves.left
    try:
        if moves.here:
            doors.refs.move(moves.here, message="fabro")
    except FabroError as exc:
        yield from (_row(move, "kept", exc.message) for move in moves.here)
        return
    yield from (_row(move, "fetched") for move in moves.here)
    yield from _pushed(moves.there, _sent(doors, name, moves.there))
