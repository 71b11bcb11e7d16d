"""Going on with a run: from its refs alone, from a journal that is ahead, or without Git at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from git_fabro import branches, history, homes, lease, localizing, opening, reading, workflows
from git_fabro.branches import Source
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.doors import Doors
from git_fabro.errors import ConflictError, NotFoundError, RecordError, RequestError
from git_fabro.git import worktree
from git_fabro.handlers import table
from git_fabro.handlers.guardian import end_leftovers
from git_fabro.jobs.run.begin import session_of
from git_fabro.jobs.run.crew import Resumption, Terms, work
from git_fabro.reading import View
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import conclusion, engine
from git_fabro.workflow.graph import CONDITIONAL, EXIT, HUMAN, START, WAIT, Graph, NodeId
from git_fabro.workflow.records import Record
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import APPLIED, FAIL, PARTIAL, SUCCESS, Json, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for, parsed; ``run`` is resolved."""

    run: RunId
    folder: Path
    environment: Mapping[str, str]
    trust: bool = False
    take_over: bool = False
    terms: Terms = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a run was made with, read back."""

    source: bytes
    values: Mapping[str, Json]

    def text(self, key: str, default: str = "") -> str:
        value = self.values.get(key, default)
        return value if isinstance(value, str) else default

    def table(self, key: str) -> dict[str, Json]:
        value = self.values.get(key)
        return dict(value) if isinstance(value, dict) else {}

    @property
    def includes(self) -> dict[str, str]:
        return {name: str(text) for name, text in self.table("includes").items()}

    @property
    def in_place(self) -> bool:
        return self.table("settings").get("in_place") is True

    def admit(self) -> tuple[Graph, Settings]:
        """The graph and the settings again.

        Raises:
            WorkflowError: this program does not admit the workflow.
        """
        settings = {k: v for k, v in self.table("settings").items() if k != "in_place"}
        return workflows.readmit(
            self.source,
            self.text("workflow_file", "graph.fabro"),
            self.includes,
            settings,
            kinds=table.own_kinds(),
            hint=f"git fabro fork --workflow FILE {self.text('run_id')}",
        )


def resume(
    request: Request,
    doors: Doors | None,
    *,
    on_record: Callable[[Record], None],
    began: Callable[[RunId], None],
) -> RunState:
    """Goes on with a run until it ends, waits for people, or is stopped.

    Raises:
        LeasedError: another process drives it.
        RequestError: it has ended, or its workflow is not admitted here.
        NotFoundError: there is no such run.
    """
    if doors is not None:
        localizing.make_local(doors, request.run)
        _refuse_fabros(doors, request.run)
    if doors is not None and reading.tips_of(doors, request.run).meta_tip is not None:
        return _resume_in_git(request, doors, on_record, began)
    home = homes.home(doors.repository if doors else None, request.folder, request.environment)
    directory = RunDirectory.of(home, request.run)
    if not directory.journal.exists():
        raise NotFoundError(f"no such run: {request.run}", hint="git fabro list -a")
    return _resume_journal(request, directory, on_record, began)


def _resume_in_git(
    request: Request,
    doors: Doors,
    on_record: Callable[[Record], None],
    began: Callable[[RunId], None],
) -> RunState:
    run, home = request.run, homes.home(doors.repository, request.folder, request.environment)
    directory = RunDirectory.of(home, run)
    tips = reading.tips_of(doors, run)
    assert tips.meta_tip is not None
    recorded = recorded_at(doors, tips.meta_tip)
    graph, settings = recorded.admit()
    _check_trust(request, doors, recorded, settings)
    session, _ = session_of(request.environment, doors, settings, on_record)
    refs = (layout.run_ref(run), layout.meta_ref(run, tips.namespace), layout.lease_ref(run))
    _refuse_ended(reading.view(doors, run, directory).state, run)
    _check_refs(request, doors, tips, session.holder)
    now_s = session.clock().timestamp()
    worktree.remove_stale_locks(doors.repository, refs, now_s=now_s)
    log, seen = opening.take(doors, run, directory, session, take_over=request.take_over)
    try:
        end_leftovers(directory.group, run)
        _check_in_place(recorded, doors, seen)
        resumption = _resumption(graph, seen)
        log.required = settings.checkpoint_required
    except BaseException:
        log.give_up()
        raise
    began(run)
    return work(
        log,
        graph,
        settings,
        request.terms,
        environment=request.environment,
        folder=doors.repository.top,
        in_place=recorded.in_place,
        repository=doors.repository,
        resumption=resumption,
    )


def _refuse_fabros(doors: Doors, run: RunId) -> None:
    source = Source(doors.repository, doors.objects, doors.refs)
    found = branches.branches_of(source, run)
    if found.tips and not history.is_ours(source, found):
        raise RequestError(
            f"Fabro made this run; only a fork of it can go on: {run}",
            hint=f"git fabro fork {run}",
        )


def _check_refs(request: Request, doors: Doors, tips: reading.Tips, holder: lease.Holder) -> None:
    """What must hold of the refs before anything of the run is touched.

    Raises:
        LeasedError: another process drives the run.
        NotFoundError: the run branch is not here.
    """
    if tips.lease is not None:
        lease.check_free(
            doors.refs, doors.objects, request.run, holder, take_over=request.take_over
        )
    if tips.run_tip is None:
        branch = layout.run_branch(request.run)
        raise NotFoundError(
            f"the run branch is not here: {branch}", hint=f"git fetch REMOTE {branch}:{branch}"
        )


def recorded_at(doors: Doors, meta: Oid) -> Recorded:
    """What a run was made with, as its metadata says.

    Raises:
        RecordError: it is not there, or does not parse.
    """
    source = doors.objects.blob_at(meta, layout.GRAPH)
    data = doors.objects.blob_at(meta, layout.RUN_JSON)
    if source is None or data is None:
        raise RecordError(
            f"the run's workflow is not in its metadata: {meta[:12]}",
            hint="git fabro fork --workflow FILE",
        )
    value = codec.parse_json(data, layout.RUN_JSON)
    codec.check_schema(value, layout.RUN_JSON)
    return Recorded(source=source, values=value)


def _check_trust(request: Request, doors: Doors, recorded: Recorded, settings: Settings) -> None:
    """What a clone has not admitted runs only if somebody says so, after it was shown.

    Raises:
        UntrustedError: it is not admitted, and nobody said so.
    """
    digest = workflows.digest_of(recorded.source, recorded.includes, settings)
    if digest in workflows.admitted_digests(doors.repository):
        return
    if not request.trust:
        raise UntrustedError(
            f"the workflow of this run is not admitted here: {request.run}",
            recorded.source.decode("utf-8", "replace"),
            settings,
            hint=f"git fabro resume --trust {request.run}",
        )
    workflows.admit_digest(doors.repository, digest)


class UntrustedError(RequestError):
    """A workflow that this clone has not admitted; carries what it would run."""

    def __init__(self, message: str, source: str, settings: Settings, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.source = source
        self.settings = settings


def _refuse_ended(state: RunState, run: RunId) -> None:
    if state.status in (SUCCESS, PARTIAL, APPLIED):
        raise RequestError(
            f"the run has ended in {state.status}: {run}", hint=f"git fabro show {run}"
        )


def _check_in_place(recorded: Recorded, doors: Doors, seen: View) -> None:
    """An in-place run goes on only where it began."""
    if not recorded.in_place:
        return
    base = reading.base_of(doors, seen.course.meta)
    if doors.head() != base:
        raise ConflictError(
            f"HEAD is not where the in-place run began: {seen.tips.run}",
            hint=f"git switch --detach {base}",
        )


def _resumption(graph: Graph, seen: View) -> Resumption:
    """Which visits run anew: those in flight, or the one that ended the run in failure."""
    state = seen.state
    if state.status == FAIL:
        node = conclusion.failed_visit(graph, state)
        if engine.over_limit(graph, state.line, node):
            raise RequestError(
                engine.limit_message(graph, state.line, node), hint="begin another run"
            )
        visit = f"{node}@{state.line.node_visits.get(node, 0) + 1}"
        return Resumption(after=state.seq, again=(visit,), unfinished=())
    lines = [state.line, *(branch.line for branch in state.branches.values() if not branch.status)]
    again = tuple(line.open_visit for line in lines if line.open_visit)
    return Resumption(
        after=state.seq,
        again=again,
        interrupted=any(_leaves_files(graph, visit) for visit in again),
        unfinished=tuple(opening.unfinished(seen)),
    )


def _leaves_files(graph: Graph, visit: str) -> bool:
    """Whether a node in flight can have left half of a change in a work tree."""
    node = graph.nodes.get(NodeId(visit.rpartition("@")[0]))
    return node is None or node.kind not in (HUMAN, WAIT, START, EXIT, CONDITIONAL)


def _resume_journal(
    request: Request,
    directory: RunDirectory,
    on_record: Callable[[Record], None],
    began: Callable[[RunId], None],
) -> RunState:
    """Goes on with a run that never had Git: its journal is all there is."""
    source, data = directory.read(layout.GRAPH), directory.read(layout.RUN_JSON)
    if source is None or data is None:
        raise NotFoundError(f"no workflow in the run directory: {directory.path}")
    recorded = Recorded(source=source, values=codec.parse_json(data, layout.RUN_JSON))
    graph, settings = recorded.admit()
    session, _ = session_of(request.environment, None, settings, on_record)
    log, state = opening.take_journal(request.run, directory, session)
    try:
        _refuse_ended(state, request.run)
        end_leftovers(directory.group, request.run)
    except BaseException:
        log.give_up()
        raise
    seen = View(
        tips=reading.no_tips(request.run), course=reading.NO_COURSE, sealed=state, state=state
    )
    began(request.run)
    return work(
        log,
        graph,
        settings,
        request.terms,
        environment=request.environment,
        folder=request.folder,
        in_place=False,
        repository=None,
        resumption=_resumption(graph, seen),
    )
