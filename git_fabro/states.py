"""The state that a checkpoint holds, whether git-fabro or Fabro made it."""

from __future__ import annotations

from git_fabro import branches, history, reading
from git_fabro.branches import Source
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.errors import NotFoundError
from git_fabro.fabroruns import FabroRun
from git_fabro.place import Place
from git_fabro.workflow.state import RunState


def fabros(source: Source, run: RunId, meta: Oid | None) -> FabroRun | None:
    """What reads a meta commit that Fabro made, as it lies on its branch; None for one of ours.

    None stands for no metadata, where only what Fabro's run branch says can be read.
    """
    found = branches.branches_of(source, run)
    at = found if meta is None else found._replace(meta_tip=meta)
    if not at.tips or history.is_ours(source, at):
        return None
    return FabroRun(source, at)


def state_at(source: Source, run: RunId, place: Place) -> RunState:
    """The state that a checkpoint holds, whoever made it.

    Raises:
        NotFoundError: it has no metadata here.
        RecordError: what it holds does not parse.
    """
    entry = place.entry
    if entry.meta_commit is None:
        raise NotFoundError(
            f"no metadata for checkpoint {entry.name} (link: {entry.link}): {run}",
            hint=f"git show {entry.run_commit}",
        )
    theirs = fabros(source, run, entry.meta_commit)
    if theirs is not None:
        return theirs.state(entry)
    return reading.state_at(source, entry.meta_commit)
