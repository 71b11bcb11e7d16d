"""Who may move a run's refs: one process on one machine, or nobody.

A lease is a commit on ``refs/fabro/lease/<run>`` that names its holder; its object id is the token
that every transaction on the run's refs carries. This module makes the objects and judges holders;
the transactions are the store's.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from git_fabro.checkpoint.layout import lease_ref
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, RunId, zero
from git_fabro.errors import LeasedError, NotFoundError, RecordError
from git_fabro.git.objects import Objects
from git_fabro.git.refs import Refs

_FREE = "lease: nobody"
_HELD = "lease: held"
_NOBODY = Identity("git-fabro", "lease@git-fabro")


class Holder(NamedTuple):
    """One process: the first three parts say on which machine, the next two which process there."""

    host: str
    boot: str  # the id of this start of the machine
    pid_namespace: str  # a container is another machine
    pid: int
    started: int  # clock ticks since the start of the machine
    owner: str  # a ULID, minted once per process


def me(owner: str) -> Holder:
    """This process as a holder; handles of one owner share a lease."""
    pid = os.getpid()
    return Holder(
        host=os.uname().nodename,
        boot=_boot(),
        pid_namespace=_pid_namespace(),
        pid=pid,
        started=_started(pid) or 0,
        owner=owner,
    )


def is_alive(holder: Holder) -> bool | None:
    """Whether the holder's process still runs; None: it is of another machine, nobody can say."""
    if (holder.host, holder.boot, holder.pid_namespace) != (
        os.uname().nodename,
        _boot(),
        _pid_namespace(),
    ):
        return None
    if Path("/proc/self/stat").exists():
        # A pid is used again; together with the time of its start it is not.
        return _started(holder.pid) == holder.started
    return _answers(holder.pid)


def driver_of(objects: Objects, token: Oid | None) -> Holder | None:
    """Who drives a run, or may: the holder, unless it is seen dead. None for the token: no run.

    Raises:
        RecordError: the token is no commit of a lease.
    """
    holder = holder_of(objects, token) if token is not None else None
    return None if holder is None or is_alive(holder) is False else holder


def read(refs: Refs, objects: Objects, run: RunId) -> tuple[Oid, Holder | None]:
    """The fencing token of a run, and who holds it; None is nobody.

    Raises:
        NotFoundError: there is no lease, so no run.
        RecordError: the lease's commit cannot be read.
    """
    token = refs.read(lease_ref(run))
    if token is None:
        raise NotFoundError(f"no such run: {run}", hint="git fabro list -a")
    return token, holder_of(objects, token)


def holder_of(objects: Objects, token: Oid) -> Holder | None:
    """Whom a lease's commit names; None is nobody.

    Raises:
        RecordError: it is no commit of a lease.
    """
    commit = objects.read_commit(token)
    subject, _, body = commit.message.partition("\n\n")
    if subject.strip() == _FREE:
        return None
    try:
        value: object = json.loads(body)
    except ValueError as exc:
        raise RecordError(f"not a lease: {token}") from exc
    return _parse(value, token)


def commit_for(
    objects: Objects, holder: Holder | None, parent: Oid | None, *, by: Identity, when: int
) -> Oid:
    """Store the commit of a lease that goes to a holder, or to nobody.

    Args:
        objects: Where to store it.
        holder: Who gets the lease; None frees it.
        parent: The token so far, so that no token ever comes back; None for a new run.
        by: Author and committer.
        when: Seconds since the epoch.
    """
    message = f"{_FREE}\n"
    if holder is not None:
        body = json.dumps(holder._asdict(), sort_keys=True, separators=(",", ":"))
        message = f"{_HELD}\n\n{body}\n"
    commit = Commit(
        # Not asked for in the packs, which would cost a hook 30 ms.
        tree=objects.write_new_tree({}),
        parents=() if parent is None else (parent,),
        author=by,
        committer=by,
        when=when,
        message=message,
    )
    return objects.write_commit(commit)


def made_free(objects: Objects, run: RunId, *, when: int) -> Move:
    """The line of a transaction that makes the lease of a run from elsewhere; nobody holds it."""
    return move_to(run, None, commit_for(objects, None, None, by=_NOBODY, when=when))


def move_to(run: RunId, old: Oid | None, new: Oid) -> Move:
    """The line of a transaction that hands a lease over; None: the run is made in it."""
    return Move(lease_ref(run), old or zero(new), new)


def held_by(run: RunId, token: Oid) -> Move:
    """The line of a transaction that holds it back unless the token is still the lease."""
    return Move(lease_ref(run), token, token)


def check_free(
    refs: Refs, objects: Objects, run: RunId, mine: Holder, *, take_over: bool = False
) -> Oid:
    """The token to move on from, if this process may take the lease.

    It may when nobody holds it, when its own owner does, and when the holder is seen dead. A holder
    of another machine is passed over only with ``take_over``: never by time.

    Raises:
        LeasedError: another process holds it.
        NotFoundError: there is no such run.
    """
    token, holder = read(refs, objects, run)
    if holder is None or holder.owner == mine.owner:
        return token
    alive = is_alive(holder)
    if alive is False or (alive is None and take_over):
        return token
    raise leased(run, holder)


def leased(run: RunId, holder: Holder) -> LeasedError:
    """The error that names who drives a run, and the command that fits."""
    if is_alive(holder) is None:
        return LeasedError(
            f"run is being driven on {holder.host} by process {holder.pid}: {run}",
            hint=f"git fabro resume --take-over {run}",
        )
    return LeasedError(
        f"run is being driven by process {holder.pid} on {holder.host}: {run}",
        hint=f"git fabro attach {run}",
    )


def _parse(value: object, token: Oid) -> Holder:
    if not isinstance(value, dict):
        raise RecordError(f"not a lease: {token}")
    texts = {name: value.get(name) for name in ("host", "boot", "pid_namespace", "owner")}
    numbers = {name: value.get(name) for name in ("pid", "started")}
    if not all(isinstance(text, str) for text in texts.values()) or not all(
        type(number) is int for number in numbers.values()
    ):
        raise RecordError(f"not a lease: {token}")
    return Holder(**{name: value[name] for name in Holder._fields})


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except FileNotFoundError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    # Field 22, counted after the name, which is in brackets and may hold anything.
    # Source: proc_pid_stat(5)
    try:
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A zombie has ended: only its parent has not been told yet.
    return None if after_name[0] in (b"Z", b"X") else int(after_name[19])


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
