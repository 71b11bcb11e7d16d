"""Restores of a work tree. One that was begun is completed, by whichever command finds it.

Between its operation and its last file a restore may die, and a work tree is then partly of one
state and partly of the other. So its plan lies in ``fabro/restore/<work tree id>`` of the common
directory from before the refs move until the files are right; whoever works on it holds a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_from_bytes, unquote_to_bytes

from git_fabro import operations
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, RunId, TreeEntry, parse_oid
from git_fabro.doors import Doors, Tip, WorkTree, shown_path
from git_fabro.errors import ConflictError, FabroError, NotFoundError, RecordError
from git_fabro.git import worktree
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Content
from git_fabro.git.snapshot.choose import choose_engine, rules_of
from git_fabro.workflow.state import Json

_FOLDER = "fabro/restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """A work tree of a run on its way from one whole state to another.

    ``before`` and ``after`` are commits; where ``after`` is a saved state, its index comes back
    with it. ``keep`` are paths of ``before`` that stay though ``after`` has none of them.
    """

    operation: str
    run: RunId
    path: Path
    before: Oid
    after: Oid
    keep: tuple[bytes, ...] = ()
    excludes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """As it is kept; a path is percent-encoded, as it need not be text."""
        return {
            "operation": self.operation,
            "run_id": self.run,
            "path": quote_from_bytes(os.fsencode(self.path)),
            "before": self.before,
            "after": self.after,
            "keep": [quote_from_bytes(path) for path in self.keep],
            "excludes": list(self.excludes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What became of a restore that had been begun: the paths that somebody changed since stay."""

    restore: Restore
    command: str
    kept: tuple[bytes, ...] = ()


@contextlib.contextmanager
def begun(repository: Repository, view: Repository, restore: Restore) -> Iterator[None]:
    """While the refs and then the files change; what raises leaves the plan to the next command.

    Args:
        repository: Whose common directory keeps the plan.
        view: The repository as seen from the work tree.
        restore: The plan.

    Raises:
        ConflictError: another process is at it.
    """
    file = repository.common_dir / _FOLDER / view.git_dir.name
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+b") as held:
        _lock(held, file, restore.path)
        held.truncate(0)
        held.write(codec.document(restore.to_json()))
        held.flush()
        os.fsync(held.fileno())
        yield
        file.unlink()


def complete(doors: Doors) -> tuple[Completed, ...]:
    """Completes what was begun here and is recorded as an operation; forgets what is not.

    Raises:
        ConflictError: another process is at it.
        GitError: git cannot write a file; the plan stays.
    """
    folder = doors.repository.common_dir / _FOLDER
    if doors.repository.git is None or not folder.is_dir():
        return ()
    found = []
    for file in sorted(folder.iterdir()):
        with contextlib.suppress(FileNotFoundError), file.open("r+b") as held:
            _lock(held, file, file)
            done = _complete(doors, held.read())
            file.unlink(missing_ok=True)
            if done is not None:
                found.append(done)
    return tuple(found)


def _lock(held: BinaryIO, file: Path, path: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        raise ConflictError(
            f"another process is restoring this work tree: {path}", hint="wait for it to end"
        ) from exc
    if not file.exists():
        raise ConflictError(f"another process has just restored this work tree: {path}")


def _complete(doors: Doors, data: bytes) -> Completed | None:
    """None: there was nothing to complete."""
    try:
        restore = _from_json(codec.parse_json(data, "the plan of a restore"))
    except (FabroError, KeyError, TypeError, ValueError):
        # Written before anything else is: a torn one has changed nothing.
        return None
    command = _command(doors, restore.operation)
    if command is None:
        return None
    try:
        work = _work_tree(doors, restore)
    except NotFoundError:
        return None
    kept = _go_on(doors, work, restore)
    return Completed(restore=restore, command=command, kept=kept)


def _command(doors: Doors, operation: str) -> str | None:
    for entry in operations.entries(doors.objects, doors.refs):
        if entry.operation.id == operation:
            return entry.operation.command
    return None


def _work_tree(doors: Doors, restore: Restore) -> WorkTree:
    view = worktree.at_work_tree(doors.repository, restore.path)
    index = view.git_dir / "index"
    engine = choose_engine(view, doors.objects, index, rules_of(view, restore.excludes))
    ref = layout.run_ref(restore.run)
    tip = Tip(branch=None, ref=ref, oid=restore.after, exists=True)
    return WorkTree(path=restore.path, tip=tip, index=index, engine=engine, repository=view)


def _go_on(doors: Doors, work: WorkTree, restore: Restore) -> tuple[bytes, ...]:
    """Writes what still is as it was before; the paths that are neither, which stay."""
    objects = doors.objects
    wanted = goal(doors, restore)
    found, _ = doors.snapshot(work)
    files: dict[str, Content] = {}
    kept = []
    for change in objects.diff(restore.before, wanted):
        now = objects.entry_at(found, change.path)
        if now == change.new:
            continue
        if now == change.old or _is_half(doors, now, change.new):
            files[os.fsdecode(change.path)] = change.new
        else:
            kept.append(change.path)
    assert work.engine is not None
    doors.set_files_from(work, found, objects.tree_from(files, found))
    worktree.forget_open(work.view)
    worktree.set_head(work.view, layout.run_branch(restore.run))
    work.engine.set_index_to(objects.tree_of(restore.after))
    doors.restore_index(work, restore.after)
    return tuple(kept)


def goal(doors: Doors, restore: Restore) -> Oid:
    """The tree that the files are to be: that of ``after``, and what is kept of ``before``."""
    entries: dict[str, Content] = {
        os.fsdecode(path): doors.objects.entry_at(restore.before, path) for path in restore.keep
    }
    return doors.objects.tree_from(entries, doors.objects.tree_of(restore.after))


def _is_half(doors: Doors, now: TreeEntry | None, new: TreeEntry | None) -> bool:
    """Whether git died over this file: it is removed first, then written from its beginning."""
    if new is None:
        return False
    if now is None:
        return True
    return doors.objects.read_blob(new.oid).startswith(doors.objects.read_blob(now.oid))


def told(done: Completed) -> list[str]:
    """What is to be said of it, a line each."""
    head = f"completed what was begun by: {done.command}"
    return [head, *(f"kept, as it was changed since: {shown_path(path)}" for path in done.kept)]


def _from_json(value: Json) -> Restore:
    if not isinstance(value, dict):
        raise TypeError(value)
    keep, excludes = value["keep"], value["excludes"]
    if not isinstance(keep, list) or not isinstance(excludes, list):
        raise TypeError(value)
    if not layout.is_run_id(str(value["run_id"])):
        raise RecordError(f"not a run: {value['run_id']!r}")
    return Restore(
        operation=str(value["operation"]),
        run=RunId(str(value["run_id"])),
        path=Path(os.fsdecode(unquote_to_bytes(str(value["path"])))),
        before=parse_oid(str(value["before"])),
        after=parse_oid(str(value["after"])),
        keep=tuple(unquote_to_bytes(str(path)) for path in keep),
        excludes=tuple(str(glob) for glob in excludes),
    )
