"""Commits made by hand become checkpoints, quickly: for the hook that every commit waits for.

Where nobody holds a run and nothing of it is open, a meta commit that names a commit leaves the
state as it is but for the number of the last record. So neither states nor records are loaded,
which alone would take longer than all else. Wherever that is not so, nothing is done here, and
``opening`` and ``adoption`` do it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from git_fabro import course, homes, lease
from git_fabro.branches import Source
from git_fabro.checkpoint import layout, message
from git_fabro.checkpoint.canonical import document, parse_json
from git_fabro.checkpoint.message import meta_message, notes_by_hand
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, RunId, TreeEntry
from git_fabro.course import Tips
from git_fabro.errors import ConflictError, GitError
from git_fabro.git import notes
from git_fabro.git.discover import Repository
from git_fabro.workflow.stamps import stamp, stamp_of

if TYPE_CHECKING:
    from git_fabro.workflow.state import Json

#: So many commits are named at most, the newest: of a branch that was put elsewhere.
MOST = 1000
_FILE = 0o100644
_COUNTED = ("diff-tree", "-r", "--root", "--no-renames", "--no-ext-diff", "--numstat", "-z")


def run_here(repository: Repository) -> RunId | None:
    """The run whose branch is checked out here; None for any other branch."""
    head = repository.head
    if head is None or not head.startswith(layout.RUN_PREFIX):
        return None
    return layout.run_of(head)


def record(source: Source, run: RunId) -> bool:
    """Names the commits by hand above the last checkpoint; False: that is not so simple here.

    While a process drives the run nothing is to be done: it names them itself.

    Raises:
        RecordError: what is stored does not parse.
    """
    tips = course.tips_of(source, run)
    if lease.driver_of(source.objects, tips.lease) is not None:
        return True
    if not _is_simple(source, tips):
        return False
    seen = course.course_of(source, tips)
    if seen.verdict == "forward" or (seen.verdict == "back" and not seen.unrecorded):
        return False
    found = list(enumerate(seen.unrecorded, seen.ordinal + 1))[-MOST:]
    texts: dict[str, str] = {}
    try:
        for number, commit in found:
            tips = _name(source, tips, commit, number)
            texts |= notes_by_hand(run, commit, tips.meta_tip or "")
        _annotate(source, texts, tips)
    except (ConflictError, GitError):
        # Somebody was faster, or git says no: the long way finds out which, and says it.
        return False
    return True


def _is_simple(source: Source, tips: Tips) -> bool:
    """Whether nobody holds a run of ours, and no record of it is outside Git."""
    if tips.run_tip is None or tips.meta_tip is None or tips.lease is None:
        return False
    if lease.holder_of(source.objects, tips.lease) is not None:
        return False
    home = homes.home(source.repository, source.repository.top, os.environ)
    return not homes.has_journal(home, tips.run)


def _name(source: Source, tips: Tips, commit: Oid, ordinal: int) -> Tips:
    """One meta commit that names a commit, in a transaction with run ref and lease."""
    objects, former = source.objects, source.objects.read_commit(tips.meta_tip or Oid(""))
    now = datetime.now(UTC)
    at = max(stamp(now), stamp_of(former.when))
    last, state = _state(source, former)
    state["seq"] = seq = last + 1
    made = _record(seq, at, commit, ordinal, _counted(source, commit))
    tree = objects.read_tree(former.tree) | {
        layout.CHECKPOINT_JSON.encode(): _file(source, state),
        layout.RECORDS.encode(): _file(source, made),
    }
    text = meta_message(
        f"commit {commit[:12]}",
        run=tips.run,
        seq=seq,
        status=str(state["status"]),
        commit=commit,
        ordinal=ordinal,
    )
    when = int(now.timestamp())
    parent, token = tips.meta_tip or Oid(""), tips.lease or Oid("")
    meta = _commit(source, objects.write_new_tree(tree), parent, former.author, when, text)
    free = lease.commit_for(objects, None, token, by=former.author, when=when)
    moves = (
        lease.move_to(tips.run, token, free),
        Move(layout.run_ref(tips.run), tips.run_tip or commit, tips.run_tip or commit),
        Move(layout.meta_ref(tips.run, tips.namespace), parent, meta),
    )
    source.refs.move(moves, message=f"fabro: {tips.run}")
    objects.look_again(final=True)
    return Tips(
        run=tips.run,
        run_tip=tips.run_tip,
        meta_tip=meta,
        lease=free,
        namespace=tips.namespace,
    )


def _state(source: Source, meta: Commit) -> tuple[int, dict[str, Json]]:
    """The number of the last record, and the state, that a meta commit of ours holds.

    Raises:
        ConflictError: it is of another make, or a later one.
        RecordError: it is no JSON.
    """
    data = source.objects.blob_at(meta.tree, layout.CHECKPOINT_JSON) or b"{}"
    state: Json = parse_json(data, layout.CHECKPOINT_JSON)
    is_ours = layout.TRAILER_SEQ in message.trailers_of(meta.message)
    seq = state.get("seq") if isinstance(state, dict) else None
    if not is_ours or not isinstance(state, dict) or not isinstance(seq, int):
        raise ConflictError("the metadata is of another make")
    if state.get("schema") != layout.SCHEMA:
        raise ConflictError("the metadata is of another schema")
    return seq, state


def _file(source: Source, value: Json) -> TreeEntry:
    return TreeEntry(_FILE, source.objects.write_new_blob(document(value)))


def _commit(source: Source, tree: Oid, parent: Oid, by: Identity, when: int, text: str) -> Oid:
    return source.objects.write_commit(
        Commit(tree=tree, parents=(parent,), author=by, committer=by, when=when, message=text)
    )


def _record(seq: int, at: str, commit: Oid, ordinal: int, counted: Sequence[int]) -> Json:
    """The record of a checkpoint: the same as of ``records.CheckpointMade``."""
    files, added, deleted = counted
    return {
        "at": at,
        "data": {
            "cause": "commit",
            "diff_summary": {"added": added, "deleted": deleted, "files": files},
            "git_commit_sha": commit,
            "meta_commit_sha": None,
            "ordinal": ordinal,
            "patch_blob": None,
        },
        "kind": "checkpoint",
        "origin": "external",
        "seq": seq,
    }


def _counted(source: Source, commit: Oid) -> tuple[int, int, int]:
    """Files, lines added and lines deleted beside the first parent."""
    objects, parents = source.objects, source.objects.parents(commit)
    if parents and objects.tree_of(parents[0]) == objects.tree_of(commit):
        return 0, 0, 0
    repository = source.repository
    if repository.git is None:
        raise GitError("counting lines needs the git program")
    sides = [parents[0], commit] if parents else [commit]
    printed = repository.git.run((*_COUNTED, *sides), git_dir=repository.git_dir)
    rows = [row.split(b"\t", 2) for row in printed.split(b"\0") if row.count(b"\t") >= 2]
    added = sum(int(row[0]) for row in rows if row[0].isdigit())
    return len(rows), added, sum(int(row[1]) for row in rows if row[1].isdigit())


def _annotate(source: Source, texts: dict[str, str], tips: Tips) -> None:
    """Notes by whoever the metadata is by."""
    if not texts or tips.meta_tip is None:
        return
    made = source.objects.read_commit(tips.meta_tip)
    wanted = {Oid(oid): text for oid, text in texts.items()}
    notes.write_notes(source.objects, source.refs, wanted, by=made.author, when=made.when)
