"""Putting a driver together around a run that this process holds, and tidying up behind it."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from git_fabro import adoption, opening
from git_fabro.errors import FabroError
from git_fabro.git.discover import Repository
from git_fabro.handlers.call import Interrupted
from git_fabro.handlers.guardian import Guardian
from git_fabro.jobs.run.desk import Desk, Prompter
from git_fabro.jobs.run.driver import Driver
from git_fabro.jobs.run.places import Places
from git_fabro.jobs.run.preconditions import settings_environment
from git_fabro.jobs.run.run_hooks import RunHooks
from git_fabro.jobs.run.setup import prepare_work_tree
from git_fabro.jobs.run.workshop import Workshop
from git_fabro.journal import Entry
from git_fabro.store import RunLog
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.records import Principal, RunResumed, RunStopped
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import FAIL, PARTIAL, SUCCESS, RunState

_DRY_RUN_VISITS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a driver is to behave, beside what the workflow says."""

    auto_approve: bool = False
    dry_run: bool = False
    max_parallel: int | None = None
    prompter: Prompter | None = None
    keep_changes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """What a resume found.

    ``after`` is the last record before it, ``again`` the visits that run anew, ``unfinished`` the
    finished nodes whose commits were not made; ``interrupted`` is whether a node was running that
    can have left half of a change.
    """

    after: int
    again: tuple[str, ...]
    interrupted: bool = False
    unfinished: tuple[Entry, ...] = ()


def work(
    log: RunLog,
    graph: Graph,
    settings: Settings,
    terms: Terms,
    *,
    environment: Mapping[str, str],
    folder: Path,
    in_place: bool,
    repository: Repository | None,
    resumption: Resumption | None = None,
) -> RunState:
    """Drives a held run as far as it goes, and leaves its work trees as the settings say.

    Raises:
        LostLeaseError: another process holds the run now.
        FabroError: the run cannot be recorded any more.
    """
    if terms.dry_run and "max_node_visits" not in graph.attributes:
        limits = {**graph.attributes, "max_node_visits": _DRY_RUN_VISITS}
        graph = replace(graph, attributes=limits)
    guardian = Guardian(log.directory.group)
    places = Places(
        log=log,
        folder=folder,
        excludes=settings.exclude_globs,
        in_place=in_place,
    )
    try:
        driver = _driver(log, graph, settings, terms, environment, places, guardian, resumption)
        with _signals(driver):
            try:
                _enter(log, settings, terms, places, driver, resumption)
            except Interrupted:
                log.release("stopped", events=(RunStopped(cause="signal"),))
                return log.state
            state = driver.drive()
            log.pack()
    finally:
        places.let_go()
        guardian.close()
        log.close()
    keep = _keeps(repository, state)
    if not keep and (log.behind or log.left_out):
        log.tell(
            "worktree_kept", f"the work tree has what no commit holds: {log.directory.worktree}"
        )
        keep = True
    places.close(keep=keep)
    return state


def _driver(
    log: RunLog,
    graph: Graph,
    settings: Settings,
    terms: Terms,
    environment: Mapping[str, str],
    places: Places,
    guardian: Guardian,
    resumption: Resumption | None,
) -> Driver:
    workshop = Workshop(
        graph=graph,
        settings=settings,
        log=log,
        caller=environment,
        given=settings_environment(settings, environment)[0],
        groups=guardian,
        fresh=resumption is not None,
    )
    desk = Desk(
        log=log,
        on_stop=lambda cause: driver.stop(cause),  # noqa: PLW0108 - the driver is made below
        auto_approve=terms.auto_approve or terms.dry_run,
        prompter=terms.prompter,
        principal=Principal(name=log.identity.name, email=log.identity.email),
    )
    hooks = RunHooks(
        hooks=settings.hooks,
        log=log,
        places=places,
        environment=workshop.base_environment(),
    )
    driver = Driver(
        graph=graph,
        log=log,
        workshop=workshop,
        places=places,
        desk=desk,
        hooks=hooks,
        max_parallel=terms.max_parallel,
        simulated=terms.dry_run,
    )
    return driver


def _enter(
    log: RunLog,
    settings: Settings,
    terms: Terms,
    places: Places,
    driver: Driver,
    resumption: Resumption | None,
) -> None:
    """The work tree as the run tip holds it, what the settings prepare in it, the record of it."""
    if resumption is None:
        try:
            _prepare(driver, settings, places, log)
        except FabroError:
            places.close(keep=False)
            opening.withdraw(log)
            raise
        return
    log.directory.forget_controls()
    _finish_recorded(log, places, resumption)
    places.forget_branches()
    keep = terms.keep_changes or not resumption.interrupted or None in log.behind
    files = places.verify(keep_changes=keep)
    if None in log.behind:
        log.catch_up(places.of(None))
    if files == "restored":
        _prepare(driver, settings, places, log)
    log.note(
        RunResumed(
            after=resumption.after,
            commit=log.run_tip,
            files=files,
            again=resumption.again,
        )
    )


def _prepare(driver: Driver, settings: Settings, places: Places, log: RunLog) -> None:
    prepare_work_tree(
        settings,
        places.of(None).path,
        driver.workshop.base_environment(),
        log,
        stop=driver.stops[None],
        groups=driver.workshop.groups,
    )


def _finish_recorded(log: RunLog, places: Places, resumption: Resumption) -> None:
    """Steps 3 to 6 for nodes whose record and tree stand in the journal; commits by hand first.

    The work tree is not asked. A node without a tree had no snapshot: what stands in the work tree
    is all there is of it, and stays.
    """
    if log.doors is None:
        return
    before = places.tip_of(None).oid
    adoption.adopt_onto(log, places.tip_of(None))
    for entry in resumption.unfinished:
        branch = entry.record.position.branch if entry.record.position else None
        if entry.tree is None:
            log.behind[branch] = entry.record
            continue
        tip = places.tip_of(branch)
        tree = entry.tree if branch is not None else places.onto(before, tip.oid, entry.tree)
        log.checkpoint(tip, entry.record, tree, merged=entry.merged)


@contextmanager
def _signals(driver: Driver) -> Iterator[None]:
    """Ctrl-C and a request to end stop the run in good order; it can be resumed."""

    def stop(number: int, frame: FrameType | None) -> None:
        driver.stop_for_signal(number)

    former: dict[int, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            former[number] = signal.signal(number, stop)
    except ValueError:
        # Signals belong to the main thread; elsewhere whoever called us has them.
        former.clear()
    try:
        yield
    finally:
        for known, handler in former.items():
            signal.signal(known, handler)


def _keeps(repository: Repository | None, state: RunState) -> bool:
    """Whether the run's work tree stays, as ``fabro.keepWorktree`` says (git-fabro(1))."""
    if repository is None:
        return True
    wanted = repository.config("fabro.keepWorktree") or "failed"
    if wanted in ("always", "never"):
        return wanted == "always" or state.status not in (SUCCESS, PARTIAL, FAIL)
    return state.status not in (SUCCESS, PARTIAL)
