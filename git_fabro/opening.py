"""Beginning a run, and taking one over: how a process comes to hold a run's refs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from git_fabro import journal, lease, reading
from git_fabro.checkpoint import codec, layout, shape
from git_fabro.checkpoint.model import Identity, Move, Oid, RunId, zero
from git_fabro.checkpoint.secrets import Mask, secret_values
from git_fabro.doors import Doors, fresh_ulid
from git_fabro.errors import GitError, LeasedError, StaleRefError
from git_fabro.journal import Entry
from git_fabro.metatree import MetaTree
from git_fabro.reading import View
from git_fabro.rundir import RunDirectory
from git_fabro.store import Clock, RunLog
from git_fabro.workflow import engine
from git_fabro.workflow.graph import EXIT, START
from git_fabro.workflow.records import (
    CheckpointMade,
    Event,
    GitIdentity,
    LeaseReleased,
    LeaseTaken,
    NodeFinished,
    Record,
    RunBranch,
    RunCreated,
    RunStarted,
)
from git_fabro.workflow.state import Json, RunState

PROGRAM = "git-fabro 0.1.0"
_NOT_IN_RUN_JSON = ("contract", "context", "secrets", "authority")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a process brings along to hold runs: its clock, its mask, and who it is."""

    clock: Clock
    mask: Mask
    holder: lease.Holder
    on_record: Callable[[Record], None] = lambda record: None

    @classmethod
    def of_moment(cls, doors: Doors | None, environment: Mapping[str, str]) -> Session:
        """This process, for a moment; ``doors`` is None outside a repository.

        Args:
            doors: Where the secret patterns are set.
            environment: Whose secret values are masked.
        """
        _, values = secret_values(environment)
        patterns = doors.repository.config_all("fabro.secrets.pattern") if doors else ()
        return cls(
            clock=lambda: datetime.now(UTC),
            mask=Mask.of(values, patterns),
            holder=lease.me(fresh_ulid()),
        )

    def taken(self, token: Oid | None) -> LeaseTaken:
        return LeaseTaken(
            owner=self.holder.owner,
            lease=token,
            host=self.holder.host,
            pid=self.holder.pid,
            program=PROGRAM,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that does not exist yet; ``base`` None means that it has no Git."""

    created: RunCreated
    graph_source: bytes
    identity: GitIdentity
    start: str
    mode: str = "run"
    base: Oid | None = None
    namespace: layout.Namespace = "heads"
    required: bool = False


def begin(doors: Doors | None, new: NewRun, directory: RunDirectory, session: Session) -> RunLog:
    """Makes a run: run branch, metadata branch and lease, in one transaction.

    Raises:
        StaleRefError: a run of this id exists.
        GitError: the repository refuses.
    """
    run = RunId(new.created.run_id)
    log = new_log(doors, run, directory, session, new.namespace, new.identity)
    log.required = new.required
    _write_copies(doors, directory, new)
    if doors is None or new.base is None:
        log.doors = None
        log.lock_directory()
        for event in _first(new, None, session):
            log.note(event)
        return log
    when = int(session.clock().timestamp())
    log.lease = lease.commit_for(doors.objects, session.holder, None, by=log.identity, when=when)
    _make(log, new, _first(new, log.lease, session))
    return log


def _make(log: RunLog, new: NewRun, first: Sequence[Event]) -> None:
    """The first records; run branch, metadata branch and lease in one transaction."""
    assert log.doors is not None
    assert new.base is not None
    for event in first:
        log.put(event)
    start_json: dict[str, Json] = {
        "base_sha": new.base,
        "run_branch": layout.run_branch(log.run),
        "run_id": log.run,
        "schema": layout.SCHEMA,
        "start_time": log.state.started_at,
    }
    files = {
        layout.RUN_JSON: codec.document(run_json(new.created)),
        layout.START_JSON: codec.document(start_json),
        layout.GRAPH: new.graph_source,
    }
    log.meta_tree = MetaTree.new(log.doors.objects, files)
    meta = log.commit_meta("init run")
    token, log.lease = log.lease, None
    log.move(
        Move(layout.run_ref(log.run), zero(meta), new.base),
        Move(layout.meta_ref(log.run, log.namespace), zero(meta), meta),
        lease_to=token,
    )
    log.run_tip, log.meta_tip = new.base, meta
    log.directory.write(layout.START_JSON, files[layout.START_JSON])
    log.empty_journal()


def withdraw(log: RunLog) -> None:
    """Takes back a run in which no node has run: its three refs go in one transaction.

    Raises:
        ConflictError: a ref has moved.
    """
    if log.doors is not None and log.run_tip is not None and log.meta_tip is not None:
        none = zero(log.run_tip)
        run = Move(layout.run_ref(log.run), log.run_tip, none)
        meta = Move(layout.meta_ref(log.run, log.namespace), log.meta_tip, none)
        log.move(run, meta, lease_to=none)
    log.close()
    log.directory.remove()


def _first(new: NewRun, token: Oid | None, session: Session) -> list[Event]:
    branch = RunBranch(
        run_branch=layout.run_branch(RunId(new.created.run_id)), base_sha=new.base or ""
    )
    events: list[Event] = [new.created, session.taken(token)]
    if new.base is not None:
        events.append(branch)
    return [*events, new.identity, RunStarted(start=new.start, mode=new.mode)]


def run_json(created: RunCreated) -> dict[str, Json]:
    """run.json: what the run was made with."""
    fields: dict[str, Json] = shape.to_json(created)
    return {"schema": layout.SCHEMA} | {
        key: value for key, value in fields.items() if key not in _NOT_IN_RUN_JSON
    }


def _write_copies(doors: Doors | None, directory: RunDirectory, new: NewRun) -> None:
    """The copies for quick local access, with the value that Git does not hold."""
    top = str(doors.repository.top) if doors is not None else None
    directory.write(
        layout.RUN_JSON, codec.document({**run_json(new.created), "host_repo_path": top})
    )
    directory.write(layout.GRAPH, new.graph_source)


def new_log(
    doors: Doors | None,
    run: RunId,
    directory: RunDirectory,
    session: Session,
    namespace: layout.Namespace,
    identity: GitIdentity,
) -> RunLog:
    """A log that stands nowhere yet, and holds no lease."""
    return RunLog(
        doors=doors,
        run=run,
        directory=directory,
        clock=session.clock,
        mask=session.mask,
        holder=session.holder,
        namespace=namespace,
        identity=Identity(identity.name, identity.email),
        on_record=session.on_record,
    )


def take(
    doors: Doors,
    run: RunId,
    directory: RunDirectory,
    session: Session,
    *,
    take_over: bool = False,
    by_hand: bool = False,
) -> tuple[RunLog, View]:
    """Takes the lease of a run and brings its refs and its journal in step.

    Args:
        doors: The repository.
        run: The run.
        directory: Its run directory.
        session: Who takes it.
        take_over: From a holder on another machine, too.
        by_hand: As for ``reading.view``.

    Raises:
        LeasedError: another process holds the run.
        NotFoundError: there is no such run.
        RecordError: what is stored does not parse.
    """
    former = _holder(doors, run)
    token = _take_lease(doors, run, session, take_over=take_over)
    seen = reading.view(doors, run, directory, by_hand=by_hand)
    log = new_log(doors, run, directory, session, seen.tips.namespace, _identity(doors, seen))
    _stand_at(log, seen, token)
    _mend_refs(log, seen)
    _mend_journal(log, seen)
    _say_what_is_missing(log, session, former, seen)
    return log, seen


def _stand_at(log: RunLog, seen: View, token: Oid) -> None:
    """Continues from what the refs and the journal hold."""
    assert log.doors is not None
    log.lease, log.state = token, seen.state
    log.meta_tip, log.run_tip = seen.tips.meta_tip, seen.course.recorded_tip
    log.ordinal = log.unpacked = seen.course.ordinal
    log.unsealed = [entry.record for entry in seen.counted]
    meta = log.doors.objects.read_commit(seen.course.meta)
    log.meta_tree = MetaTree.load(log.doors.objects, meta.tree)
    log.last_at = log.unsealed[-1].at if log.unsealed else engine.stamp_of(meta.when)
    log.blobs.restore(log.meta_tree.artifacts())


def _holder(doors: Doors, run: RunId) -> tuple[Oid | None, lease.Holder | None]:
    """The lease and its holder; neither, where a clone has not fetched the lease."""
    if doors.refs.read(layout.lease_ref(run)) is None:
        return None, None
    return lease.read(doors.refs, doors.objects, run)


def _take_lease(doors: Doors, run: RunId, session: Session, *, take_over: bool) -> Oid:
    token: Oid | None = None
    if _holder(doors, run)[0] is not None:
        token = lease.check_free(
            doors.refs, doors.objects, run, session.holder, take_over=take_over
        )
    mine = lease.commit_for(
        doors.objects,
        session.holder,
        token,
        by=Identity("git-fabro", "lease@git-fabro"),
        when=int(session.clock().timestamp()),
    )
    try:
        doors.refs.move((lease.move_to(run, token, mine),), message=f"fabro: {run}")
    except (StaleRefError, GitError) as exc:
        _, winner = lease.read(doors.refs, doors.objects, run)
        if winner is not None and winner.owner != session.holder.owner:
            raise lease.leased(run, winner) from exc
        if isinstance(exc, StaleRefError):
            raise LeasedError(
                f"run was taken and freed meanwhile: {run}", hint=f"git fabro resume {run}"
            ) from exc
        raise
    return mine


def _identity(doors: Doors, seen: View) -> GitIdentity:
    """Whoever the run's commits are by; the metadata tip says it."""
    author = doors.objects.read_commit(seen.course.meta).author
    return GitIdentity(name=author.name, email=author.email)


def _mend_refs(log: RunLog, seen: View) -> None:
    """Puts the metadata tip on course: forward to the run tip's meta commit, or back to it."""
    assert log.doors is not None
    if seen.course.verdict == "on":
        return
    ref = layout.meta_ref(log.run, log.namespace)
    former = seen.tips.meta_tip
    assert former is not None
    move = Move(ref, former, seen.course.meta)
    if seen.course.verdict == "back":
        log.doors.keep_left(f"resume {log.run}", move, log.identity, log.when())
    log.move(move)
    log.meta_tip = move.new


def _mend_journal(log: RunLog, seen: View) -> None:
    """Cuts an unfinished line, sets aside lines of a history that was left."""
    if seen.torn_bytes:
        log.journal.cut(seen.good_bytes)
    if seen.stale:
        name = f"journal.{log.holder.owner}.stale"
        log.journal.set_aside(name)
        for entry in seen.counted:
            log.journal.append((entry,), sync=False)
        log.notice("journal_set_aside", f"lines of a history that was left are in {name}")
    if seen.torn_bytes:
        log.notice("journal_cut", f"{seen.torn_bytes} bytes of an unfinished line were cut")


def _say_what_is_missing(
    log: RunLog, session: Session, former: tuple[Oid | None, lease.Holder | None], seen: View
) -> None:
    """Records who took the run, who left it without a word, and a commit whose record was lost."""
    token, holder = former
    log.note(session.taken(log.lease))
    if holder is not None and holder.owner != session.holder.owner:
        log.note(LeaseReleased(owner=holder.owner, lease=token, reason="gone"))
    made = _untold(log, seen)
    if made is not None:
        log.note(made)


def _untold(log: RunLog, seen: View) -> CheckpointMade | None:
    """The record of the run tip's commit, if a lost journal can no longer tell of it."""
    assert log.doors is not None
    tip = seen.course.recorded_tip
    if tip is None or log.ordinal == 0 or seen.course.unrecorded:
        return None
    told = {r.event.git_commit_sha for r in log.unsealed if isinstance(r.event, CheckpointMade)}
    for meta in log.doors.objects.history(seen.course.meta, limit=100):
        commit = log.doors.objects.read_commit(meta)
        records = reading.records_at(log.doors, meta)
        told |= {r.event.git_commit_sha for r in records if isinstance(r.event, CheckpointMade)}
        if commit.subject.startswith("checkpoint "):
            break
    if tip in told:
        return None
    commit = log.doors.objects.read_commit(tip)
    patch = log.doors.patch(commit.parents[0], commit.tree, log.mask)
    return CheckpointMade(
        git_commit_sha=tip,
        meta_commit_sha=meta,
        ordinal=log.ordinal,
        diff_summary=patch.summary,
        patch_blob=patch.blob,
    )


def unfinished(seen: View) -> list[Entry]:
    """Finished nodes in the journal whose commit was not made: of each line the last one.

    One without a tree had no snapshot, as Git had failed.
    """
    latest: dict[str | None, Entry] = {}
    for entry in seen.counted:
        event, position = entry.record.event, entry.record.position
        if isinstance(event, NodeFinished) and event.handler not in (START, EXIT):
            latest[position.branch if position else None] = entry
    return list(latest.values())


def take_journal(run: RunId, directory: RunDirectory, session: Session) -> tuple[RunLog, RunState]:
    """Takes over a run without Git; a lock on a file of its directory keeps two drivers apart.

    Raises:
        LeasedError: another process drives it.
        RecordError: the journal does not parse.
    """
    identity = GitIdentity(name="Fabro", email="noreply@fabro.sh")
    read = journal.read(directory.journal)
    state = engine.replay(entry.record for entry in read.entries)
    log = new_log(None, run, directory, session, "heads", identity)
    log.lock_directory()
    log.state = state
    log.last_at = read.entries[-1].record.at if read.entries else ""
    if read.torn_bytes:
        log.journal.cut(read.good_bytes)
        log.notice("journal_cut", f"{read.torn_bytes} bytes of an unfinished line were cut")
    log.note(session.taken(None))
    return log, state
