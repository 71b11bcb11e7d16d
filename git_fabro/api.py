"""Runs for Python programs: the same jobs that the commands call, without printing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from git_fabro import handlers, history
from git_fabro.branches import branches_of
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import naming
from git_fabro.cli.naming import Here
from git_fabro.errors import RecordError
from git_fabro.jobs import look, timeline
from git_fabro.jobs.look import Stop
from git_fabro.jobs.run import begin, resume
from git_fabro.jobs.run.crew import Terms
from git_fabro.jobs.timeline import Checkpoint
from git_fabro.workflow import settings
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RunState

__all__ = ["Repository", "Run", "handlers", "open"]


def _ignore(record: Record) -> None:
    """Nobody listens."""


def open(path: Path | str = ".") -> Repository:
    """The repository that a folder belongs to; a folder without one has runs without checkpoints.

    Raises:
        NotFoundError: there is no such folder.
        GitError: git refuses the repository.
    """
    return Repository(naming.here(path))


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository and its runs."""

    _here: Here = field(repr=False)

    def runs(self) -> list[Run]:
        """All runs, the oldest first."""
        return [Run(self._here, run) for run in naming.all_runs(self._here)]

    def run(self, name: str) -> Run:
        """One run: by its id, a unique prefix of it, its branch, or its workflow (the newest run).

        Raises:
            NotFoundError: there is none.
            RequestError: there are several.
        """
        return Run(self._here, naming.find_run(self._here, name))

    def start(
        self,
        workflow: str,
        *,
        goal: str | None = None,
        inputs: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        agent: str | None = None,
        agent_command: Sequence[str] | None = None,
        model: str | None = None,
        provider: str | None = None,
        auto_approve: bool = False,
        dry_run: bool = False,
        dirty: str | None = None,
        in_place: bool = False,
        checkpoints: bool = True,
        max_parallel: int | None = None,
        on_record: Callable[[Record], None] = _ignore,
    ) -> Run:
        """Runs a workflow until it ends, waits for a person, or is stopped. See git-fabro-run(1).

        Args:
            workflow: A file, or a name.
            goal: In place of the file's.
            inputs: Values for ``{{ inputs.NAME }}``.
            labels: Kept with the run.
            agent: A preset, ``"claude"``.
            agent_command: Any other agent, ``["my-agent", "--model", "{model}"]``.
            model: Passed on to the agent.
            provider: Passed on to the agent.
            auto_approve: Questions are answered by their first choice.
            dry_run: All nodes are simulated; no Git.
            dirty: ``head``, ``carry`` or ``in-place``.
            in_place: No work tree of the run's own.
            checkpoints: False keeps the journal only.
            max_parallel: Branches at once.
            on_record: Hears of each record as it is accepted.

        Raises:
            WorkflowError: the workflow has errors; it carries all diagnostics.
            FabroError: the run could not be begun, or not be recorded any more.
        """
        request = begin.Request(
            workflow=workflow,
            folder=self._here.folder,
            environment=self._here.environment,
            command_line=settings.command_line(
                goal=goal,
                inputs=dict(inputs or {}),
                preset=agent,
                command=None if agent_command is None else tuple(agent_command),
                model=model,
                provider=provider,
            ),
            labels=dict(labels or {}),
            dirty=dirty,
            in_place=in_place,
            checkpoints=checkpoints,
            terms=Terms(auto_approve=auto_approve, dry_run=dry_run, max_parallel=max_parallel),
        )
        plan = begin.prepare(request, self._here.doors)
        begin.run(plan, on_record=on_record, began=lambda run: None)
        return Run(self._here, plan.run)


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a workflow; every answer is read anew from where the run is kept."""

    _here: Here = field(repr=False)
    id: RunId

    def timeline(self) -> list[Checkpoint]:
        """The checkpoints, the oldest first; none of a run without Git."""
        found = self._here.source
        if found is None or not any(branches_of(found, self.id).tips):
            return []
        told = history.timeline_of(found, self.id)
        rows = [timeline.checkpoint(told, place) for place in told.places()]
        return rows[::-1]

    def state(self) -> RunState:
        """Where the run stands: the fold of all its records."""
        return look.look(self._here.doors, self._here.home, self.id).state

    def status(self) -> str:
        """The status; ``interrupted`` where it says running and nobody drives it."""
        return look.look(self._here.doors, self._here.home, self.id).status

    def records(self) -> list[Record]:
        """All records, in order.

        Raises:
            RecordError: what is stored is damaged.
        """
        found: list[Record] = []
        for one in look.records(self._here.doors, self._here.home, self.id):
            if isinstance(one, Stop):
                raise RecordError(f"record {one.after} is the last good one: {one.reason}")
            found.append(one)
        return found

    def resume(
        self,
        *,
        auto_approve: bool = False,
        trust: bool = False,
        take_over: bool = False,
        keep_changes: bool = False,
        on_record: Callable[[Record], None] = _ignore,
    ) -> RunState:
        """Goes on from the last checkpoint until it ends, waits or is stopped; gives the state.

        Raises:
            LeasedError: another process drives the run.
            RequestError: it has ended, or its workflow is not admitted here.
        """
        request = resume.Request(
            run=self.id,
            folder=self._here.folder,
            environment=self._here.environment,
            trust=trust,
            take_over=take_over,
            terms=Terms(auto_approve=auto_approve, keep_changes=keep_changes),
        )
        return resume.resume(request, self._here.doors, on_record=on_record, began=lambda run: None)
