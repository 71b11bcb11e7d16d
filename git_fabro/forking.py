"""Forking: how a run comes to be that goes on from a checkpoint of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from git_fabro import lease, reading
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Move, Oid, RunId, zero
from git_fabro.doors import Doors
from git_fabro.importing import Imported
from git_fabro.metatree import MetaTree
from git_fabro.opening import Session, new_log
from git_fabro.rundir import RunDirectory
from git_fabro.store import RunLog
from git_fabro.workflow import engine
from git_fabro.workflow.records import GitIdentity, RunForked
from git_fabro.workflow.state import Json

# Who the commits of a fork are by where its source tells no one of ours.
_BY = GitIdentity(name="Fabro", email="noreply@fabro.sh", source="default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A workflow for a fork that is not its source's.

    ``made`` are the fields of run.json that tell of it, ``context`` is what a run of it starts
    with.
    """

    source: bytes
    made: Mapping[str, Json]
    context: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The checkpoint that a fork comes from, and what the fork starts with instead.

    ``meta_commit`` is None for one of Fabro's that has no metadata.
    """

    run: RunId
    ordinal: int
    run_commit: Oid
    meta_commit: Oid | None
    goal: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    workflow: Workflow | None = None


def fork(
    doors: Doors, origin: Origin, run: RunId, directory: RunDirectory, session: Session
) -> None:
    """Makes a run that goes on from a checkpoint of another one of ours, whose history it shares.

    Three refs in one transaction; nobody holds the new run. Nothing is written on the source.

    Raises:
        RecordError: what the checkpoint's metadata holds does not parse.
        GitError: the repository refuses.
    """
    assert origin.meta_commit is not None
    meta = doors.objects.read_commit(origin.meta_commit)
    tips = reading.tips_of(doors, origin.run)
    by = GitIdentity(name=meta.author.name, email=meta.author.email)
    log = new_log(doors, run, directory, session, tips.namespace, by)
    log.state = reading.state_at(doors, origin.meta_commit)
    log.meta_tree = MetaTree.load(doors.objects, meta.tree)
    log.blobs.restore(log.meta_tree.artifacts())
    made = _json_at(doors, origin.meta_commit, layout.RUN_JSON)
    _begin(log, origin, made, _json_at(doors, origin.meta_commit, layout.START_JSON))


def fork_of_fabros(
    doors: Doors,
    origin: Origin,
    imported: Imported,
    run: RunId,
    directory: RunDirectory,
    session: Session,
) -> None:
    """Makes a run of ours that goes on from a checkpoint that Fabro made.

    Its records begin with the fork: what they fold to begins with the state of that commit.

    Raises:
        GitError: the repository refuses.
    """
    log = new_log(doors, run, directory, session, "heads", _BY)
    log.state = imported.state
    log.meta_tree = MetaTree.new(doors.objects, {})
    made: dict[str, Json] = {"schema": layout.SCHEMA, "workflow_slug": imported.slug}
    started: dict[str, Json] = {"schema": layout.SCHEMA, "base_sha": imported.base}
    _begin(log, origin, made, started)


def _begin(log: RunLog, origin: Origin, made: dict[str, Json], started: dict[str, Json]) -> None:
    """The fork's first meta commit; then run branch, metadata branch and lease at once."""
    assert log.doors is not None
    log.meta_tip, log.run_tip = origin.meta_commit, origin.run_commit
    log.last_at = engine.stamp(log.clock())
    _put_forked(log, origin, made, started)
    commit = log.commit_meta(f"fork from {origin.run} @{origin.ordinal}")
    by, when = log.identity, log.when()
    nobody = lease.commit_for(log.doors.objects, None, None, by=by, when=when)
    log.move(
        Move(layout.run_ref(log.run), zero(commit), origin.run_commit),
        Move(layout.meta_ref(log.run, log.namespace), zero(commit), commit),
        lease_to=nobody,
    )
    log.close()


def _put_forked(
    log: RunLog, origin: Origin, made: dict[str, Json], started: dict[str, Json]
) -> None:
    """The record of the fork, and what it was made with: the source's, less what is its own."""
    assert log.meta_tree is not None
    source: dict[str, Json] = {
        "run": origin.run,
        "seq": log.state.seq,
        "ordinal": origin.ordinal,
        "git_commit_sha": origin.run_commit,
    }
    record = log.put(RunForked(from_=source, run_id=log.run, changes=_changes(origin)))
    labels = made.get("labels")
    made |= {
        "run_id": log.run,
        "created_at": record.at,
        "parent": {"run": origin.run, "ordinal": origin.ordinal},
        "labels": {**(labels if isinstance(labels, dict) else {}), **origin.labels},
    }
    started |= {"run_id": log.run, "run_branch": layout.run_branch(log.run)}
    files: dict[str, bytes] = {}
    if origin.workflow is not None:
        made |= origin.workflow.made
        files[layout.GRAPH] = origin.workflow.source
    files[layout.RUN_JSON] = codec.document(made)
    files[layout.START_JSON] = codec.document(started)
    for name, data in files.items():
        log.meta_tree.set_file(name, data)
        log.directory.write(name, data)


def _changes(origin: Origin) -> dict[str, Json]:
    """What a fork starts with instead of what its source had, for its record."""
    changes: dict[str, Json] = {}
    if origin.goal is not None:
        changes["goal"] = origin.goal
    if origin.labels:
        changes["labels"] = dict(origin.labels)
    if origin.workflow is not None:
        changes["context"] = dict(origin.workflow.context)
        changes["digest"] = origin.workflow.made["digest"]
    return changes


def _json_at(doors: Doors, meta: Oid, name: str) -> dict[str, Json]:
    data = doors.objects.blob_at(meta, name)
    value: Json = codec.parse_json(data or b"{}", f"{name} in {meta[:12]}")
    return dict(value) if isinstance(value, dict) else {}
