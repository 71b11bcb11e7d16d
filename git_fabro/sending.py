"""What a remote has of a run beside what is here, and what may be sent there without loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, zero
from git_fabro.errors import ConflictError, FabroError, MissingObjectError
from git_fabro.git import remote, transport
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Objects
from git_fabro.git.remote import Pushed, RefPushed

#: How a ref here stands to the remote's: the same, it has more, less, or each has something else;
#: ``unknown``: what the remote has was never fetched, or a shallow clone cannot tell.
Standing = Literal["same", "ahead", "behind", "diverged", "unknown"]


def standing(objects: Objects, ours: Oid, theirs: Oid | None) -> Standing:
    """How a commit of ours stands to what a remote has in its place; None is nothing."""
    if ours == theirs:
        return "same"
    if theirs is None:
        return "ahead"
    try:
        if not objects.exists(theirs):
            return "unknown"
        if objects.is_ancestor(theirs, ours):
            return "ahead"
        return "behind" if objects.is_ancestor(ours, theirs) else "diverged"
    except MissingObjectError:
        # The boundary of a shallow clone lies between them. traps: SY12
        return "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of sending refs to a remote; ``why`` is why not, "" where all is there."""

    remote: str
    refs: tuple[RefPushed, ...] = ()
    why: str = ""
    hint: str | None = None


def send_moves(repo: Repository, objects: Objects, moves: Sequence[Move]) -> Sent:
    """Has the default remote follow refs that went back here, if it knows no more than they did.

    What could not be sent is told, and is no error: it can be sent again.

    Args:
        repo: The repository.
        objects: Its objects.
        moves: What moved here; a ref of the remote that stands on neither side is left.
    """
    name = ""
    try:
        name = remote.choose(repo)
        limit_s = transport.deadline_s(repo)
        has = remote.advertised(repo, name, *(move.ref for move in moves), timeout_s=limit_s)
        wanted = [_following(objects, move, has) for move in moves]
        to_move = [move for move in wanted if move.old != move.new]
        options = (layout.OPTION_REWIND,)
        done = remote.push(repo, name, to_move, options=options, timeout_s=limit_s)
    except FabroError as exc:
        return Sent(remote=name, why=exc.message, hint=exc.hint)
    said = f" ({done.server_said})" if done.why and done.server_said else ""
    return Sent(remote=name, refs=done.refs, why=done.why + said, hint=_next(name, moves, done))


def _following(objects: Objects, move: Move, has: Mapping[str, Oid]) -> Move:
    """The same move as the remote is to do it, from where it stands.

    Raises:
        ConflictError: it has what is not part of what was here.
    """
    theirs = has.get(move.ref)
    if theirs is None:
        return Move(move.ref, zero(move.new), move.new)
    if standing(objects, move.old, theirs) not in ("same", "ahead"):
        raise ConflictError(f"the remote has what is not here: {move.ref}", hint="git fabro sync")
    return Move(move.ref, theirs, move.new)


def _next(name: str, moves: Sequence[Move], done: Pushed) -> str | None:
    if done.is_done:
        return None
    if any(one.reason == "stale info" for one in done.refs):
        return f"git fabro sync {name}"
    # A server that lets nothing go back takes the new branches of a fork.
    return f"git fabro fork {layout.run_of(moves[0].ref) or ''}".rstrip()
