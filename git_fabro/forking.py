"""Forking: how a run comes to be that goes on from a checkpoint of another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from git_fabro import lease, reading
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Move, Oid, RunId, zero
from git_fabro.doors import Doors
from git_fabro.metatree import MetaTree
from git_fabro.opening import Session, new_log
from git_fabro.rundir import RunDirectory
from git_fabro.store import RunLog
from git_fabro.workflow import engine
from git_fabro.workflow.records import GitIdentity, RunForked
from git_fabro.workflow.state import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The checkpoint that a fork comes from, and what the fork starts with instead."""

    run: RunId
    ordinal: int
    run_commit: Oid
    meta_commit: Oid
    goal: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def fork(
    doors: Doors, origin: Origin, run: RunId, directory: RunDirectory, session: Session
) -> None:
    """Makes a run that goes on from a checkpoint of another one, whose history it shares.

    Three refs in one transaction; nobody holds the new run. Nothing is written on the source.

    Raises:
        RecordError: what the checkpoint's metadata holds does not parse.
        GitError: the repository refuses.
    """
    meta = doors.objects.read_commit(origin.meta_commit)
    tips = reading.tips_of(doors, origin.run)
    by = GitIdentity(name=meta.author.name, email=meta.author.email)
    log = new_log(doors, run, directory, session, tips.namespace, by)
    log.state = reading.state_at(doors, origin.meta_commit)
    log.meta_tip, log.run_tip = origin.meta_commit, origin.run_commit
    log.meta_tree = MetaTree.load(doors.objects, meta.tree)
    log.last_at = engine.stamp(session.clock())
    log.blobs.restore(log.meta_tree.artifacts())
    _put_forked(log, origin)
    commit = log.commit_meta(f"fork from {origin.run} @{origin.ordinal}")
    nobody = lease.commit_for(doors.objects, None, None, by=log.identity, when=log.when())
    log.move(
        Move(layout.run_ref(run), zero(commit), origin.run_commit),
        Move(layout.meta_ref(run, log.namespace), zero(commit), commit),
        lease_to=nobody,
    )
    log.close()


def _put_forked(log: RunLog, origin: Origin) -> None:
    """The record of the fork, and what it was made with: the source's, less what is its own."""
    assert log.doors is not None
    assert log.meta_tree is not None
    changes: dict[str, Json] = {}
    if origin.goal is not None:
        changes["goal"] = origin.goal
    if origin.labels:
        changes["labels"] = dict(origin.labels)
    source: dict[str, Json] = {
        "run": origin.run,
        "seq": log.state.seq,
        "ordinal": origin.ordinal,
        "git_commit_sha": origin.run_commit,
    }
    record = log.put(RunForked(from_=source, run_id=log.run, changes=changes))
    made = _json_at(log.doors, origin.meta_commit, layout.RUN_JSON)
    labels = made.get("labels")
    made |= {
        "run_id": log.run,
        "created_at": record.at,
        "parent": {"run": origin.run, "ordinal": origin.ordinal},
        "labels": {**(labels if isinstance(labels, dict) else {}), **origin.labels},
    }
    started = _json_at(log.doors, origin.meta_commit, layout.START_JSON)
    started |= {"run_id": log.run, "run_branch": layout.run_branch(log.run)}
    for name, value in ((layout.RUN_JSON, made), (layout.START_JSON, started)):
        data = codec.document(value)
        log.meta_tree.set_file(name, data)
        log.directory.write(name, data)


def _json_at(doors: Doors, meta: Oid, name: str) -> dict[str, Json]:
    data = doors.objects.blob_at(meta, name)
    value: Json = codec.parse_json(data or b"{}", f"{name} in {meta[:12]}")
    return dict(value) if isinstance(value, dict) else {}
