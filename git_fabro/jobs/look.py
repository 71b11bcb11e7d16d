"""What runs look like from outside: rows of a list, one run whole, its records as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from git_fabro import branches, history, journal, lease, reading, summary
from git_fabro.branches import LOCAL, Branches, Source
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.doors import Doors
from git_fabro.errors import FabroError, NotFoundError, RecordError
from git_fabro.fabroruns import FabroRun
from git_fabro.git.snapshot.model import ENGINE_NOTICE
from git_fabro.place import Place
from git_fabro.reading import Tips
from git_fabro.rundir import RunDirectory
from git_fabro.summary import Row
from git_fabro.workflow import engine
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import Record, RunNotice, Unknown
from git_fabro.workflow.state import BLOCKED, RUNNING, Json, Position, RunState

INTERRUPTED = "interrupted"
#: What Fabro's checkpoints are among records; nothing of ours has this kind.
FABRO_CHECKPOINT = "fabro.checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All of a run: what it was made with, its state, and where its refs stand.

    ``origin`` is ``local`` or the remote that has it; ``made_by`` is ``git-fabro`` or ``fabro``.
    """

    run: RunId
    made_with: Mapping[str, Json]
    state: RunState
    status: str
    run_tip: Oid | None
    meta_tip: Oid | None
    ordinal: int
    origin: str = LOCAL
    made_by: str = "git-fabro"
    run_branch: str = ""


def row(doors: Doors | None, home: Path, run: RunId) -> Row:
    """One run as a row; a run that cannot be read has ``?`` and says why."""
    try:
        found = branches.branches_of(_source(doors), run) if doors is not None else None
        quick = None if found is None else summary.quick(_source(doors), home, found)
        return quick or _row_of(look(doors, home, run))
    except FabroError as exc:
        return Row(run_id=run, status="?", created_at=summary.born(run), problem=exc.message)


def _row_of(whole: Whole) -> Row:
    made, state = whole.made_with, whole.state
    labels, parent = made.get("labels"), made.get("parent")
    return Row(
        run_id=whole.run,
        status=whole.status,
        workflow=summary.text(made.get("workflow_slug")),
        goal=summary.text(state.line.context_values.get("graph.goal")),
        node=state.line.next_node_id or state.line.current_node,
        checkpoints=whole.ordinal,
        created_at=summary.text(made.get("created_at")) or summary.born(whole.run),
        updated_at=state.timestamp,
        labels={k: summary.text(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        parent=parent if isinstance(parent, dict) else None,
        origin=whole.origin,
        is_over=whole.status in summary.OVER,
    )


def _source(doors: Doors | None) -> Source:
    assert doors is not None
    return Source(doors.repository, doors.objects, doors.refs)


def look(doors: Doors | None, home: Path, run: RunId) -> Whole:
    """A run as it stands now, its journal included.

    Raises:
        NotFoundError: there is no such run.
        RecordError: what is stored does not parse.
    """
    directory = RunDirectory.of(home, run)
    found = branches.branches_of(_source(doors), run) if doors is not None else None
    if doors is None or found is None or not found.tips:
        return _look_at_journal(run, directory)
    if not history.is_ours(_source(doors), found):
        return _look_at_fabros(FabroRun(_source(doors), found))
    if found.meta_tip is None:
        return _look_at_commits(doors, found)
    if found.meta_ref is not None and found.meta_ref.startswith(layout.REMOTES):
        return _look_at_remote(doors, found)
    seen = reading.view(doors, run, directory)
    return Whole(
        run=run,
        made_with=_made_with(doors, seen.course.meta),
        state=seen.state,
        status=_live_status(doors, run, seen.state),
        run_tip=found.run_tip,
        meta_tip=found.meta_tip,
        ordinal=seen.course.ordinal + len(seen.course.unrecorded),
        origin=found.origin,
        run_branch=layout.run_branch(run),
    )


def _made_with(doors: Doors, meta: Oid) -> Mapping[str, Json]:
    made = codec.parse_json(doors.objects.blob_at(meta, layout.RUN_JSON) or b"{}", layout.RUN_JSON)
    codec.check_schema(made, layout.RUN_JSON)
    return dict(made)


def _look_at_remote(doors: Doors, found: Branches) -> Whole:
    """A run as a remote had it when it was fetched; who drives it there, nobody here can say."""
    course = reading.course_of(doors, _tips(found))
    state = reading.state_at(doors, course.meta)
    return Whole(
        run=found.run,
        made_with=_made_with(doors, course.meta),
        state=state,
        status=state.status,
        run_tip=found.run_tip,
        meta_tip=found.meta_tip,
        ordinal=course.ordinal + len(course.unrecorded),
        origin=found.origin,
        run_branch=_shown(found.run_ref),
    )


def _tips(found: Branches) -> Tips:
    return Tips(
        run=found.run,
        run_tip=found.run_tip,
        meta_tip=found.meta_tip,
        lease=None,
        namespace="heads",
    )


def _look_at_commits(doors: Doors, found: Branches) -> Whole:
    """A run of ours whose metadata is not here: what its commits say of themselves."""
    places = history.Timeline(_source(doors), found).places()
    last = next((place.entry for place in places if place.entry.node is not None), None)
    state = RunState(status="?")
    if last is not None and last.node is not None:
        line = replace(state.line, current_node=NodeId(last.node))
        state = replace(state, line=line)
    return Whole(
        run=found.run,
        made_with={},
        state=state,
        status="?",
        run_tip=found.run_tip,
        meta_tip=None,
        ordinal=(last.ordinal or 0) if last is not None else 0,
        origin=found.origin,
        run_branch=_shown(found.run_ref),
    )


def _look_at_fabros(run: FabroRun) -> Whole:
    made, found = run.made(), run.branches
    return Whole(
        run=found.run,
        made_with={key: value for key, value in asdict(made).items() if value} if made else {},
        state=run.state(),
        status=run.status(),
        run_tip=found.run_tip,
        meta_tip=found.meta_tip,
        ordinal=len(list(run.places())),
        origin=found.origin,
        made_by="fabro",
        run_branch=_shown(found.run_ref),
    )


def _shown(ref: str | None) -> str:
    """A branch as people write it."""
    return (ref or "").removeprefix(layout.HEADS).removeprefix("refs/remotes/")


def _live_status(doors: Doors, run: RunId, state: RunState) -> str:
    if state.status != RUNNING:
        return state.status
    try:
        _, holder = lease.read(doors.refs, doors.objects, run)
    except NotFoundError:
        return INTERRUPTED
    if holder is not None and lease.is_alive(holder) is not False:
        return RUNNING
    return BLOCKED if _waits_to_go_on(state) else INTERRUPTED


def _waits_to_go_on(state: RunState) -> bool:
    """Whether nothing was interrupted: every open visit is a gate, answered or not."""
    lines = [state.line, *(branch.line for branch in state.branches.values() if not branch.status)]
    open_visits = [line.open_visit for line in lines if line.open_visit]
    inner = [visit for visit in open_visits if visit not in state.fan_outs]
    return bool(inner) and all(visit in state.gates for visit in inner)


def _look_at_journal(run: RunId, directory: RunDirectory) -> Whole:
    entries = journal.read(directory.journal).entries
    data = directory.read(layout.RUN_JSON)
    if not entries or data is None:
        raise NotFoundError(f"no such run: {run}", hint="git fabro list -a")
    state = engine.replay(entry.record for entry in entries)
    status = state.status
    if status == RUNNING and not directory.is_locked():
        status = INTERRUPTED
    return Whole(
        run=run,
        made_with=codec.parse_json(data, layout.RUN_JSON),
        state=state,
        status=status,
        run_tip=None,
        meta_tip=None,
        ordinal=0,
    )


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a stream of records ends before its end: the last good number, and what is wrong."""

    after: int
    reason: str


def records(doors: Doors | None, home: Path, run: RunId) -> Iterator[Record | Stop]:
    """All records of a run in order, those of the journal last; a ``Stop`` where it is damaged."""
    directory = RunDirectory.of(home, run)
    found = branches.branches_of(_source(doors), run) if doors is not None else None
    if doors is None or found is None or not found.tips:
        for entry in journal.read(directory.journal).entries:
            yield entry.record
        return
    if not history.is_ours(_source(doors), found):
        yield from _of_fabros(FabroRun(_source(doors), found))
    elif found.meta_ref is not None and found.meta_ref.startswith(layout.REMOTES):
        yield from _sealed(doors, reading.course_of(doors, _tips(found)).meta)
    elif found.meta_tip is not None:
        seen = reading.view(doors, run, directory)
        last: Record | Stop | None = None
        for last in _sealed(doors, seen.course.meta):
            yield last
        if not isinstance(last, Stop):
            yield from (entry.record for entry in seen.counted)


def _sealed(doors: Doors, meta: Oid) -> Iterator[Record | Stop]:
    """The records that the chain holds; a ``Stop`` where it is damaged."""
    after = 0
    try:
        for record in reading.records(doors, meta):
            after = record.seq
            yield record
    except RecordError as exc:
        yield Stop(after, exc.message)


def _of_fabros(run: FabroRun) -> Iterator[Record | Stop]:
    """The checkpoints of a run that has no records, each as one."""
    for number, place in enumerate(reversed(list(run.places())), start=1):
        if place.entry.problem:
            yield Stop(number - 1, place.entry.problem)
            return
        yield _as_record(run, number, place)


def _as_record(run: FabroRun, number: int, place: Place) -> Record:
    entry = place.entry
    node = NodeId(entry.node or "")
    data: dict[str, Json] = {
        "status": entry.status,
        "run_commit": entry.run_commit,
        "meta_commit": entry.meta_commit,
        "duration_ms": run.detail(place).duration_ms,
    }
    state = run.state_json(entry) if entry.meta_commit is not None else None
    outcomes = state.get("node_outcomes") if isinstance(state, dict) else None
    if isinstance(outcomes, dict) and node in outcomes:
        data["outcome"] = outcomes[node]
    return Record(
        seq=number,
        at=engine.stamp_of(entry.when or 0),
        event=Unknown(kind=FABRO_CHECKPOINT, origin="external", data=data),
        position=Position(node=node, visit=entry.visit or 1),
    )


def snapshots_by(doors: Doors | None, home: Path, run: RunId) -> str:
    """Which engine records the work trees of a run, and why where it is not the fast one."""
    said = "the fast engine"
    for record in records(doors, home, run):
        event = record.event if isinstance(record, Record) else None
        if isinstance(event, RunNotice) and event.code == ENGINE_NOTICE:
            said = event.message.removeprefix("snapshots by ")
    return said


class Watch:
    """A run seen again and again; it is read anew only when its refs or its journal have moved."""

    def __init__(self, doors: Doors | None, home: Path, run: RunId, *, after: int = 0) -> None:
        self._doors, self._home, self._run = doors, home, run
        self._seen: object = None
        self._whole: Whole | None = None
        self._read_at: object = None
        self._last = after

    def look(self) -> Whole:
        """The run as it stands now; whether its driver lives is asked each time."""
        mark = self._mark()
        if self._whole is None or mark != self._seen:
            self._whole, self._seen = look(self._doors, self._home, self._run), mark
        elif self._whole.state.status == RUNNING:
            status = self._live()
            self._whole = replace(self._whole, status=status)
        return self._whole

    def new_records(self) -> Iterator[Record]:
        """The records that were not given yet. Ask for them after ``look``, and none is missed."""
        mark = self._mark()
        if mark == self._read_at:
            return
        for one in records(self._doors, self._home, self._run):
            if isinstance(one, Record) and one.seq > self._last:
                self._last = one.seq
                yield one
        self._read_at = mark

    def _live(self) -> str:
        assert self._whole is not None
        if self._doors is not None and self._whole.meta_tip is not None:
            return _live_status(self._doors, self._run, self._whole.state)
        locked = RunDirectory.of(self._home, self._run).is_locked()
        return RUNNING if locked else INTERRUPTED

    def _mark(self) -> object:
        path = RunDirectory.of(self._home, self._run).journal
        try:
            found = path.stat()
            size = (found.st_size, found.st_mtime_ns, found.st_ino)
        except OSError:
            size = (0, 0, 0)
        tips = reading.tips_of(self._doors, self._run) if self._doors is not None else None
        return tips, size
