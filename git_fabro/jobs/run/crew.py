"""Putting a driver together around a run that this process holds, and tidying up behind it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from git_fabro.errors import RequestError
from git_fabro.git.discover import Repository
from git_fabro.handlers.guardian import Guardian
from git_fabro.jobs.run.desk import Desk, Prompter
from git_fabro.jobs.run.driver import Driver
from git_fabro.jobs.run.places import Places
from git_fabro.jobs.run.run_hooks import RunHooks
from git_fabro.jobs.run.setup import prepare_work_tree
from git_fabro.jobs.run.workshop import Workshop
from git_fabro.journal import Entry
from git_fabro.store import RunLog
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.records import Principal, RunResumed
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import FAIL, PARTIAL, SUCCESS, RunState

_DRY_RUN_VISITS = 10
_SECRET = re.compile(r"\{\{\s*secrets\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


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
    finished nodes whose commits were not made.
    """

    after: int
    again: tuple[str, ...]
    unfinished: tuple[Entry, ...] = ()


def secret_environment(settings: Settings, caller: Mapping[str, str]) -> dict[str, str]:
    """The variables whose values are secrets: read from the caller's environment, never stored.

    Raises:
        RequestError: one of them is not set.
    """
    found: dict[str, str] = {}
    for variable, text in settings.environment.items():
        match = _SECRET.fullmatch(text.strip())
        if match is None:
            continue
        value = caller.get(match["name"])
        if value is None:
            raise RequestError(
                f"secret is not in the environment: {match['name']}",
                hint=f"export {match['name']}=...",
            )
        found[variable] = value
    return found


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
        _enter(log, settings, terms, places, driver, resumption)
        with _signals(driver):
            state = driver.drive()
    finally:
        guardian.close()
        log.close()
    places.close(keep=_keeps(repository, state))
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
        secrets=secret_environment(settings, environment),
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
        directory=log.directory.worktree,
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
        place = places.of(None)
        prepare_work_tree(settings, place.path, driver.workshop.base_environment(), log)
        return
    for entry in resumption.unfinished:
        # Record and tree stand in the journal: steps 3 to 6, and the work tree is not asked.
        branch = entry.record.position.branch if entry.record.position else None
        if entry.tree is not None:
            log.checkpoint(places.tip_of(branch), entry.record, entry.tree, merged=entry.merged)
    places.forget_branches()
    files = places.verify(keep_changes=terms.keep_changes)
    if files == "restored":
        base = driver.workshop.base_environment()
        prepare_work_tree(settings, places.of(None).path, base, log)
    log.note(
        RunResumed(
            after=resumption.after,
            commit=log.run_tip,
            files=files,
            again=resumption.again,
        )
    )


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
    """Whether the run's work tree stays, as ``fabro.keepWorktree`` says (cli, 10)."""
    if repository is None:
        return True
    wanted = repository.config("fabro.keepWorktree") or "failed"
    if wanted in ("always", "never"):
        return wanted == "always" or state.status not in (SUCCESS, PARTIAL, FAIL)
    return state.status not in (SUCCESS, PARTIAL)
