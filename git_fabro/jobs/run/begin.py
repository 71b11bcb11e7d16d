"""Beginning a run: what must hold before anything exists, then the run, then its driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import homes, lease, opening, workflows
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Commit, Identity, Oid, RunId
from git_fabro.checkpoint.secrets import Mask, secret_values
from git_fabro.doors import Doors, fresh_ulid
from git_fabro.errors import GitError, RequestError
from git_fabro.git.discover import Repository
from git_fabro.handlers import table
from git_fabro.jobs.run.crew import Terms, work
from git_fabro.jobs.run.preconditions import (
    check_excludes,
    check_repository,
    is_dirty,
    refuse_own_directory,
    refuse_unrunnable,
    settings_environment,
)
from git_fabro.opening import NewRun, Session
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.records import GitIdentity, GraphSummary, Record, RunCreated
from git_fabro.workflow.settings import Layer, Settings, dump
from git_fabro.workflow.state import Json, RunState
from git_fabro.workflows import Loaded

HEAD, CARRY, IN_PLACE = "head", "carry", "in-place"
_DEFAULT_IDENTITY = GitIdentity(name="Fabro", email="noreply@fabro.sh", source="default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a person asked for, parsed."""

    workflow: str
    folder: Path
    environment: Mapping[str, str]
    command_line: Layer | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    dirty: str | None = None
    in_place: bool = False
    checkpoints: bool = True
    terms: Terms = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run that may begin: everything was looked at, nothing exists yet."""

    request: Request
    loaded: Loaded
    graph: Graph
    doors: Doors | None
    run: RunId
    directory: RunDirectory
    notes: tuple[str, ...]
    in_place: bool


def prepare(request: Request, doors: Doors | None) -> Plan:
    """Reads the workflow and refuses whatever could only fail later.

    Raises:
        WorkflowError: the workflow has errors.
        RequestError: something the run needs is not there.
    """
    repository = doors.repository if doors is not None else None
    top = repository.top if repository is not None else request.folder
    path = workflows.find(
        request.workflow, folder=request.folder, top=top, environment=request.environment
    )
    loaded = workflows.load(
        path,
        top=top,
        environment=request.environment,
        kinds=table.own_kinds(),
        command_line=request.command_line,
        default_agent=repository.config("fabro.agent") if repository is not None else None,
    )
    graph = loaded.require()
    refuse_unrunnable(graph, loaded.settings, request.environment, dry_run=request.terms.dry_run)
    notes: list[str] = []
    home = homes.home(repository, request.folder, request.environment)
    in_place = request.in_place
    uses_git = request.checkpoints and not request.terms.dry_run and doors is not None
    mode = request.dirty or (repository.config("fabro.dirty") if repository else None) or HEAD
    if mode not in (HEAD, CARRY, IN_PLACE):
        raise RequestError(
            f"--dirty is head, carry or in-place, not: {mode}", hint="git fabro run --dirty head"
        )
    if mode == IN_PLACE and uses_git and doors is not None and is_dirty(doors.repository):
        notes.append("uncommitted changes: the run works in place, without checkpoints")
        uses_git = False
    elif uses_git and doors is not None:
        takes_files = in_place or mode == CARRY
        notes += check_repository(doors, takes_files=takes_files, in_place=in_place)
        notes += check_excludes(doors, loaded.settings)
        if takes_files:
            refuse_own_directory(doors, home)
    elif not request.terms.dry_run and request.checkpoints:
        notes.append("not a git repository: the run has no checkpoints, only its journal")
    run = RunId(fresh_ulid())
    return Plan(
        request=replace(request, dirty=mode),
        loaded=loaded,
        graph=graph,
        doors=doors if uses_git else None,
        run=run,
        directory=RunDirectory.of(home, run),
        notes=tuple(notes),
        in_place=in_place,
    )


def session_of(
    environment: Mapping[str, str],
    doors: Doors | None,
    settings: Settings,
    on_record: Callable[[Record], None],
) -> tuple[Session, tuple[str, ...]]:
    """Who this process is for the runs it holds, and the names of the secrets that it masks."""
    names, values = secret_values(environment)
    declared = settings_environment(settings, environment)[1]
    patterns = doors.repository.config_all("fabro.secrets.pattern") if doors else ()
    session = Session(
        clock=lambda: datetime.now(UTC),
        mask=Mask.of((*values, *declared.values()), patterns),
        holder=lease.me(fresh_ulid()),
        on_record=on_record,
    )
    return session, tuple(sorted({*names, *declared}))


def run(
    plan: Plan, *, on_record: Callable[[Record], None], began: Callable[[RunId], None]
) -> RunState:
    """Makes the run and drives it as far as it goes.

    Args:
        plan: From ``prepare``.
        on_record: Hears of each record as it is accepted.
        began: Called once the run exists.

    Raises:
        FabroError: the run could not be made, or not be recorded any more.
    """
    settings, doors = plan.loaded.settings, plan.doors
    session, secrets = session_of(plan.request.environment, doors, settings, on_record)
    base = _base(plan, session) if doors is not None else None
    created = _created(plan, session, secrets)
    _refuse_secrets(created, plan)
    new = NewRun(
        created=created,
        graph_source=plan.loaded.source,
        identity=identity_of(doors, settings),
        start=plan.graph.start,
        mode="simulated" if plan.request.terms.dry_run else "run",
        base=base,
        namespace="hidden" if _hides(doors) else "heads",
        required=settings.checkpoint_required,
    )
    directory = plan.directory
    if doors is not None:
        workflows.admit_digest(doors.repository, created.digest)
    log = opening.begin(doors, new, directory, session)
    began(plan.run)
    return work(
        log,
        plan.graph,
        settings,
        plan.request.terms,
        environment=plan.request.environment,
        folder=doors.repository.top if doors else plan.request.folder,
        in_place=plan.in_place,
        repository=doors.repository if doors else None,
    )


def _hides(doors: Doors | None) -> bool:
    return doors is not None and doors.repository.config("fabro.metaNamespace") == "hidden"


def _created(plan: Plan, session: Session, secrets: tuple[str, ...]) -> RunCreated:
    graph, loaded = plan.graph, plan.loaded
    repository = plan.doors.repository if plan.doors else None
    recorded: dict[str, Json] = dict(dump(loaded.settings))
    if plan.in_place:
        recorded["in_place"] = True
    when = session.clock()
    return RunCreated(
        run_id=plan.run,
        created_at=engine.stamp(when),
        digest=loaded.digest(),
        settings=recorded,
        graph=GraphSummary(
            name=graph.name, goal=graph.goal, nodes=len(graph.nodes), edges=len(graph.edges)
        ),
        includes=loaded.includes,
        workflow_slug=loaded.slug,
        workflow_file=_relative(loaded.path, repository, plan.request.folder),
        working_directory=_relative(plan.request.folder, repository, plan.request.folder),
        base_branch=(repository.head or "").removeprefix("refs/heads/") or None
        if repository
        else None,
        labels=dict(plan.request.labels),
        context=workflows.initial_context(graph, plan.run),
        secrets=secrets,
    )


def _relative(path: Path, repository: Repository | None, folder: Path) -> str:
    """A path below the repository's top or the folder; only the name of what lies elsewhere."""
    top = repository.top if repository is not None else folder
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(top))
    return path.name if relative.startswith("..") else relative


def _refuse_secrets(created: RunCreated, plan: Plan) -> None:
    """A known secret that stands in the workflow itself would be recorded with it."""
    _, values = secret_values(plan.request.environment)
    declared = settings_environment(plan.loaded.settings, plan.request.environment)[1]
    texts = [plan.loaded.source.decode("utf-8", "replace"), *created.includes.values()]
    texts += created.labels.values()
    texts.append(codec.canonical(dict(created.settings)).decode())
    if any(value in text for value in (*values, *declared.values()) for text in texts):
        raise RequestError(
            f"the workflow or its settings hold a secret: {plan.loaded.path}",
            hint="name it by {{ secrets.NAME }} in [sandbox.env]",
        )


def identity_of(doors: Doors | None, settings: Settings) -> GitIdentity:
    """Who the commits of a run are by: the settings, else git's own answer, else a name of ours."""
    found = _git_identity(doors)
    if settings.author_name or settings.author_email:
        return GitIdentity(
            name=settings.author_name or found.name,
            email=settings.author_email or found.email,
            source="settings",
        )
    return found


def _git_identity(doors: Doors | None) -> GitIdentity:
    if doors is None or doors.repository.git is None:
        return _DEFAULT_IDENTITY
    try:
        answer = doors.git.run(["var", "GIT_AUTHOR_IDENT"], cwd=doors.repository.top)
    except GitError:
        return _DEFAULT_IDENTITY
    name, _, rest = answer.decode("utf-8", "replace").partition(" <")
    return GitIdentity(name=name, email=rest.partition(">")[0], source="git")


def _base(plan: Plan, session: Session) -> Oid:
    """The commit at which the run branch begins (git-fabro-format(5))."""
    assert plan.doors is not None
    doors, settings = plan.doors, plan.loaded.settings
    known = identity_of(doors, settings)
    by, when = Identity(known.name, known.email), int(session.clock().timestamp())
    head = doors.head()
    if head is None:
        head = doors.objects.write_commit(
            _base_commit(plan.run, doors.objects.tree_from({}), (), by, when)
        )
    if plan.request.dirty != CARRY or plan.in_place or doors.repository.work_tree is None:
        return head
    tree = doors.snapshot_of_user(plan.directory.path / "carry.index")
    if tree == doors.objects.tree_of(head):
        return head
    return doors.objects.write_commit(_base_commit(plan.run, tree, (head,), by, when))


def _base_commit(
    run: RunId, tree: Oid, parents: tuple[Oid, ...], by: Identity, when: int
) -> Commit:
    text = f"fabro({run}): base\n\n{layout.TRAILER_RUN}: {run}\n"
    return Commit(tree=tree, parents=parents, author=by, committer=by, when=when, message=text)
