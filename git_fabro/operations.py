"""The operation log: what moved from where to where; an entry holds all that it moved away from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, parse_oid, zero
from git_fabro.errors import RecordError, StaleRefError
from git_fabro.git.objects import Objects
from git_fabro.git.refs import Refs
from git_fabro.workflow.engine import stamp_of
from git_fabro.workflow.state import Json

_TRIES = 20
#: Who an operation is by that belongs to no run of ours.
WHO = Identity("git-fabro", "operation@git-fabro")


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


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation as the log holds it; ``at`` is RFC 3339."""

    operation: Operation
    at: str


def entries(objects: Objects, refs: Refs) -> Iterator[Entry]:
    """The operation log, newest first.

    Raises:
        RecordError: an entry does not parse.
    """
    tip = refs.read(layout.OPS_REF)
    for oid in objects.history(tip) if tip is not None else ():
        where = f"operation {oid[:12]}"
        data = objects.blob_at(oid, "operation.json")
        if data is None:
            # The first entry has no former one: its first parent is a tip that it moved away from.
            return
        try:
            yield _from_json(codec.parse_json(data, where))
        except (KeyError, TypeError, ValueError) as exc:
            raise RecordError(f"not an operation: {where}") from exc


def _from_json(value: Json) -> Entry:
    if not isinstance(value, dict):
        raise TypeError(value)
    listed, change = value["refs"], value["work_tree"]
    if not isinstance(listed, list):
        raise TypeError(listed)
    undoes = value["undoes"]
    operation = Operation(
        id=str(value["id"]),
        command=str(value["command"]),
        moves=tuple(_move(one) for one in listed),
        work_tree=_change(change) if isinstance(change, dict) else None,
        undoes=None if undoes is None else str(undoes),
    )
    return Entry(operation, str(value["at"]))


def _move(value: Json) -> Move:
    if not isinstance(value, dict):
        raise TypeError(value)
    return Move(str(value["ref"]), parse_oid(str(value["old"])), parse_oid(str(value["new"])))


def _change(value: Mapping[str, Json]) -> WorkTreeChange:
    before, after = value["before"], value["after"]
    return WorkTreeChange(
        name=str(value["name"]),
        before=None if before is None else parse_oid(str(before)),
        after=None if after is None else parse_oid(str(after)),
    )


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
