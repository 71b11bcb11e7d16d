"""How a run is kept: its records, its checkpoints, and the invariant that binds them.

A checkpoint exists once the run branch holds a commit that is linked to a meta commit. ``save`` is
the one place where that comes to be; ``seal`` and ``release`` move the same refs under the same
lease. Beginning a run and taking one over are in ``opening``, reading alone is in ``reading``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from git_fabro import journal, lease, reading
from git_fabro.blobs import Blobs, referenced
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.message import (
    CheckpointTrailers,
    checkpoint_message,
    meta_message,
)
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, RunId, zero
from git_fabro.checkpoint.note import notes_of
from git_fabro.checkpoint.secrets import Mask
from git_fabro.doors import Doors, Tip, WorkTree
from git_fabro.errors import ConflictError, FabroError, GitError, RecordError
from git_fabro.git.packing import LEAST_OBJECTS
from git_fabro.metatree import MetaTree
from git_fabro.rundir import RunDirectory
from git_fabro.trace import PATCH_FILE, Patch, trace_files
from git_fabro.workflow import engine
from git_fabro.workflow.records import (
    CheckpointMade,
    Event,
    LeaseReleased,
    NodeFinished,
    Record,
    RunNotice,
)
from git_fabro.workflow.state import Position, RunState

Clock = Callable[[], datetime]
Mark = tuple[RunState, list[Record], str]
_DERIVED_EVERY_S = 2.0
#: A long run is packed on its way after so many checkpoints.
PACK_EVERY = 1000


class LostLeaseError(ConflictError):
    """The lease is no longer ours: another process drives the run, and this one must stop."""


class RequiredCheckpointError(GitError):
    """A checkpoint failed that the settings require: the run fails."""


@dataclass(slots=True, kw_only=True)
class RunLog:
    """A run that this process holds: where its refs stand, and what is not yet in a meta commit.

    Without Git (``doors`` None) the journal in the run directory is all there is. One thread at a
    time appends or saves; ``lock`` sees to that.
    """

    doors: Doors | None
    run: RunId
    directory: RunDirectory
    clock: Clock
    mask: Mask
    holder: lease.Holder
    namespace: layout.Namespace = "heads"
    identity: Identity = Identity("Fabro", "noreply@fabro.sh")
    lease: Oid | None = None
    run_tip: Oid | None = None
    meta_tip: Oid | None = None
    meta_tree: MetaTree | None = None
    ordinal: int = 0
    state: RunState = RunState()
    unsealed: list[Record] = field(default_factory=list)
    last_at: str = ""
    required: bool = False
    #: Checkpoints since the run was last packed; those of a former holder may be among them.
    unpacked: int = 0
    behind: dict[str | None, Record] = field(default_factory=dict)
    left_out: bool = False
    on_record: Callable[[Record], None] = lambda record: None
    journal: journal.JournalWriter = field(init=False)
    blobs: Blobs = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _states: codec.StateWriter = field(default_factory=codec.StateWriter)
    _notes: dict[str, str] = field(default_factory=dict)
    _derived_due: float = 0.0
    _kept: BinaryIO | None = None

    def __post_init__(self) -> None:
        self.directory.create()
        self.journal = self.directory.open_journal()
        self.blobs = Blobs(self.directory)

    def note(
        self,
        event: Event,
        position: Position | None = None,
        *,
        sync: bool = True,
        tree: Oid | None = None,
        merged: tuple[Oid, ...] = (),
    ) -> Record:
        """Appends one record to the journal; it reaches Git with the next meta commit.

        Raises:
            GitError: the journal cannot be written; nothing was recorded.
        """
        with self.lock:
            record = self._next(event, position)
            entry = journal.Entry(record=record, on=self.run_tip, tree=tree, merged=merged)
            self.journal.append((entry,), sync=sync)
            self._accept(record)
            return record

    def notice(
        self, code: str, message: str, *, level: str = "warning", position: Position | None = None
    ) -> None:
        """Says something that never changes the run's course."""
        said = RunNotice(level=level, code=code, message=self.mask.text(message))
        self.note(said, position, sync=False)

    def seal(
        self,
        subject: str,
        *events: Event,
        position: Position | None = None,
        commit: Oid | None = None,
    ) -> None:
        """Brings records into a meta commit before the run goes on.

        If Git fails they stand in the journal, fsynced, and the next meta commit takes them along.

        Raises:
            LostLeaseError: another process holds the run now.
        """
        with self.lock:
            if self.doors is not None and self._sealed(subject, events, position, commit):
                return
            for event in events:
                self.note(event, position)

    def save(
        self,
        work: WorkTree,
        position: Position,
        decide: Callable[[tuple[str, ...]], NodeFinished],
        *,
        merged: tuple[Oid, ...] = (),
    ) -> Record:
        """Makes the checkpoint of a finished node, in the order that a crash cannot break.

        Args:
            work: The work tree of the node's line.
            position: The visit that ended.
            decide: Gives the record, from the paths that the node changed.
            merged: Further parents of the run commit: the branches that a join took.

        Raises:
            LostLeaseError: another process holds the run now.
            RequiredCheckpointError: it failed, and the settings require it.
            GitError: the journal cannot be written.
        """
        with self.lock:
            self.behind.pop(work.tip.branch, None)
            tree, touched = self._snapshot(work, position)  # 1: objects only
            event = decide(touched)
            record = self.note(event, position, tree=tree, merged=merged)  # 2: it is finished
            if tree is not None:
                self.checkpoint(work.tip, record, tree, merged=merged)  # 3 to 6
                self._settle(work, tree)  # 6: index
            elif self.doors is not None:
                self.behind[work.tip.branch] = record
            return record

    def catch_up(self, work: WorkTree) -> bool:
        """Makes a checkpoint that is missing at the end of a line; whether none is missing."""
        with self.lock:
            record = self.behind.get(work.tip.branch)
            if record is None or record.position is None:
                return True
            tree, _ = self._snapshot(work, record.position)
            if tree is not None:
                self.checkpoint(work.tip, record, tree)
                self._settle(work, tree)
            return work.tip.branch not in self.behind

    def checkpoint(
        self, tip: Tip, record: Record, tree: Oid, *, merged: tuple[Oid, ...] = ()
    ) -> None:
        """Steps 3 to 6, for a finished node whose record and tree stand in the journal."""
        assert self.doors is not None
        try:
            patch = self.doors.patch(tip.oid, tree, self.mask)
            meta = self.commit_meta(self._traced(record, patch))  # 3: object only
            run = self._commit_run(tip, record, tree, meta, merged)  # 4: object only
            self.move(  # 5: the checkpoint exists
                Move(tip.ref, tip.oid if tip.exists else zero(run), run),
                Move(layout.meta_ref(self.run, self.namespace), self._meta_tip(), meta),
            )
        except (GitError, ConflictError) as exc:
            self.behind[tip.branch] = record
            self.survive(exc, record.position)
            return
        self.behind.pop(tip.branch, None)
        self.stand_on(tip, run, meta)
        self._tidy(tip, record, patch)  # 6: best effort

    def _snapshot(self, work: WorkTree, position: Position) -> tuple[Oid | None, tuple[str, ...]]:
        """The tree of a work tree and the paths that differ from its tip; None where Git is not."""
        if self.doors is None:
            return None, ()
        try:
            tree, notices = self.doors.snapshot(work)
            touched = self.doors.touched(work.tip.oid, tree)
        except (GitError, ConflictError) as exc:
            self.survive(exc, position)
            return None, ()
        for code, text in notices:
            self.left_out = self.left_out or code == "file_excluded"
            self.notice(code, text, position=position)
        return tree, touched

    def _settle(self, work: WorkTree, tree: Oid) -> None:
        """The index of the work tree, best effort: whoever comes next can bring it up as well."""
        assert self.doors is not None
        try:
            self.doors.settle(work, tree)
        except (GitError, ConflictError) as exc:
            self.notice("index_behind", f"the index is behind: {exc.message}", level="info")

    def prove(self, work: WorkTree) -> None:
        """Looks whether the last snapshot of a line has all; what it lacks keeps the work tree."""
        if self.doors is None or work.tip.branch in self.behind:
            return
        try:
            missed = self.doors.prove(work)
        except GitError:
            # The checkpoint is good; that this cannot be proved is no fault of it.
            return
        for code, text in missed:
            self.left_out = True
            self.notice(code, text)

    def stand_on(self, tip: Tip, run: Oid, meta: Oid) -> None:
        self.meta_tip = meta
        tip.oid, tip.exists = run, True
        if tip.branch is None:
            self.run_tip, self.ordinal = run, self.ordinal + 1
        self.unpacked += 1
        self.empty_journal()

    def _tidy(self, tip: Tip, record: Record, patch: Patch) -> None:
        """The copy of the state, a record of the commit, the notes."""
        assert self.doors is not None
        assert self.meta_tip is not None
        run, meta = tip.oid, self.meta_tip
        made = CheckpointMade(
            git_commit_sha=run,
            meta_commit_sha=meta,
            ordinal=self.ordinal if tip.branch is None else None,
            diff_summary=patch.summary,
            patch_blob=patch.blob,
        )
        self.note(made, record.position)
        self._notes |= notes_of(self.run, record, run, meta)
        self.write_derived()
        if self.unpacked >= PACK_EVERY:
            self.pack(beside=True)

    def pack(self, *, beside: bool = False) -> None:
        """Has what lies loose of the run packed; that this failed is only said.

        At the end of a drive it is waited for: whoever looks at the repository then, with git fsck
        too, is not met by files that go. On the way of a long run it is done ``beside`` it.
        """
        if self.doors is None or self.meta_tip is None:
            return
        # A checkpoint is six objects at least. Few are not worth the process that would count them.
        if max(self.doors.objects.turn, 6 * self.unpacked) < LEAST_OBJECTS:
            return
        self.unpacked = 0
        try:
            base = reading.base_of(self.doors, self.meta_tip)
            log = self.directory.path / "packing.log" if beside else None
            self.doors.pack(self.run, base, log=log)
        except (GitError, RecordError) as exc:
            self.tell("packing_failed", f"the run's objects stay loose: {exc.message}")

    def add_notes(self, texts: Mapping[str, str]) -> None:
        """Notes that are written with the next that is derived."""
        self._notes |= texts

    def write_derived(self, *, at_once: bool = False) -> None:
        """Writes what can be made again, every two seconds at most: notes, a copy of the state."""
        now = time.monotonic()
        if self.doors is None or not self._notes or (now < self._derived_due and not at_once):
            return
        with self.lock:
            self.write_copy(git_commit_sha=self.run_tip)
            texts, self._notes = self._notes, {}
            self._derived_due = now + _DERIVED_EVERY_S
            try:
                self.doors.annotate(texts, self.identity, self.when())
            except (GitError, ConflictError) as exc:
                self.notice("note_failed", f"notes are missing: {exc.message}", level="info")

    def release(
        self, reason: str, *, subject: str = "records", events: Sequence[Event] = ()
    ) -> None:
        """Frees the lease in the same transaction as the last records of this owner.

        Args:
            reason: parked, paused, stopped, finished or done.
            subject: Of the meta commit.
            events: What is recorded before ``lease.released``.
        """
        with self.lock:
            self.write_derived(at_once=True)
            released = LeaseReleased(owner=self.holder.owner, lease=self.lease, reason=reason)
            if self.doors is None:
                for event in (*events, released):
                    self.note(event)
                return
            assert self.lease is not None
            nobody = lease.commit_for(
                self.doors.objects, None, self.lease, by=self.identity, when=self.when()
            )
            if not self._sealed(subject, (*events, released), None, None, lease_to=nobody):
                for event in events:
                    self.note(event)
            self.write_copy(git_commit_sha=self.run_tip)

    def lock_directory(self) -> None:
        """Keeps other drivers of a run without Git away for as long as this process lives.

        Raises:
            LeasedError: another process has it.
        """
        self._kept = self.directory.lock()

    def tell(self, code: str, text: str) -> None:
        """Says something to whoever watches, once nothing can be recorded any more."""
        said = RunNotice(level="warning", code=code, message=self.mask.text(text))
        self.on_record(Record(seq=self.state.seq, at=self.last_at, event=said))

    def give_up(self) -> None:
        """Frees the lease without a word, where nothing was done with it yet."""
        self.release("done")
        self.close()

    def close(self) -> None:
        self.journal.close()
        if self.doors is not None:
            # No process of git's is left to the garbage collector; the doors stay usable.
            self.doors.refs.close()
        if self._kept is not None:
            self._kept.close()

    def write_copy(self, *, git_commit_sha: Oid | None) -> None:
        """The copy of the state in the run directory, with the commit that Git cannot hold."""
        data = self._states.document(self.state, git_commit_sha=git_commit_sha)
        try:
            self.directory.write(layout.CHECKPOINT_JSON, data)
        except GitError as exc:
            self.notice("copy_failed", exc.message, level="info")

    def _next(self, event: Event, position: Position | None) -> Record:
        at = max(engine.stamp(self.clock()), self.last_at)
        return Record(seq=self.state.seq + 1, at=at, event=event, position=position)

    def put(self, event: Event, position: Position | None = None) -> Record:
        """Accepts one record more without the journal: the caller seals it at once."""
        record = self._next(event, position)
        self._accept(record)
        return record

    def mark(self) -> Mark:
        """Where the records stand, to go back to if a seal fails."""
        return self.state, list(self.unsealed), self.last_at

    def back_to(self, mark: Mark) -> None:
        """Forgets the records since a mark; they never left this process."""
        self.state, self.unsealed, self.last_at = mark[0], list(mark[1]), mark[2]

    def _accept(self, record: Record) -> None:
        self.state = engine.evolve(self.state, record)
        self.unsealed.append(record)
        self.last_at = record.at
        self.on_record(record)

    def when(self) -> int:
        """The time of a commit: that of the last record, in whole seconds."""
        return int(engine.moment(self.last_at).timestamp())

    def _sealed(
        self,
        subject: str,
        events: Sequence[Event],
        position: Position | None,
        commit: Oid | None,
        *,
        lease_to: Oid | None = None,
    ) -> bool:
        """Whether the records reached Git; if not, the state is as it was before them."""
        before = self.mark()
        for event in events:
            self.put(event, position)
        try:
            meta = self.commit_meta(subject, commit=commit)
            ref = layout.meta_ref(self.run, self.namespace)
            self.move(Move(ref, self._meta_tip(), meta), lease_to=lease_to)
        except (GitError, ConflictError) as exc:
            self.back_to(before)
            self.survive(exc, position)
            return False
        self.meta_tip = meta
        self.empty_journal()
        return True

    def _traced(self, record: Record, patch: Patch) -> str:
        """Puts the visit's traces into the metadata tree; gives the subject of the meta commit."""
        position, event = record.position, record.event
        assert self.meta_tree is not None
        assert position is not None
        assert isinstance(event, NodeFinished)
        cut_files: list[str] = []
        files = trace_files(self.directory.logs(str(position)), cut_files.append)
        for name in cut_files:
            self.notice("trace_cut", f"{name} is longer than 512 KiB", position=position)
        if patch.data:
            files[PATCH_FILE] = patch.data
        self.meta_tree.set_trace(position.node, files)
        what = (
            f"branch {position.branch}: {position}" if position.branch else f"checkpoint {position}"
        )
        return f"{what} ({event.outcome.status})"

    def commit_meta(
        self, subject: str, *, commit: Oid | None = None, ordinal: int | None = None
    ) -> Oid:
        """The next meta commit, on no ref yet: state, and all records that no meta commit holds."""
        assert self.doors is not None
        assert self.meta_tree is not None
        checkpoint = self._states.document(self.state)
        artifacts = self.blobs.files(referenced(self.state))
        tree = self.meta_tree.write(checkpoint, self.unsealed, artifacts)
        text = meta_message(
            subject,
            run=self.run,
            seq=self.state.seq,
            status=self.state.status,
            commit=commit,
            ordinal=ordinal,
        )
        return self._commit(tree, (self.meta_tip,) if self.meta_tip else (), text)

    def _commit_run(
        self, tip: Tip, record: Record, tree: Oid, meta: Oid, merged: tuple[Oid, ...]
    ) -> Oid:
        position, event = record.position, record.event
        assert position is not None
        assert isinstance(event, NodeFinished)
        trailers = CheckpointTrailers(
            run=self.run,
            node=position.node,
            status=event.outcome.status,
            completed=len(self.state.line_of(position.branch).completed_nodes),
            checkpoint=meta,
            visit=position.visit,
            ordinal=self.ordinal + 1 if position.branch is None else None,
            branch=position.branch,
        )
        return self._commit(tree, (tip.oid, *merged), checkpoint_message(trailers))

    def _commit(self, tree: Oid, parents: tuple[Oid, ...], text: str) -> Oid:
        assert self.doors is not None
        return self.doors.objects.write_commit(
            Commit(
                tree=tree,
                parents=parents,
                author=self.identity,
                committer=self.identity,
                when=self.when(),
                message=text,
            )
        )

    def move(self, *moves: Move, lease_to: Oid | None = None) -> None:
        """One transaction: the lease first, as it is or handed on, then these refs in order."""
        assert self.doors is not None
        assert (self.lease or lease_to) is not None
        held = lease.move_to(self.run, self.lease, lease_to or Oid(self.lease or ""))
        self.doors.refs.move((held, *moves), message=f"fabro: {self.run}")
        # What a gc that ran meanwhile took, as no ref named it yet, is written again from memory.
        self.doors.objects.look_again(final=lease_to is not None and self.meta_tip is not None)
        if lease_to is not None:
            self.lease = lease_to

    def _meta_tip(self) -> Oid:
        assert self.meta_tip is not None
        return self.meta_tip

    def empty_journal(self) -> None:
        self.unsealed = []
        self.journal.cut(0)

    def _lost(self, standing: Oid | None) -> LostLeaseError:
        """The error that names who holds the run now."""
        assert self.doors is not None
        holder = lease.holder_of(self.doors.objects, standing) if standing else None
        if holder is None:
            return LostLeaseError(
                f"the lease of the run was taken away: {self.run}",
                hint=f"git fabro resume {self.run}",
            )
        named = lease.leased(self.run, holder)
        return LostLeaseError(named.message, hint=named.hint)

    def survive(self, exc: FabroError, position: Position | None) -> None:
        """Git failed: the run goes on, as it is worth more than its record, and says so.

        Raises:
            LostLeaseError: the lease ref names another holder, which is read from the ref itself.
            RequiredCheckpointError: the settings require every checkpoint.
        """
        assert self.doors is not None
        standing = self.doors.refs.read(layout.lease_ref(self.run))
        if standing != self.lease:
            raise self._lost(standing) from exc
        if self.required:
            raise RequiredCheckpointError(exc.message, hint=exc.hint) from exc
        self.notice("checkpoint_failed", exc.message, position=position)
