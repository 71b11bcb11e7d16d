"""One repository and its doors, as a run uses them: objects, refs, work trees, notes, patches."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from git_fabro import operations
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.message import trailers_of
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, RunId, TreeEntry
from git_fabro.checkpoint.secrets import Mask
from git_fabro.errors import GitError, RequestError
from git_fabro.git import notes, packing
from git_fabro.git.discover import Repository, in_progress, open_repository
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.program import Git
from git_fabro.git.refs import Refs
from git_fabro.git.snapshot.model import Notice
from git_fabro.git.snapshot.reference import seed_index
from git_fabro.operations import Operation, WorkTreeChange
from git_fabro.trace import Patch, make_patch

if TYPE_CHECKING:
    from git_fabro.git.snapshot.choose import Engine

_TRIES = 5
_UNMERGED = ("1", "2", "3")  # the stages of an index that are no result
_PATCH = (
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--full-index",
    "--numstat",
    "-p",
)


@dataclass(slots=True, kw_only=True)
class Tip:
    """Where a line's ref stands: the run branch (``branch`` None) or that of a parallel branch.

    ``exists`` is whether the ref does; ``oid`` is where it begins if it does not.
    """

    branch: str | None
    ref: str
    oid: Oid
    exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTree:
    """The work tree of one line, the index of its snapshots, and the tip that it stands on."""

    path: Path
    tip: Tip
    index: Path
    engine: Engine | None  # None, as the repository: a run without Git
    repository: Repository | None

    @property
    def view(self) -> Repository:
        """The repository as seen from this work tree."""
        assert self.repository is not None
        return self.repository

    @property
    def git_dir(self) -> Path:
        return self.view.git_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Everything that touches one repository."""

    repository: Repository
    objects: Objects
    refs: Refs

    @classmethod
    def open(cls, path: Path | str = ".") -> Doors:
        """The doors of the repository that a folder belongs to.

        Raises:
            NotFoundError: no repository there.
        """
        repository = open_repository(path)
        objects = open_objects(repository)
        return cls(repository=repository, objects=objects, refs=Refs(repository, objects))

    def close(self) -> None:
        self.refs.close()
        self.objects.close()

    @property
    def git(self) -> Git:
        """The git program.

        Raises:
            RequestError: there is none on PATH.
        """
        if self.repository.git is None:
            raise RequestError("this needs the git program, and there is none on PATH")
        return self.repository.git

    def head(self) -> Oid | None:
        """The commit that HEAD names, None before the first one."""
        repository = self.repository
        if repository.head is not None:
            return self.refs.read(repository.head)
        text = (repository.git_dir / "HEAD").read_text().strip()
        return Oid(text) if re.fullmatch(r"[0-9a-f]{40,64}", text) else None

    def snapshot(self, work: WorkTree) -> tuple[Oid, list[tuple[str, str]]]:
        """The tree of a work tree as it stands, and what of it is not in that tree.

        Raises:
            GitError: a file cannot be read, or the disk refuses an object.
        """
        assert work.engine is not None
        # No process of the node runs any more; a git of its own that was killed left its lock.
        work.engine.remove_left_lock()
        taken = work.engine.record()
        work.engine.look_again(self.objects, self.objects.tree_of(work.tip.oid), taken.tree)
        return taken.tree, [(one.code, _shown(one)) for one in taken.notices]

    def settle(self, work: WorkTree, tree: Oid) -> None:
        """Has the index of a work tree hold the snapshot that was taken last.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
            GitError: it cannot be written.
        """
        assert work.engine is not None
        work.engine.settle(tree)

    def prove(self, work: WorkTree) -> list[tuple[str, str]]:
        """Looks at all of a work tree if a journal of changes was believed; what it did not tell.

        Raises:
            GitError: a file cannot be read.
        """
        assert work.engine is not None
        return [(one.code, _shown(one)) for one in work.engine.prove()]

    def is_index_behind(self, work: WorkTree) -> bool:
        """Whether the files are those of the tip, and the index those of the commit before it.

        A driver that dies just after a checkpoint leaves it so. Each staged path is then one of the
        two commits', so that bringing the index up loses nothing.
        """
        tip, parents = work.tip.oid, self.objects.parents(work.tip.oid)
        if not parents or self.tip_of(work) != tip or in_progress(work.view) is not None:
            return False
        tree, _ = self.snapshot(work)
        if tree != self.objects.tree_of(tip):
            return False
        listed = self._git(work, "diff-index", "--cached", "--raw", "-z", "--no-renames", tip)
        heads, paths = listed.split(b"\0")[:-1:2], listed.split(b"\0")[1::2]
        for head, path in zip(heads, paths, strict=False):
            _, mode, _, oid, status = head.split(b" ")
            entry = TreeEntry(int(mode, 8), Oid(oid.decode())) if int(mode, 8) else None
            if status == b"U" or entry != self.objects.entry_at(parents[0], path):
                return False
        return True

    def bring_index_up(self, work: WorkTree) -> None:
        """Has the index of a work tree hold its tip.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
        """
        assert work.engine is not None
        work.engine.set_index_to(self.objects.tree_of(work.tip.oid))

    def _git(
        self, work: WorkTree, *args: str, input: bytes = b"", ok: tuple[int, ...] = (0,)
    ) -> bytes:
        return self.git.run(
            args,
            cwd=work.path,
            git_dir=work.git_dir,
            work_tree=work.path,
            index=work.index,
            input=input,
            ok=ok,
        )

    def snapshot_of_user(self, index: Path) -> Oid:
        """The tree of the user's own work tree, through a private index that is made for it.

        Raises:
            GitError: a file cannot be read, or the disk refuses an object.
        """
        # Imported here: a tenth of the start of every command that only looks.
        from git_fabro.git.snapshot.choose import choose_engine

        seed_index(self.repository, index)
        engine = choose_engine(self.repository, self.objects, index)
        try:
            return engine.record().tree
        finally:
            for left in index.parent.glob(f"{index.name}*"):
                left.unlink()

    def touched(self, tip: Oid, tree: Oid) -> tuple[str, ...]:
        r"""The paths that differ between a commit and a tree, sorted; ``\ooo`` where not UTF-8."""
        if self.objects.tree_of(tip) == tree:
            return ()
        return tuple(shown_path(change.path) for change in self.objects.diff(tip, tree))

    def patch(self, tip: Oid, tree: Oid, mask: Mask) -> Patch:
        """What lies between a commit and a tree, counted and as text.

        Raises:
            GitError: git refuses.
        """
        if self.objects.tree_of(tip) == tree:
            return Patch()
        return make_patch(self._printed_patch(tip, tree), mask)

    def _printed_patch(self, tip: Oid, tree: Oid) -> bytes:
        for _ in range(_TRIES):
            try:
                return self.git.run((*_PATCH, tip, tree), git_dir=self.repository.git_dir)
            except GitError:
                # No ref names the tree yet, so a gc may just have taken some of it. traps: OB11
                if not self.objects.bring_back():
                    raise
        return self.git.run((*_PATCH, tip, tree), git_dir=self.repository.git_dir)

    def set_files(self, work: WorkTree, tree: Oid) -> None:
        """Turns a work tree that holds its tip into another tree; ignored files stay.

        Raises:
            GitError: a file stands in the way.
        """
        self._turn(work, work.tip.oid, tree)

    def set_files_from(self, work: WorkTree, tree: Oid, after: Oid) -> None:
        """Turns a work tree that holds this tree, its last snapshot, into another tree or commit.

        Ignored files stay.
        """
        self.settle(work, tree)
        self._turn(work, tree, after)

    def _turn(self, work: WorkTree, before: Oid, after: Oid) -> None:
        """Turns files and index from one tree or commit into another."""
        # An entry without stat data is a changed file for read-tree, whatever the file holds.
        self._git(work, "update-index", "-q", "--refresh", ok=(0, 1))
        self._git(work, "read-tree", "-m", "-u", before, after)

    def tip_of(self, work: WorkTree) -> Oid | None:
        """Where the line's own ref stands, or a detached work tree's HEAD."""
        if work.tip.branch is None:
            return self.refs.read(work.tip.ref)
        try:
            head = (work.git_dir / "HEAD").read_text().strip()
        except OSError:
            return None
        return Oid(head) if re.fullmatch(r"[0-9a-f]{40,64}", head) else None

    def annotate(self, texts: Mapping[str, str], by: Identity, when: int) -> None:
        """Writes notes, best effort: they can be made again from the commits.

        Raises:
            GitError: the notes cannot be written.
            ConflictError: other writers were faster too often.
        """
        if texts:
            notes.write_notes(
                self.objects,
                self.refs,
                {Oid(oid): text for oid, text in texts.items()},
                by=by,
                when=when,
            )

    def pack(self, run: RunId, base: Oid | None, *, log: Path | None = None) -> None:
        """Packs the loose objects of a run that lie above its base.

        Args:
            run: Whose refs are asked.
            base: Where its branch began; None: in nothing.
            log: Pack in the background, and say there what went wrong; None: now.

        Raises:
            GitError: git refuses, or could not be started.
        """
        if base is not None:
            commit = self.objects.read_commit(base)
            if commit.subject == f"fabro({run}): base":
                # Of the user's changes that a run began with, the commit is the run's own.
                base = commit.parents[0] if commit.parents else None
        if log is None:
            packing.pack_loose(self.repository, layout.refs_of(run), base=base)
        else:
            packing.start_packing(self.repository, layout.refs_of(run), base=base, log=log)

    def keep_left(self, command: str, move: Move, by: Identity, when: int) -> None:
        """Records in the operation log that a ref was left, so that its old tip stays reachable."""
        operations.record(
            self.objects,
            self.refs,
            Operation(id=fresh_ulid(), command=command, moves=(move,)),
            by=by,
            when=when,
        )

    def keep_work_tree(
        self, command: str, run: RunId, work: WorkTree, after: Oid, by: Identity, when: int
    ) -> Oid:
        """Saves what a work tree holds as an operation, before it is overwritten.

        Raises:
            GitError: it cannot be saved; nothing may be overwritten then.
        """
        state, _ = self.save_work_tree(work, by, when)
        change = WorkTreeChange(name=f"run {run}", before=state, after=after)
        operation = Operation(id=fresh_ulid(), command=command, work_tree=change)
        operations.record(self.objects, self.refs, operation, by=by, when=when)
        return state

    def save_work_tree(self, work: WorkTree, by: Identity, when: int) -> tuple[Oid, Oid]:
        """A commit of all that a work tree holds, staged and unstaged apart; and its tree.

        Raises:
            GitError: it cannot be saved; nothing may be overwritten then.
        """
        staged = self._index_commit(work, by, when)
        tree, _ = self.snapshot(work)
        return self._state_commit(work.tip.oid, tree, staged, by, when), tree

    def untrack(self, work: WorkTree, paths: Sequence[bytes]) -> None:
        """Takes paths out of an index; their files stay, as untracked ones.

        Raises:
            GitError: git refuses.
        """
        if paths:
            names = b"".join(path + b"\0" for path in paths)
            self._git(work, "update-index", "--force-remove", "-z", "--stdin", input=names)

    def restore_index(self, work: WorkTree, state: Oid) -> None:
        """Puts a saved index back; the files are those of the state already.

        Raises:
            GitError: git refuses.
        """
        saved = self._saved_index(state)
        if saved is None:
            return
        staged = self.objects.entry_at(saved, "staged")
        self._git(work, "read-tree", "--empty" if staged is None else staged.oid)
        lines = b"".join(self._unmerged(saved))
        if lines:
            self._git(work, "update-index", "-z", "--index-info", input=lines)
        self._git(
            work, "update-index", "-q", "--unmerged", "--ignore-missing", "--refresh", ok=(0, 1)
        )

    def index_trees(self, state: Oid) -> tuple[Oid, ...]:
        """The trees of a saved index: stage 0, then those of the unmerged stages that there are."""
        saved = self._saved_index(state)
        if saved is None:
            return ()
        entries = (self.objects.entry_at(saved, name) for name in ("staged", *_UNMERGED))
        return tuple(entry.oid for entry in entries if entry is not None)

    def _saved_index(self, state: Oid) -> Oid | None:
        named = trailers_of(self.objects.read_commit(state).message).get(layout.TRAILER_INDEX)
        return None if named is None else Oid(named)

    def _unmerged(self, saved: Oid) -> Iterator[bytes]:
        empty = self.objects.write_tree({})
        for stage in _UNMERGED:
            entry = self.objects.entry_at(saved, stage)
            for change in self.objects.diff(empty, entry.oid) if entry is not None else ():
                assert change.new is not None
                head = f"{change.new.mode:o} {change.new.oid} {stage}\t".encode()
                yield head + change.path + b"\0"

    def _index_commit(self, work: WorkTree, by: Identity, when: int) -> Oid:
        """The index as a commit: its entries below ``staged/`` and, unmerged, ``1/ 2/ 3/``."""
        tree = self.objects.tree_from(index_entries(self._git(work, "ls-files", "-s", "-z")))
        return self.objects.write_commit(_commit(tree, (), by, when, "index\n"))

    def _state_commit(self, head: Oid, tree: Oid, index: Oid, by: Identity, when: int) -> Oid:
        text = f"work tree\n\n{layout.TRAILER_INDEX}: {index}\n"
        return self.objects.write_commit(_commit(tree, (head, index), by, when, text))


def _commit(tree: Oid, parents: tuple[Oid, ...], by: Identity, when: int, text: str) -> Commit:
    return Commit(tree=tree, parents=parents, author=by, committer=by, when=when, message=text)


def index_entries(listed: bytes) -> dict[str, TreeEntry]:
    """What ``git ls-files -s -z`` printed, as entries of an index commit's tree."""
    found: dict[str, TreeEntry] = {}
    for row in listed.split(b"\0")[:-1]:
        head, _, path = row.partition(b"\t")
        mode, oid, stage = head.split(b" ")
        folder = "staged" if stage == b"0" else stage.decode()
        entry = TreeEntry(int(mode, 8), Oid(oid.decode()))
        found[f"{folder}/{os.fsdecode(path)}"] = entry
    return found


def _shown(notice: Notice) -> str:
    return f"{notice.message}: {shown_path(notice.path)}" if notice.path else notice.message


def shown_path(path: bytes) -> str:
    r"""A path as text: itself where it is UTF-8, else its other bytes as ``\ooo``."""
    try:
        return path.decode()
    except UnicodeDecodeError:
        return "".join(
            chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\{byte:03o}" for byte in path
        )


def fresh_ulid() -> str:
    """A new ULID."""
    return layout.make_ulid(time.time_ns() // 1_000_000, secrets.randbits(80))
