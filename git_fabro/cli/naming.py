"""From what a person types to a run, a checkpoint, a time (git-fabro(1))."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import journal, reading, rundir
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render
from git_fabro.doors import Doors
from git_fabro.errors import FabroError, NotFoundError, RequestError
from git_fabro.jobs import look
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine

_SHORTEST_PREFIX = 4
_MOST_MATCHES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where a command was typed: the repository, if there is one, and the run directories."""

    doors: Doors | None
    home: Path
    folder: Path
    environment: Mapping[str, str]

    @property
    def top(self) -> Path:
        """The folder from which a project's files are named."""
        return self.doors.repository.top if self.doors is not None else self.folder

    def repository(self) -> Doors:
        """The repository's doors.

        Raises:
            NotFoundError: there is none here.
        """
        return self.doors if self.doors is not None else Doors.open()

    def config(self, *keys: str) -> str | None:
        """The first of these configuration values that is set."""
        if self.doors is None:
            return None
        found = (self.doors.repository.config(key) for key in keys)
        return next((value for value in found if value is not None), None)


def here(path: Path | str = ".") -> Here:
    """Where this process stands, or a folder as if it stood there."""
    try:
        doors = Doors.open(path)
    except NotFoundError:
        if not Path(path).is_dir():
            raise
        doors = None
    folder, environment = Path(path).absolute(), dict(os.environ)
    home = rundir.home(doors.repository if doors is not None else None, folder, environment)
    return Here(doors=doors, home=home, folder=folder, environment=environment)


def all_runs(place: Here) -> list[RunId]:
    """The ids of all runs: those with refs, and those that have a journal only; oldest first."""
    with_refs = set(reading.runs(place.doors)) if place.doors is not None else set()
    others = (run for run in rundir.runs_at(place.home) if run not in with_refs)
    return sorted({*with_refs, *(run for run in others if _has_no_git(place.home, run))})


def _has_no_git(home: Path, run: RunId) -> bool:
    """Whether a run was made without Git; a folder may also be all that is left of one with it."""
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
    wanted = text.removeprefix("refs/heads/").removeprefix("fabro/run/").removeprefix("fabro/meta/")
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
    shown = (look.row(place.doors, place.home, run) for run in found[:_MOST_MATCHES])
    lines = [f"  {row.run_id} {row.status}" for row in shown]
    return "\n".join([f"ambiguous run ID prefix '{render.line(wanted)}', matches:", *lines])


def _default(place: Here, runs: list[RunId]) -> RunId:
    head = (place.doors.repository.head or "") if place.doors is not None else ""
    here = RunId(head.removeprefix(layout.RUN_PREFIX))
    if head.startswith(layout.RUN_PREFIX) and here in runs:
        return here
    if not runs:
        raise NotFoundError("there are no runs here", hint="git fabro run WORKFLOW")
    render.say(f"run {runs[-1]} (the newest)")
    return runs[-1]


def workflow_of(place: Here, run: RunId) -> str:
    """The name of a run's workflow, "" where it cannot be read."""
    doors = place.doors
    try:
        meta = reading.tips_of(doors, run).meta_tip if doors is not None else None
        data = doors.objects.blob_at(meta, layout.RUN_JSON) if doors and meta else None
        data = data or RunDirectory.of(place.home, run).read(layout.RUN_JSON)
        value = codec.parse_json(data, layout.RUN_JSON) if data else {}
    except FabroError:
        return ""
    name = value.get("workflow_slug", "") if isinstance(value, dict) else ""
    return name if isinstance(name, str) else ""


def run_and_target(
    place: Here, words: list[str], option: str | None, command: str
) -> tuple[RunId, str | None]:
    """The run and the text of the target in ``[RUN] [TARGET]``; one word may be either.

    Raises:
        RequestError: too many words, or one that could be both.
        NotFoundError: the run is not there.
    """
    if len(words) > (2 if option is None else 1):
        raise RequestError(
            f"too many arguments: {words[-1]}", hint=f"git fabro {command} RUN TARGET"
        )
    if option is not None:
        return find_run(place, option), words[0] if words else None
    if len(words) == 2:
        return find_run(place, words[0]), words[1]
    if not words or words[0].startswith("@"):
        return find_run(place, None), words[0] if words else None
    return _one_word(place, words[0], command)


def _one_word(place: Here, word: str, command: str) -> tuple[RunId, str | None]:
    runs = all_runs(place)
    named = _meant(place, runs, word)
    if not runs:
        return find_run(place, None), word
    if named is None:
        return find_run(place, None), word
    if place.doors is not None and word in _nodes_of_default(place, runs):
        raise RequestError(
            f"could be a run or a checkpoint: {word}",
            hint=f"git fabro {command} --run {named} [TARGET]",
        )
    return named, None


def _nodes_of_default(place: Here, runs: list[RunId]) -> set[str]:
    """The nodes that the default run has checkpoints of."""
    assert place.doors is not None
    head = place.doors.repository.head or ""
    here = RunId(head.removeprefix(layout.RUN_PREFIX))
    run = here if here in runs else runs[-1]
    try:
        return {one.said.node for one in look.timeline(place.doors, run) if one.said is not None}
    except FabroError:
        return set()


def moment(text: str, option: str) -> str:
    """A time as records write it, from RFC 3339 or a date; without a zone it is UTC.

    Raises:
        RequestError: it is no time.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise RequestError(
            f"{option} takes a time, not: {text}", hint=f"{option} 2026-03-01T10:00:00Z"
        ) from None
    return engine.stamp(when.replace(tzinfo=when.tzinfo or UTC).astimezone(UTC))
