"""What a rewind would do, looked at before anything is done: refs, and each path of a work tree.

Files that no checkpoint of the run knows stay. A run that Fabro made has its refs moved only.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from git_fabro import branches, history, importing, lease, reading
from git_fabro.branches import Source
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Move, Oid, RunId
from git_fabro.doors import Doors, Tip, WorkTree, shown_path
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.git import worktree
from git_fabro.git.encoding import TREE_MODE
from git_fabro.git.snapshot.choose import choose_engine, rules_of
from git_fabro.jobs.history import ready
from git_fabro.opening import Session
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.state import APPLIED, Json, RunState

#: Why a file stays.
UNKNOWN = "no checkpoint of this run knows it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The checkpoint to go back to; ``meta_commit`` None: one of Fabro's, without metadata."""

    ordinal: int
    run_commit: Oid
    meta_commit: Oid | None

    def known_meta(self, run: RunId) -> Oid:
        """The meta commit, which a checkpoint of ours needs.

        Raises:
            NotFoundError: it is not there.
        """
        if self.meta_commit is None:
            raise NotFoundError(
                f"no metadata for checkpoint @{self.ordinal}: {run}",
                hint=f"git show {self.run_commit}",
            )
        return self.meta_commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run is: its repository, its run directory, and the caller's environment."""

    doors: Doors
    run: RunId
    directory: RunDirectory
    environment: Mapping[str, str]

    def session(self) -> Session:
        """This process, for a moment, as the holder of the run."""
        return Session.of_moment(self.doors, self.environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a rewind does: refs; paths that are written, deleted, and kept with why.

    ``work`` is None where the run has no work tree. ``unsaved`` are the paths whose content is in
    no commit and would be overwritten or deleted. Of a run that Fabro made only refs move.
    """

    target: Target
    moves: tuple[Move, ...]
    is_fabros: bool = False
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
        RequestError: the run is closed, its branch is checked out elsewhere, or names collide.
        NotFoundError: the run has no branch here.
        MissingObjectError: a file that would be written is not in the repository.
    """
    doors, run = place.doors, place.run
    source = Source(doors.repository, doors.objects, doors.refs)
    theirs = _plan_of_fabros(place, source, target)
    if theirs is not None:
        return theirs
    tips = reading.tips_of(doors, run)
    if tips.run_tip is None or tips.meta_tip is None:
        raise _no_branch(run)
    if importing.branches_at(source, run, target.run_commit, target.meta_commit) is not None:
        raise RequestError(
            f"@{target.ordinal} is from before the fork, and Fabro's: {run}",
            hint=f"git fabro fork {run} @{target.ordinal}",
        )
    meta = target.known_meta(run)
    if tips.lease is not None:
        lease.check_free(doors.refs, doors.objects, run, place.session().holder)
    refuse_applied(reading.state_at(doors, tips.meta_tip), run)
    moves = (
        Move(layout.run_ref(run), tips.run_tip, target.run_commit),
        Move(layout.meta_ref(run, tips.namespace), tips.meta_tip, meta),
    )
    excludes = excludes_of(doors, tips.meta_tip)
    work = own_work_tree(place, tips.run_tip, excludes)
    begun = Plan(target=target, moves=moves, work=work, excludes=excludes)
    return begun if work is None else _plan_files(doors, run, work, begun)


def _no_branch(run: RunId) -> NotFoundError:
    return NotFoundError(f"the run has no branch here: {run}", hint="git fabro list -a")


def _plan_of_fabros(place: Place, source: Source, target: Target) -> Plan | None:
    """For a run that Fabro made, whatever its branch is called; None for one of ours.

    What a remote had is not moved, and a checkpoint without metadata leaves the metadata alone.
    """
    doors, run = place.doors, place.run
    found = branches.branches_of(source, run)
    if not found.tips or history.is_ours(source, found):
        return None
    sides = (
        (found.run_ref, found.run_tip, target.run_commit),
        (found.meta_ref, found.meta_tip, target.meta_commit),
    )
    moves = tuple(
        Move(ref, tip, new)
        for ref, tip, new in sides
        if ref and tip and new and not ref.startswith(layout.REMOTES)
    )
    if not any(move.ref == found.run_ref for move in moves):
        raise _no_branch(run)
    _refuse_checked_out(doors, moves[0].ref, None)
    return Plan(target=target, moves=moves, is_fabros=True)


def refuse_applied(state: RunState, run: RunId) -> None:
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
    _refuse_checked_out(doors, ref, path)
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


def _refuse_checked_out(doors: Doors, ref: str, own: Path | None) -> None:
    """Nothing, unless a branch is checked out in a work tree that is not the run's own."""
    if doors.repository.git is None:
        return
    for other in worktree.list_work_trees(doors.repository):
        is_own = own is not None and other.path.resolve() == own.resolve()
        if other.branch == ref and other.is_there and not is_own:
            raise RequestError(
                f"the run branch is checked out in another work tree: {other.path}",
                hint=f"git -C {shlex.quote(str(other.path))} switch --detach",
            )


def excludes_of(doors: Doors, meta: Oid) -> tuple[str, ...]:
    """The exclude patterns that a run was made with."""
    data = doors.objects.blob_at(meta, layout.RUN_JSON) or b"{}"
    value: Json = codec.parse_json(data, layout.RUN_JSON)
    for key in ("settings", "checkpoint", "exclude_globs"):
        value = value.get(key) if isinstance(value, dict) else None
    return tuple(str(glob) for glob in value) if isinstance(value, list) else ()


def _plan_files(doors: Doors, run: RunId, work: WorkTree, begun: Plan) -> Plan:
    found, _ = doors.snapshot(work)
    objects, target = doors.objects, begun.target.run_commit
    changes = objects.diff(found, target)
    extra = [change.path for change in changes if change.new is None]
    known = _known(doors, extra, tip=work.tip.oid, stop=target)
    keep = tuple(path for path in extra if path not in known)
    _refuse_covered(doors, work, target, keep, [c.path for c in changes if c.old is None])
    name, hint = f"@{begun.target.ordinal}", f"git fabro fork {run} @{begun.target.ordinal}"
    ready.refuse_colliding(work, objects, changes, target, name=name, hint=hint)
    ready.refuse_missing(objects, changes, hint="git fsck")
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
