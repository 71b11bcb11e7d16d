"""What runs look like from outside: rows of a list, one run whole, its records as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from git_fabro import journal, lease, reading
from git_fabro.checkpoint import codec, layout, message
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.doors import Doors
from git_fabro.errors import FabroError, NotFoundError, RecordError
from git_fabro.git.snapshot.model import ENGINE_NOTICE
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.records import NodeFinished, Record, RunNotice
from git_fabro.workflow.state import BLOCKED, RUNNING, Json, RunState

INTERRUPTED = "interrupted"
_MOST_TOUCHED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run in a list; ``status`` is ``interrupted`` where it says running and nobody drives it."""

    run_id: str
    status: str
    workflow: str
    goal: str
    node: str | None
    checkpoints: int
    created_at: str
    updated_at: str
    labels: Mapping[str, str]
    parent: Mapping[str, Json] | None
    origin: str = "local"
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """All of a run: what it was made with, its state, and where its refs stand."""

    run: RunId
    made_with: Mapping[str, Json]
    state: RunState
    status: str
    run_tip: Oid | None
    meta_tip: Oid | None
    ordinal: int


def row(doors: Doors | None, home: Path, run: RunId) -> Row:
    """One run as a row; a run that cannot be read has ``?`` and says why."""
    try:
        whole = look(doors, home, run)
    except FabroError as exc:
        return Row(
            run_id=run,
            status="?",
            workflow="",
            goal="",
            node=None,
            checkpoints=0,
            created_at=_born(run),
            updated_at="",
            labels={},
            parent=None,
            problem=exc.message,
        )
    made, state = whole.made_with, whole.state
    labels, parent = made.get("labels"), made.get("parent")
    return Row(
        run_id=run,
        status=whole.status,
        workflow=_text(made.get("workflow_slug")),
        goal=_text(state.line.context_values.get("graph.goal")),
        node=state.line.next_node_id or state.line.current_node,
        checkpoints=whole.ordinal,
        created_at=_text(made.get("created_at")) or _born(run),
        updated_at=state.timestamp,
        labels={k: _text(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        parent=parent if isinstance(parent, dict) else None,
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _born(run: RunId) -> str:
    if not layout.is_ulid(run):
        return ""
    when = datetime.fromtimestamp(layout.ulid_milliseconds(run) / 1000, UTC)
    return engine.stamp(when)


def look(doors: Doors | None, home: Path, run: RunId) -> Whole:
    """A run as it stands now, its journal included.

    Raises:
        NotFoundError: there is no such run.
        RecordError: what is stored does not parse.
    """
    directory = RunDirectory.of(home, run)
    tips = reading.tips_of(doors, run) if doors is not None else reading.no_tips(run)
    if doors is None or tips.meta_tip is None:
        return _look_at_journal(run, directory)
    seen = reading.view(doors, run, directory)
    data = doors.objects.blob_at(seen.course.meta, layout.RUN_JSON) or b"{}"
    made = codec.parse_json(data, layout.RUN_JSON)
    codec.check_schema(made, layout.RUN_JSON)
    return Whole(
        run=run,
        made_with=made,
        state=seen.state,
        status=_live_status(doors, run, seen.state),
        run_tip=tips.run_tip,
        meta_tip=tips.meta_tip,
        ordinal=seen.course.ordinal + len(seen.course.unrecorded),
    )


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
    after = 0
    directory = RunDirectory.of(home, run)
    tips = reading.tips_of(doors, run) if doors is not None else reading.no_tips(run)
    if doors is None or tips.meta_tip is None:
        for entry in journal.read(directory.journal).entries:
            yield entry.record
        return
    seen = reading.view(doors, run, directory)
    try:
        for record in reading.records(doors, seen.course.meta):
            after = record.seq
            yield record
    except RecordError as exc:
        yield Stop(after, exc.message)
        return
    for entry in seen.counted:
        yield entry.record


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


Link = Literal["ok", "missing", "foreign", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A checkpoint: its place in the timeline, both commits, and what its message says.

    ``said`` is None for a commit made by hand. ``named_meta_commit`` is what its trailer says,
    ``meta_commit`` the one on the run's own chain that belongs to it. ``link`` is ``ok``,
    ``missing`` (the named one is not there), ``foreign`` (on another run's chain) or ``none``.
    """

    ordinal: int
    run_commit: Oid
    said: message.CheckpointTrailers | None
    meta_commit: Oid | None
    named_meta_commit: Oid | None
    link: Link


def timeline(doors: Doors, run: RunId) -> list[Found]:
    """The checkpoints of a run, the oldest first: the commits of its branch above the base.

    Raises:
        NotFoundError: the run has no run branch.
    """
    tips = reading.tips_of(doors, run)
    if tips.run_tip is None:
        raise NotFoundError(f"the run has no branch here: {run}", hint="git fabro list -a")
    meta_tip = reading.course_of(doors, tips).meta if tips.meta_tip else None
    base = reading.base_of(doors, meta_tip) if meta_tip else None
    chain = frozenset(doors.objects.history(meta_tip)) if meta_tip else frozenset()
    by_hand = reading.named_by_hand(doors, meta_tip) if meta_tip else {}
    commits = list(doors.objects.history(tips.run_tip, stop=base))
    return [
        _found(doors, number, commit, by_hand.get(commit), chain)
        for number, commit in enumerate(reversed(commits), start=1)
    ]


def _found(
    doors: Doors, ordinal: int, commit: Oid, naming: Oid | None, chain: frozenset[Oid]
) -> Found:
    said = None
    if naming is None:
        said = message.parse_checkpoint_message(doors.objects.read_commit(commit).message)
    named = Oid(said.checkpoint) if said is not None else None
    link: Link = "ok" if naming is not None else "none"
    if named is not None:
        elsewhere: Link = "foreign" if doors.objects.exists(named) else "missing"
        link = "ok" if named in chain else elsewhere
    return Found(
        ordinal=ordinal,
        run_commit=commit,
        said=said,
        meta_commit=naming or (named if link == "ok" else None),
        named_meta_commit=named,
        link=link,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint as ``show --json`` prints it (git-fabro(1)).

    ``kind`` is ``node``, or ``commit`` for one made by hand: then node, visit and status are None.
    ``at`` is RFC 3339; the commits are named in full; ``link`` is as in ``Found``.
    """

    ordinal: int
    kind: Literal["node", "commit"]
    node: str | None
    visit: int | None
    status: str | None
    at: str
    duration_ms: int | None
    files_changed: int | None
    run_commit: Oid
    meta_commit: Oid | None
    named_meta_commit: Oid | None
    link: Link


def checkpoint(doors: Doors, found: Found) -> Checkpoint:
    """A checkpoint with its time, its duration and how many files it changed."""
    said, finished = found.said, _finished(doors, found)
    touched = finished.outcome.files_touched if finished is not None else ()
    # The record names at most 1,000 paths; of more, and of commits by hand, the trees are asked.
    counted = finished is not None and len(touched) < _MOST_TOUCHED
    return Checkpoint(
        ordinal=found.ordinal,
        kind="node" if said else "commit",
        node=said.node if said else None,
        visit=said.visit if said else None,
        status=said.status if said else None,
        at=engine.stamp_of(doors.objects.read_commit(found.run_commit).when),
        duration_ms=finished.duration_ms if finished is not None else None,
        files_changed=len(touched) if counted else _changed(doors, found.run_commit),
        run_commit=found.run_commit,
        meta_commit=found.meta_commit,
        named_meta_commit=found.named_meta_commit,
        link=found.link,
    )


def _finished(doors: Doors, found: Found) -> NodeFinished | None:
    """The record of the visit that a checkpoint ends; None where there is none to be read."""
    if found.said is None or found.meta_commit is None:
        return None
    for record in reading.records_at(doors, found.meta_commit):
        here = record.position is not None and record.position.node == found.said.node
        if here and isinstance(record.event, NodeFinished):
            return record.event
    return None


def _changed(doors: Doors, commit: Oid) -> int | None:
    """How many paths differ from the commit before; None for a root, which has none before it."""
    parents = doors.objects.parents(commit)
    return len(doors.objects.diff(parents[0], commit)) if parents else None


def interior(doors: Doors | None, home: Path, run: RunId) -> dict[str, str]:
    """The nodes that ran inside fan-outs, and the outermost parallel node of each."""
    outer: dict[str, str] = {}
    for one in records(doors, home, run):
        position = one.position if isinstance(one, Record) else None
        if position is not None and position.branch is not None:
            parallel = position.branch.partition("@")[0]
            if position.node != parallel:
                outer[position.node] = parallel
    for node, parallel in outer.items():
        while parallel in outer:
            parallel = outer[parallel]
        outer[node] = parallel
    return outer
