"""A run in one line, out of its tips: what a list shows of it. Runs that live are the jobs' matter.

Only the state of a run at rest stands in Git alone; one that is being driven has a journal on top.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from git_fabro import homes
from git_fabro.branches import LOCAL, Branches, Source
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.errors import RecordError

if TYPE_CHECKING:
    from git_fabro.fabroruns import FabroRun
    from git_fabro.workflow.state import Json

_RUNNING = "running"
_READ_OF_META = ("^{tree}", f":{layout.RUN_JSON}", f":{layout.CHECKPOINT_JSON}")


class Row(NamedTuple):
    """A run in a list; ``status`` is ``interrupted`` where it says running and nobody drives it.

    ``origin`` is ``local`` or a remote; ``made_by`` is ``git-fabro`` or ``fabro``; ``is_over`` is
    whether nothing can go on. ``problem`` says why a run cannot be read.
    """

    run_id: str
    status: str
    workflow: str = ""
    goal: str = ""
    node: str | None = None
    checkpoints: int = 0
    created_at: str = ""
    updated_at: str = ""
    labels: Mapping[str, str] = {}
    parent: Mapping[str, Json] | None = None
    origin: str = LOCAL
    made_by: str = "git-fabro"
    is_over: bool = False
    problem: str = ""


def quick(source: Source, home: Path, found: Branches) -> Row | None:
    """The row of a run whose refs say all there is to say; None if more must be asked.

    Raises:
        RecordError: a file is no JSON.
        MissingObjectError: an object is absent.
    """
    if homes.has_journal(home, found.run):
        return None
    # Imported here, and below: 4 ms that a list does not pay in which nothing is new.
    from git_fabro import history

    if history.is_ours(source, found):
        return _at_rest(source, found)
    # Imported here: 40 ms that runs of ours do not pay.
    from git_fabro.fabroruns import FabroRun

    return _of_fabros(FabroRun(source, found))


def read_ahead(source: Source, some: Iterable[Branches]) -> None:
    """Have what ``quick`` looks at read at once, of runs at rest that git-fabro made."""
    names: list[str] = []
    for found in some:
        names += found.tips
        if found.meta_tip is not None:
            names += (f"{found.meta_tip}{what}" for what in _READ_OF_META)
    source.objects.read_ahead(source.repository.git, names)


def _at_rest(source: Source, found: Branches) -> Row | None:
    if found.run_tip is None or found.meta_tip is None:
        return None
    from git_fabro import history

    said = history.said_at(source, found.run_tip)
    if said is None or not history.is_near(source, found.meta_tip, said.named):
        return None
    made = _object(source, found.meta_tip, layout.RUN_JSON)
    state = _object(source, found.meta_tip, layout.CHECKPOINT_JSON)
    if made.get("schema") != layout.SCHEMA or state.get("schema") != layout.SCHEMA:
        return None
    status = text(state.get("status"))
    if status in ("", _RUNNING) and found.origin == LOCAL:
        return None
    return _row(found, made, state, said.ordinal)


def _row(
    found: Branches, made: Mapping[str, Json], state: Mapping[str, Json], checkpoints: int
) -> Row:
    labels, parent, context = made.get("labels"), made.get("parent"), state.get("context_values")
    status = text(state.get("status"))
    return Row(
        run_id=found.run,
        status=status,
        workflow=text(made.get("workflow_slug")),
        goal=text(context.get("graph.goal")) if isinstance(context, dict) else "",
        node=text(state.get("next_node_id")) or text(state.get("current_node")) or None,
        checkpoints=checkpoints,
        created_at=text(made.get("created_at")) or born(found.run),
        updated_at=text(state.get("timestamp")),
        labels={k: text(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        parent=parent if isinstance(parent, dict) else None,
        origin=found.origin,
        is_over=status in OVER,
    )


#: What nothing follows upon; a run that failed can be resumed at the node that failed.
OVER = frozenset({"success", "partial_success", "applied"})


def _of_fabros(run: FabroRun) -> Row:
    made, places = run.made(), list(run.places())
    state = run.state_json() or {}
    updated = state.get("timestamp") if isinstance(state, dict) else None
    last = places[0].entry if places else None
    status = run.status()
    return Row(
        run_id=run.branches.run,
        status=status,
        workflow=(made.slug or made.workflow) if made is not None else "",
        goal=made.goal if made is not None else "",
        node=last.node if last is not None else None,
        checkpoints=len(places),
        created_at=made.created_at if made is not None else "",
        updated_at=text(updated),
        origin=run.branches.origin,
        made_by="fabro",
        is_over=run.has_ended,
        problem=run.problems[0] if run.problems else "",
    )


def parent_of(source: Source, found: Branches) -> Mapping[str, Json] | None:
    """Run and ordinal that a run was forked from; None if it was not, or cannot be read."""
    if found.meta_tip is None:
        return None
    try:
        parent = _object(source, found.meta_tip, layout.RUN_JSON).get("parent")
    except RecordError:
        return None
    return parent if isinstance(parent, dict) else None


def workflow_of(source: Source | None, found: Branches | None, directory: Path) -> str:
    """The name of a run's workflow, "" where none is recorded.

    Raises:
        RecordError: run.json is no JSON.
        MissingObjectError: an object is absent.
    """
    if source is None or found is None or found.meta_tip is None:
        try:
            data = (directory / layout.RUN_JSON).read_bytes()
        except OSError:
            return ""
        return text(_parsed(data, layout.RUN_JSON).get("workflow_slug"))
    made = _object(source, found.meta_tip, layout.RUN_JSON)
    if "schema" in made:
        return text(made.get("workflow_slug"))
    # Imported here: 40 ms that runs of ours do not pay.
    from git_fabro.fabroruns import FabroRun

    theirs = FabroRun(source, found).made()
    return (theirs.slug or theirs.workflow) if theirs is not None else ""


def born(run: RunId) -> str:
    """When a run came to be, as its id says; "" of an id that says nothing."""
    if not layout.is_ulid(run):
        return ""
    # Imported here: 6 ms that a row with its time does not pay.
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(layout.ulid_milliseconds(run) / 1000, UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _object(source: Source, meta: Oid, name: str) -> Mapping[str, Json]:
    return _parsed(source.objects.blob_at(meta, name) or b"{}", name)


def _parsed(data: bytes, name: str) -> Mapping[str, Json]:
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise RecordError(f"{name} is no JSON: {exc}") from exc
    return value if isinstance(value, dict) else {}
