"""Reading runs without holding them: tips, links, states, records. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from git_fabro import journal
from git_fabro.branches import Source
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.course import Course as Course
from git_fabro.course import Tips as Tips
from git_fabro.course import base_of as base_of
from git_fabro.course import course_of as course_of
from git_fabro.course import named_by_hand as named_by_hand
from git_fabro.course import ordinals_by_hand as ordinals_by_hand
from git_fabro.course import tips_of as tips_of
from git_fabro.doors import Doors
from git_fabro.errors import MissingObjectError, NotFoundError, RecordError
from git_fabro.journal import Entry
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RunState


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
        course = course._replace(meta=tips.meta_tip, verdict="on")
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
