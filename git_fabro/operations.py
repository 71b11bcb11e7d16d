"""The operation log: what moved from where to where; an entry holds all that it moved away from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, zero
from git_fabro.errors import StaleRefError
from git_fabro.git.objects import Objects
from git_fabro.git.refs import Refs
from git_fabro.workflow.engine import stamp_of
from git_fabro.workflow.state import Json

_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTreeChange:
    """A work tree before and after: two commits, each a whole state; None: not kept."""

    name: str
    before: Oid | None
    after: Oid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One entry: ``command`` as ``resume 01JK...``; ``moves`` are the refs it moved."""

    id: str
    command: str
    moves: tuple[Move, ...] = ()
    work_tree: WorkTreeChange | None = None
    undoes: str | None = None


def record(
    objects: Objects,
    refs: Refs,
    operation: Operation,
    *,
    by: Identity,
    when: int,
    guard: Sequence[Move] = (),
) -> Oid:
    """Appends an entry to the log, together with other moves or by itself.

    Args:
        objects: Where to store it.
        refs: Where the log is.
        operation: What to say.
        by: Author and committer.
        when: Seconds since the epoch.
        guard: Moves of the same transaction, before the log's own.

    Raises:
        StaleRefError: a ref of the guard moved, or the log did twenty times.
    """
    tries = 0
    while True:
        tip = refs.read(layout.OPS_REF)
        entry = _commit(objects, operation, tip, by=by, when=when)
        try:
            refs.move(
                (*guard, Move(layout.OPS_REF, tip or zero(entry), entry)), message="fabro: op"
            )
        except StaleRefError:
            tries += 1
            if tries >= _TRIES or refs.read(layout.OPS_REF) == tip:
                raise
            continue
        return entry


def _commit(
    objects: Objects, operation: Operation, tip: Oid | None, *, by: Identity, when: int
) -> Oid:
    data = codec.document(_to_json(operation, when))
    kept = [move.old for move in operation.moves if move.old != zero(move.old)]
    if operation.work_tree is not None:
        kept += [oid for oid in (operation.work_tree.before, operation.work_tree.after) if oid]
    parents = dict.fromkeys(([tip] if tip else []) + kept)
    return objects.write_commit(
        Commit(
            tree=objects.tree_from({"operation.json": data}),
            parents=tuple(parents),
            author=by,
            committer=by,
            when=when,
            message=f"{operation.command}\n",
        )
    )


def _to_json(operation: Operation, when: int) -> dict[str, Json]:
    moves: list[Json] = [
        {"ref": move.ref, "old": move.old, "new": move.new} for move in operation.moves
    ]
    change: Mapping[str, Json] | None = None
    if operation.work_tree is not None:
        change = {
            "name": operation.work_tree.name,
            "before": operation.work_tree.before,
            "after": operation.work_tree.after,
        }
    return {
        "id": operation.id,
        "command": operation.command,
        "at": stamp_of(when),
        "undoes": operation.undoes,
        "refs": moves,
        "work_tree": dict(change) if change is not None else None,
    }
