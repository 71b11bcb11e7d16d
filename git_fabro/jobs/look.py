"""What runs look like from outside: rows of a list, one run whole, its records as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import journal, lease, reading
from git_fabro.checkpoint import codec, layout, message
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.doors import Doors
from git_fabro.errors import FabroError, NotFoundError, RecordError
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RUNNING, Json, RunState

INTERRUPTED = "interrupted"


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
    dead = holder is None or lease.is_alive(holder) is False
    return INTERRUPTED if dead else RUNNING


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A checkpoint: its place in the timeline, both commits, and what its message says."""

    ordinal: int
    run_commit: Oid
    said: message.CheckpointTrailers | None
    meta_commit: Oid | None


def timeline(doors: Doors, run: RunId) -> list[Found]:
    """The checkpoints of a run, the oldest first, from the run branch and the names of hand commits.

    Raises:
        NotFoundError: the run has no run branch.
    """
    tips = reading.tips_of(doors, run)
    if tips.run_tip is None:
        raise NotFoundError(f"the run has no branch here: {run}", hint="git fabro list -a")
    base = reading.base_of(doors, tips.meta_tip) if tips.meta_tip else None
    commits = list(doors.objects.history(tips.run_tip, stop=base))
    named = reading.named_by_hand(doors, tips.meta_tip) if tips.meta_tip else {}
    found: list[Found] = []
    for number, commit in enumerate(reversed(commits), start=1):
        said = message.parse_checkpoint_message(doors.objects.read_commit(commit).message)
        meta = named.get(commit) or (Oid(said.checkpoint) if said else None)
        found.append(Found(ordinal=number, run_commit=commit, said=said, meta_commit=meta))
    return found
