"""Reading runs without holding them: tips, links, states, records. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from git_fabro import journal
from git_fabro.branches import Source
from git_fabro.checkpoint import codec, layout, message
from git_fabro.checkpoint.model import Commit, Oid, RunId
from git_fabro.doors import Doors
from git_fabro.errors import MissingObjectError, NotFoundError, RecordError
from git_fabro.journal import Entry
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RunState

_LONGEST_WALK = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Where the refs of a run stand; None where there is no such ref."""

    run: RunId
    run_tip: Oid | None
    meta_tip: Oid | None
    lease: Oid | None
    namespace: layout.Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How the metadata tip stands to the run tip (the manual, "The invariant").

    ``meta`` is the meta commit to read. ``verdict`` is ``on`` course, ``forward`` (the ref is
    behind the run tip's meta commit) or ``back`` (a checkpoint follows: an interrupted rewind).
    ``unrecorded`` are commits by hand above the last one that a meta commit knows, oldest first;
    ``ordinal`` counts the checkpoints below them.
    """

    meta: Oid
    verdict: Literal["on", "forward", "back"]
    ordinal: int
    recorded_tip: Oid | None
    unrecorded: tuple[Oid, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A run as it stands: the state of its refs, and of the journal lines that count on top."""

    tips: Tips
    course: Course
    sealed: RunState
    state: RunState
    counted: tuple[Entry, ...] = ()
    stale: bool = False
    torn_bytes: int = 0
    good_bytes: int = 0


#: Where a run without Git stands: nowhere.
NO_COURSE = Course(meta=Oid(""), verdict="on", ordinal=0, recorded_tip=None)


def no_tips(run: RunId) -> Tips:
    """The tips of a run without Git."""
    return Tips(run=run, run_tip=None, meta_tip=None, lease=None, namespace="heads")


def runs(doors: Doors) -> list[RunId]:
    """The ids of all runs that have a ref, sorted: the oldest first."""
    prefixes = (layout.RUN_PREFIX, layout.META_PREFIX, layout.HIDDEN_META_PREFIX)
    found = {name.removeprefix(p) for p in prefixes for name in doors.refs.list(p)}
    return sorted(RunId(name) for name in found if layout.is_run_id(name))


def tips_of(doors: Doors, run: RunId) -> Tips:
    """Where a run's refs stand now."""
    heads = doors.refs.read(layout.meta_ref(run, "heads"))
    hidden = None if heads else doors.refs.read(layout.meta_ref(run, "hidden"))
    return Tips(
        run=run,
        run_tip=doors.refs.read(layout.run_ref(run)),
        meta_tip=heads or hidden,
        lease=doors.refs.read(layout.lease_ref(run)),
        namespace="hidden" if hidden else "heads",
    )


def state_now(doors: Doors | None, run: RunId, directory: RunDirectory) -> RunState:
    """Where a run stands, its journal included; without Git the journal is all there is.

    Raises:
        NotFoundError: there is no such run.
        RecordError: what is stored does not parse.
    """
    if doors is not None and tips_of(doors, run).meta_tip is not None:
        return view(doors, run, directory).state
    entries = journal.read(directory.journal).entries
    if not entries:
        raise NotFoundError(f"no such run: {run}", hint="git fabro list -a")
    return engine.replay(entry.record for entry in entries)


def view(doors: Doors, run: RunId, directory: RunDirectory, *, by_hand: bool = False) -> View:
    """A run as it stands, its journal included.

    Args:
        doors: The repository.
        run: The run.
        directory: Its run directory.
        by_hand: Somebody is seen to have moved the run branch, by an amend or a reset: the metadata
            is not behind an interrupted rewind, and its tip counts.

    Raises:
        NotFoundError: the run has no metadata here.
        RecordError: what is stored does not parse.
    """
    tips = tips_of(doors, run)
    if tips.meta_tip is None:
        raise NotFoundError(f"the run has no metadata here: {run}", hint=f"git log fabro/run/{run}")
    course = course_of(doors, tips)
    if by_hand and course.verdict == "back" and course.unrecorded:
        course = replace(course, meta=tips.meta_tip, verdict="on")
    sealed = state_at(doors, course.meta)
    read = journal.read(directory.journal)
    counted, stale = _counted(read.entries, sealed.seq, course.recorded_tip)
    return View(
        tips=tips,
        course=course,
        sealed=sealed,
        state=engine.replay((entry.record for entry in counted), sealed),
        counted=counted,
        stale=stale,
        torn_bytes=read.torn_bytes,
        good_bytes=read.good_bytes,
    )


def _counted(
    entries: Sequence[Entry], sealed_seq: int, run_tip: Oid | None
) -> tuple[tuple[Entry, ...], bool]:
    """The journal lines that count, and whether others belong to a history that was left."""
    above = [entry for entry in entries if entry.record.seq > sealed_seq]
    counted = [entry for entry in above if entry.on == run_tip]
    numbers = [entry.record.seq for entry in counted]
    if numbers != list(range(sealed_seq + 1, sealed_seq + 1 + len(numbers))):
        return (), bool(above)
    return tuple(counted), len(counted) != len(above)


def course_of(doors: Doors, tips: Tips) -> Course:
    """How the metadata tip stands to the run tip.

    Raises:
        RecordError: neither is reachable from the other.
    """
    assert tips.meta_tip is not None
    if tips.run_tip is None:
        return Course(meta=tips.meta_tip, verdict="on", ordinal=0, recorded_tip=None)
    unrecorded: list[Oid] = []
    named = _named_commits(doors, tips)
    tip: Oid | None = tips.run_tip
    while tip is not None and len(unrecorded) < _LONGEST_WALK:
        found = _link(doors, tips, tip, named)
        if found is not None:
            meta, verdict, ordinal = found
            return Course(
                meta=meta,
                verdict=verdict,
                ordinal=ordinal,
                recorded_tip=tip,
                unrecorded=tuple(reversed(unrecorded)),
            )
        unrecorded.append(tip)
        parents = doors.objects.parents(tip)
        tip = parents[0] if parents else None
    return _before_the_first(doors, tips, unrecorded)


def _before_the_first(doors: Doors, tips: Tips, unrecorded: list[Oid]) -> Course:
    """No checkpoint yet: what lies above the base was committed by hand."""
    assert tips.meta_tip is not None
    base = base_of(doors, tips.meta_tip)
    above = unrecorded[: unrecorded.index(base)] if base in unrecorded else []
    first = tips.meta_tip
    for step, commit in doors.objects.walk(tips.meta_tip):
        if _is_checkpoint(commit):
            first = commit.parents[0] if commit.parents else step
    return Course(
        meta=first,
        verdict="on" if first == tips.meta_tip else "back",
        ordinal=0,
        recorded_tip=base,
        unrecorded=tuple(reversed(above)),
    )


def base_of(doors: Doors, meta: Oid) -> Oid | None:
    """The commit at which the run branch began, as start.json says."""
    data = doors.objects.blob_at(meta, layout.START_JSON)
    value = codec.parse_json(data, layout.START_JSON) if data else {}
    base = value.get("base_sha") if isinstance(value, dict) else None
    return Oid(base) if isinstance(base, str) else None


Link = tuple[Oid, Literal["on", "forward", "back"], int]


def _link(
    doors: Doors, tips: Tips, commit: Oid, named: dict[Oid, tuple[Oid, int, bool]]
) -> Link | None:
    """The meta commit of a run commit: the one that names it, else the one its trailer names."""
    assert tips.meta_tip is not None
    if commit in named:
        meta, ordinal, followed = named[commit]
        return meta if followed else tips.meta_tip, "back" if followed else "on", ordinal
    said = message.parse_checkpoint_message(doors.objects.read_commit(commit).message)
    if said is None or said.branch is not None:
        return None
    meta = Oid(said.checkpoint)
    followed = False
    for step in doors.objects.history(tips.meta_tip, limit=_LONGEST_WALK):
        if step == meta:
            verdict: Literal["on", "back"] = "back" if followed else "on"
            return (meta if followed else tips.meta_tip), verdict, said.ordinal or 0
        followed = followed or _follows(doors, tips.run_tip, doors.objects.read_commit(step))
    if doors.objects.exists(meta) and doors.objects.is_ancestor(tips.meta_tip, meta):
        return meta, "forward", said.ordinal or 0
    return None


def _is_checkpoint(commit: Commit) -> bool:
    return commit.subject.startswith(("checkpoint ", "commit "))


def _follows(doors: Doors, run_tip: Oid | None, commit: Commit) -> bool:
    """Whether a meta commit is of a checkpoint that does not lie below the run tip.

    One that names a commit below it was made later for another reason: that commit was rewritten.
    """
    if not commit.subject.startswith("commit "):
        return _is_checkpoint(commit)
    named = message.trailers_of(commit.message).get(layout.TRAILER_COMMIT)
    if named is None or run_tip is None or not doors.objects.exists(Oid(named)):
        return True
    return not doors.objects.is_ancestor(Oid(named), run_tip)


def _named_commits(doors: Doors, tips: Tips) -> dict[Oid, tuple[Oid, int, bool]]:
    """Commits by hand that meta commits name: meta commit, ordinal, whether a checkpoint follows.

    Looks as far back as the last checkpoint of a node, which is where a run tip can be.
    """
    assert tips.meta_tip is not None
    found: dict[Oid, tuple[Oid, int, bool]] = {}
    followed = False
    for step in doors.objects.history(tips.meta_tip, limit=_LONGEST_WALK):
        commit = doors.objects.read_commit(step)
        if commit.subject.startswith("checkpoint "):
            break
        trailers = message.trailers_of(commit.message)
        if layout.TRAILER_COMMIT in trailers:
            ordinal = int(trailers.get(layout.TRAILER_ORDINAL, "0") or 0)
            found.setdefault(Oid(trailers[layout.TRAILER_COMMIT]), (step, ordinal, followed))
            followed = followed or _follows(doors, tips.run_tip, commit)
    return found


def named_by_hand(doors: Doors, meta_tip: Oid) -> dict[Oid, Oid]:
    """All commits made by hand that the chain names, and the meta commits that name them."""
    return {named: meta for named, (meta, _) in ordinals_by_hand(doors, meta_tip).items()}


def ordinals_by_hand(doors: Doors, meta_tip: Oid) -> dict[Oid, tuple[Oid, int]]:
    """The same, each meta commit with the ordinal that it gives the commit."""
    found: dict[Oid, tuple[Oid, int]] = {}
    for meta, commit in doors.objects.walk(meta_tip):
        trailers = message.trailers_of(commit.message)
        if layout.TRAILER_COMMIT in trailers:
            ordinal = int(trailers.get(layout.TRAILER_ORDINAL, "0") or 0)
            found.setdefault(Oid(trailers[layout.TRAILER_COMMIT]), (meta, ordinal))
    return found


def state_at(doors: Doors | Source, meta: Oid) -> RunState:
    """The state that a meta commit holds.

    Raises:
        RecordError: it has none, or it does not parse.
    """
    data = doors.objects.blob_at(meta, layout.CHECKPOINT_JSON)
    if data is None:
        raise RecordError(f"no {layout.CHECKPOINT_JSON} in {meta[:12]}")
    where = f"{layout.CHECKPOINT_JSON} in {meta[:12]}"
    return codec.state_from_json(codec.parse_json(data, where), where)


def records_at(doors: Doors, meta: Oid) -> tuple[Record, ...]:
    """The records that one meta commit adds."""
    data = doors.objects.blob_at(meta, layout.RECORDS)
    return codec.records_from(data or b"", f"{layout.RECORDS} in {meta[:12]}")


def chain(doors: Doors, meta_tip: Oid) -> list[Oid]:
    """The meta commits of a run, the oldest first.

    Raises:
        MissingObjectError: a commit is absent.
    """
    found = list(doors.objects.history(meta_tip))
    found.reverse()
    return found


def records(doors: Doors, meta_tip: Oid) -> Iterator[Record]:
    """All records that the chain holds, in order.

    Raises:
        RecordError: they do not parse, or their numbers have a gap.
    """
    after = 0
    for meta in chain(doors, meta_tip):
        for record in records_at(doors, meta):
            if record.seq != after + 1:
                raise RecordError(f"record {record.seq} follows {after} in {meta[:12]}")
            after = record.seq
            yield record


def missing(doors: Doors, *oids: Oid) -> None:
    """Looks objects up before anything relies on them.

    Raises:
        MissingObjectError: one is absent.
    """
    for oid in oids:
        if not doors.objects.exists(oid):
            raise MissingObjectError(f"object is missing: {oid}", hint="git fsck")
