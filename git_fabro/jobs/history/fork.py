"""Forking a run: a new one that goes on from a checkpoint, with the history that led there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from git_fabro import forking
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import fresh_ulid
from git_fabro.forking import Origin
from git_fabro.jobs.history.rewind import Place, Target
from git_fabro.rundir import RunDirectory


def fork(
    place: Place, home: Path, target: Target, *, goal: str | None, labels: Mapping[str, str]
) -> RunId:
    """A new run from this checkpoint; its id. Nobody drives it, and ``resume`` works at once.

    Raises:
        RecordError: the checkpoint's metadata does not parse.
        GitError: the repository refuses.
    """
    run = RunId(fresh_ulid())
    origin = Origin(
        run=place.run,
        ordinal=target.ordinal,
        run_commit=target.run_commit,
        meta_commit=target.meta_commit,
        goal=goal,
        labels=labels,
    )
    forking.fork(place.doors, origin, run, RunDirectory.of(home, run), place.session())
    return run
