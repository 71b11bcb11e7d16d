"""From what a person types to a run, a checkpoint, a time (git-fabro(1))."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from git_fabro import branches, homes
from git_fabro.branches import LOCAL, Branches, Source
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render
from git_fabro.errors import FabroError, NotFoundError, RequestError

if TYPE_CHECKING:
    from git_fabro.doors import Doors

_SHORTEST_PREFIX = 4
_MOST_MATCHES = 10


class Here:
    """Where a command was typed: the repository, if there is one, and the run directories."""

    def __init__(self, source: Source | None, folder: Path, environment: Mapping[str, str]) -> None:
        self.source = source
        self.folder = folder
        self.environment = environment

    @cached_property
    def home(self) -> Path:
        """The folder of the run directories, whether or not it is there."""
        repository = self.source.repository if self.source is not None else None
        return homes.home(repository, self.folder, self.environment)

    @cached_property
    def doors(self) -> Doors | None:
        """The repository with all that writes to it, None where there is none."""
        # Imported here: 100 ms that commands do not pay which only look at refs and commits.
        from git_fabro.doors import Doors

        if self.source is None:
            return None
        one = self.source
        return Doors(repository=one.repository, objects=one.objects, refs=one.refs)

    @cached_property
    def branches(self) -> Mapping[RunId, Branches]:
        """The branches of all runs, as they stood when they were first asked for."""
        return branches.all_branches(self.source) if self.source is not None else {}

    @property
    def top(self) -> Path:
        """The folder from which a project's files are named."""
        return self.source.repository.top if self.source is not None else self.folder

    def repository(self) -> Doors:
        """The repository's doors.

        Raises:
            NotFoundError: there is none here.
        """
        # Imported here, as above.
        from git_fabro.doors import Doors

        return self.doors if self.doors is not None else Doors.open()

    def reading(self) -> Source:
        """The repository as something to read from; raises as above."""
        return self.source if self.source is not None else Source.open()

    def config(self, *keys: str) -> str | None:
        """The first of these configuration values that is set."""
        if self.source is None:
            return None
        found = (self.source.repository.config(key) for key in keys)
        return next((value for value in found if value is not None), None)


def here(path: Path | str = ".") -> Here:
    """Where this process stands, or a folder as if it stood there."""
    try:
        source = Source.open(path)
    except NotFoundError:
        if not Path(path).is_dir():
            raise
        source = None
    return Here(source, Path(path).absolute(), dict(os.environ))


def all_runs(place: Here) -> list[RunId]:
    """The ids of all runs: those with refs, and those that have a journal only; oldest first."""
    with_refs = place.branches
    others = (run for run in homes.runs_at(place.home) if run not in with_refs)
    return sorted({*with_refs, *(run for run in others if _has_no_git(place.home, run))})


def _has_no_git(home: Path, run: RunId) -> bool:
    """Whether a run was made without Git; a folder may also be all that is left of one with it."""
    # Imported here: 60 ms that only those pay who have such a folder.
    from git_fabro import journal
    from git_fabro.rundir import RunDirectory

    directory = RunDirectory.of(home, run)
    if not (directory.path / layout.RUN_JSON).exists():
        return False
    try:
        entries = journal.read(directory.journal).entries
    except FabroError:
        return True
    return bool(entries) and entries[0].on is None


def find_run(place: Here, text: str | None) -> RunId:
    """The run that a person means; the newest, named on standard error, where nothing was said.

    Raises:
        NotFoundError: no run is meant by it.
        RequestError: several are.
    """
    if text is not None and RunId(text) in place.branches:
        return RunId(text)
    runs = all_runs(place)
    if text is None:
        return _default(place, runs)
    found = _meant(place, runs, text)
    if found is not None:
        return found
    workflows = {name for name in (workflow_of(place, run) for run in runs) if name}
    near = render.near(text, sorted(workflows))
    raise NotFoundError(
        f"no run found matching '{render.line(text)}'"
        + (f"; did you mean {near}?" if near else ""),
        hint="git fabro list -a",
    )


def _meant(place: Here, runs: list[RunId], text: str) -> RunId | None:
    """The run that a text names, None if it names none.

    Raises:
        RequestError: it names several.
    """
    wanted = text.removeprefix(layout.HEADS)
    for prefix in (layout.RUN_PREFIX, layout.META_PREFIX, layout.ARC_RUN_PREFIX):
        wanted = wanted.removeprefix(prefix.removeprefix(layout.HEADS))
    exact = [run for run in runs if run.upper() == wanted.upper()]
    if exact:
        return exact[0]
    if len(wanted) >= _SHORTEST_PREFIX:
        found = [run for run in runs if run.upper().startswith(wanted.upper())]
        if len(found) > 1:
            raise RequestError(_ambiguous(place, wanted, found), hint="git fabro list -a")
        if found:
            return found[0]
    return next((run for run in reversed(runs) if workflow_of(place, run) == text), None)


def _ambiguous(place: Here, wanted: str, found: list[RunId]) -> str:
    # Imported here: 100 ms that only those pay who typed too little.
    from git_fabro.jobs import look

    shown = (look.row(place.doors, place.home, run) for run in found[:_MOST_MATCHES])
    lines = [f"  {row.run_id} {row.status}" for row in shown]
    return "\n".join([f"ambiguous run ID prefix '{render.line(wanted)}', matches:", *lines])


def _default(place: Here, runs: list[RunId]) -> RunId:
    here = _checked_out(place)
    if here in runs:
        return here
    if not runs:
        raise NotFoundError("there are no runs here", hint="git fabro run WORKFLOW")
    run = newest(place, runs)
    render.say(f"run {run} (the newest)")
    return run


def newest(place: Here, runs: list[RunId]) -> RunId:
    """The newest of some runs, one of this repository if there is any."""
    own = [run for run in runs if run not in place.branches or _is_local(place.branches[run])]
    return (own or runs)[-1]


def _is_local(found: Branches) -> bool:
    return found.origin == LOCAL


def _checked_out(place: Here) -> RunId:
    head = (place.source.repository.head or "") if place.source is not None else ""
    for prefix in (layout.RUN_PREFIX, layout.ARC_RUN_PREFIX):
        if head.startswith(prefix):
            return RunId(head.removeprefix(prefix))
    return RunId("")


def workflow_of(place: Here, run: RunId) -> str:
    """The name of a run's workflow, "" where it cannot be read."""
    # Imported here: 60 ms that those do not pay who name a run by its id.
    from git_fabro import summary

    try:
        return summary.workflow_of(place.source, place.branches.get(run), place.home / run)
    except FabroError:
        return ""


def run_and_target(
    place: Here, words: list[str], option: str | None, command: str
) -> tuple[RunId, str | None]:
    """The run and the text of the target in ``[RUN] [TARGET]``; one word may be either.

    Raises:
        RequestError: too many words, or one that could be both.
        NotFoundError: the run is not there.
    """
    run, targets = run_and_targets(place, words, option, command, most=1)
    return run, targets[0] if targets else None


def run_and_targets(
    place: Here, words: list[str], option: str | None, command: str, *, most: int
) -> tuple[RunId, list[str]]:
    """The run and the targets in ``[RUN] [TARGET]...``; the first word may be either.

    Raises:
        RequestError: too many words, or one that could be both.
        NotFoundError: the run is not there.
    """
    if len(words) > most + (option is None):
        raise RequestError(
            f"too many arguments: {words[-1]}", hint=f"git fabro {command} RUN TARGET"
        )
    if option is not None:
        return find_run(place, option), words
    if not words or words[0].startswith("@"):
        return _all_targets(place, words, command, most)
    if len(words) == most + 1:
        return find_run(place, words[0]), words[1:]
    named = _one_word(place, words[0], command)
    return _all_targets(place, words, command, most) if named is None else (named, words[1:])


def _all_targets(place: Here, words: list[str], command: str, most: int) -> tuple[RunId, list[str]]:
    if len(words) > most:
        raise RequestError(
            f"too many arguments: {words[-1]}", hint=f"git fabro {command} RUN TARGET"
        )
    return find_run(place, None), words


def _one_word(place: Here, word: str, command: str) -> RunId | None:
    """The run that a word names, None if it is a target."""
    runs = all_runs(place)
    named = _meant(place, runs, word)
    if named is None:
        return None
    if word in _nodes_of_default(place, runs):
        raise RequestError(
            f"could be a run or a checkpoint: {word}",
            hint=f"git fabro {command} --run {named} [TARGET]",
        )
    return named


def _nodes_of_default(place: Here, runs: list[RunId]) -> set[str | None]:
    """The nodes that the default run has checkpoints of."""
    # Imported here: 10 ms that only those pay who say one word.
    from git_fabro import history

    here = _checked_out(place)
    run = here if here in runs else newest(place, runs)
    try:
        found = history.timeline_of(place.reading(), run, detailed=False)
        return {one.entry.node for one in found.places()}
    except FabroError:
        return set()


def moment(text: str, option: str) -> str:
    """A time as records write it, from RFC 3339 or a date; without a zone it is UTC.

    Raises:
        RequestError: it is no time.
    """
    # Imported here: 60 ms that only those pay who give a time.
    from datetime import UTC, datetime

    from git_fabro.workflow import engine

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f"{option} takes a time, not: {text}", hint=f"{option} 2026-03-01T10:00:00Z"
        ) from None
    return engine.stamp(when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC))
