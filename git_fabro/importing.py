"""What one of Fabro's checkpoints holds for a fork of it: its state in our words, its workflow.

Nothing of Fabro's is rewritten: the fork's first meta commit holds all of it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from git_fabro import history
from git_fabro.branches import Branches, Source, branches_of
from git_fabro.checkpoint import foreign, foreign_values
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.checkpoint.timeline import Entry
from git_fabro.errors import NotFoundError
from git_fabro.fabroruns import FabroRun
from git_fabro.git import walks
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.state import SUCCESS, Json, Line, Outcome, RunState

# Fabro's name for the node that makes no commit, and counts as completed.
_START = NodeId("start")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A checkpoint of Fabro's as a fork begins with it.

    ``source`` is the workflow as DOT, None where it is nowhere; ``base`` is the commit below the
    first checkpoint, None where it is not known.
    """

    state: RunState
    source: bytes | None
    slug: str = ""
    base: Oid | None = None


def branches_at(
    source: Source, run: RunId, run_commit: Oid, meta_commit: Oid | None
) -> Branches | None:
    """The branches of Fabro's that a checkpoint stands on; None for a checkpoint of ours.

    It may be one that a run of ours shares, as it was forked from one of Fabro's.

    Raises:
        MissingObjectError: an object is absent.
    """
    found = branches_of(source, run)
    if not history.is_ours(source, found):
        return found
    message = walks.one_step(source.objects, run_commit).message.decode("utf-8", "replace")
    said = foreign.parse_run_commit(message)
    if said is None or said.is_ours:
        return None
    return Branches(run=RunId(said.run), run_tip=run_commit, meta_tip=meta_commit)


def read(source: Source, branches: Branches, ordinal: int) -> Imported:
    """What the checkpoint with this number holds.

    Where it has no metadata, the state is what the run branch tells: nodes and their statuses.

    Raises:
        NotFoundError: there is no such checkpoint.
        RecordError: what is stored does not parse.
        MissingObjectError: an object is absent.
    """
    told = FabroRun(source, branches)
    entries = [place.entry for place in told.places()][::-1]
    path = [entry for entry in entries if entry.ordinal is not None and entry.ordinal <= ordinal]
    if not path or path[-1].ordinal != ordinal:
        raise NotFoundError(f"no checkpoint @{ordinal}: {branches.run}", hint="git fabro list -a")
    has_state = path[-1].meta_commit is not None
    made = told.made()
    return Imported(
        state=in_our_words(told.state(path[-1])) if has_state else state_along(path),
        source=told.graph_source(path[-1].meta_commit),
        slug=(made.slug or made.workflow) if made is not None else "",
        base=told.base(),
    )


def in_our_words(state: RunState) -> RunState:
    """A state with our status words; a completed node that has no outcome counts as a success."""
    line = state.line
    outcomes = {
        node: replace(outcome, status=foreign_values.in_our_words(outcome.status))
        for node, outcome in line.node_outcomes.items()
    }
    for node in line.completed_nodes:
        outcomes.setdefault(node, Outcome(status=SUCCESS))
    context = dict(line.context_values)
    if isinstance(context.get("outcome"), str):
        context["outcome"] = foreign_values.in_our_words(str(context["outcome"]))
    return replace(state, line=replace(line, node_outcomes=outcomes, context_values=context))


def state_along(path: Sequence[Entry]) -> RunState:
    """The state after these entries, as far as they tell: nodes, visits, statuses; no context."""
    outcomes: dict[str, Outcome] = {_START: Outcome(status=SUCCESS)}
    visits: dict[str, int] = {_START: 1}
    for entry in path:
        node = NodeId(entry.node or "")
        outcomes[node] = Outcome(status=foreign_values.in_our_words(entry.status or ""))
        visits[node] = entry.visit or 1
    last = NodeId(path[-1].node or "")
    context: dict[str, Json] = {"current_node": last, "outcome": outcomes[last].status}
    nodes = (NodeId(entry.node or "") for entry in path)
    line = Line(
        current_node=last,
        completed_nodes=(_START, *nodes),
        node_outcomes=outcomes,
        node_visits=visits,
        context_values=context,
    )
    return RunState(line=line)
