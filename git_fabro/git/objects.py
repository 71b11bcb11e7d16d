"""Blobs, trees, commits and history of one repository, in process. Refs are elsewhere.

How an object lies on the disk is ``raw.py``'s; what its bytes mean is ``encoding.py``'s.
"""

from __future__ import annotations

import heapq
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from git_fabro.checkpoint.model import Commit, Oid, TreeEntry
from git_fabro.errors import RecordError, RequestError
from git_fabro.git.discover import Repository
from git_fabro.git.encoding import (
    FILE_MODE,
    GITLINK_MODE,
    TREE_MODE,
    commit_bytes,
    parents_of,
    parse_commit,
    parse_tree,
    tree_bytes,
    tree_of,
)
from git_fabro.git.program import Git
from git_fabro.git.raw import RawObjects

if TYPE_CHECKING:
    from git_fabro.git.batch import Batch
    from git_fabro.git.treediff import Change

#: What a path of ``Objects.tree_from`` may become: bytes or the name of a blob (the mode that was
#: there is kept), an entry with its mode, or None: gone.
Content: TypeAlias = bytes | Oid | TreeEntry | None
_Nested: TypeAlias = "bytes | Oid | TreeEntry | dict[bytes, _Nested] | None"

_CACHED_TREES = 4096


class Objects:
    """The objects of one repository.

    Args:
        common_dir: The common git directory.
        object_format: ``sha1`` or ``sha256``.
        durable: Whether each new object and its folder are synced to disk at once.
        objects_dir: The objects folder, if it is not the common directory's.
        alternates: More objects folders, besides those that ``info/alternates`` names.
        level: The zlib level of new objects; None: as ``LooseFolder`` has it.
        lazy: The git program, where objects may be absent here and fetched when asked for.
        clock: Seconds, by which ``look_again`` tells two looks apart.
    """

    def __init__(
        self,
        common_dir: Path,
        object_format: str,
        durable: bool = False,
        *,
        objects_dir: Path | None = None,
        alternates: tuple[Path, ...] = (),
        level: int | None = None,
        lazy: Git | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.object_format = object_format
        self._trees: dict[Oid, dict[bytes, TreeEntry]] = {}
        self._raw = RawObjects(
            (objects_dir or common_dir / "objects", *alternates),
            object_format,
            level=level,
            durable=durable,
            lazy=lazy,
            git_dir=common_dir,
            clock=clock,
        )

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the packs; the value stays usable."""
        self._raw.close()

    def write_blob(self, data: bytes) -> Oid:
        return self._raw.write("blob", data)

    def write_tree(self, entries: Mapping[bytes, TreeEntry]) -> Oid:
        return self._raw.write("tree", tree_bytes(entries))

    def batch(self) -> Batch:
        """A place for many new objects, which are stored together in the end."""
        from git_fabro.git.batch import Batch

        return Batch(self._raw)

    def write_commit(self, commit: Commit) -> Oid:
        """Store a commit; its identities are checked before it exists.

        Raises:
            RequestError: an identity that git would not accept.
            RecordError: a message or time that a commit cannot hold.
        """
        return self._raw.write_new("commit", commit_bytes(commit))

    def write_new_blob(self, data: bytes) -> Oid:
        """Store a blob whose bytes no other has, such as a state with its time."""
        return self._raw.write_new("blob", data)

    def write_new_tree(self, entries: Mapping[bytes, TreeEntry]) -> Oid:
        """Store a tree that names a new blob or tree."""
        return self._raw.write_new("tree", tree_bytes(entries))

    def look_again(self, *, final: bool = False) -> int:
        """Write again what a clean-up took of the objects that a ref transaction brought in.

        To be called after each transaction that succeeded: an object that two such calls found,
        some seconds apart, is forgotten. All others are remembered, up to a limit of 64 MiB.

        Args:
            final: All remembered objects are looked at, once a ``git gc`` that runs has ended.

        Returns:
            How many objects were gone.
        """
        return self._raw.look_for_all() if final else self._raw.look_again()

    @property
    def turn(self) -> int:
        """How many objects were asked for so far."""
        return self._raw.turn

    def bring_back(self, *, since: int = 0) -> int:
        """Write again what a clean-up took, whether or not on a ref; nothing is forgotten.

        Args:
            since: Of those that were asked for after that turn; 0 is all that are remembered.
        """
        return self._raw.bring_back(since=since)

    def hold(self, tree: Oid, base: Oid | None = None) -> Oid | None:
        """Remember a tree that git wrote as if it were written here; what base holds is left out.

        Returns:
            None, or an object that is gone already.
        """
        if tree == base:
            return None
        if not self._raw.hold(tree):
            return tree
        before = self._tree(base) if base is not None else {}
        for name, entry in self._tree(tree).items():
            old = before.get(name)
            if entry == old or entry.mode == GITLINK_MODE:
                continue
            if entry.mode == TREE_MODE:
                below = old.oid if old is not None and old.mode == TREE_MODE else None
                gone = self.hold(entry.oid, below)
            else:
                gone = None if self._raw.hold(entry.oid) else entry.oid
            if gone is not None:
                return gone
        return None

    def exists(self, oid: Oid) -> bool:
        """Whether the object is in the repository now; packs of other processes are seen."""
        return self._raw.exists(oid)

    def read_ahead(self, git: Git | None, names: Sequence[str]) -> None:
        """Have git read many objects at once, which are then had from memory.

        Each call forgets what the former one gave. Nothing is read where there is no git.

        Args:
            git: The git program.
            names: As git reads them: ``<commit>``, ``<commit>^{tree}``, ``<commit>:run.json``.
        """
        if git is not None:
            self._raw.read_ahead(git, names)

    def read_blob(self, oid: Oid, *, limit_bytes: int | None = None) -> bytes:
        """The bytes of a blob.

        Raises:
            MissingObjectError: it is not in the repository.
            RecordError: it is no blob, damaged, or larger than the limit.
        """
        return self._read("blob", oid, limit_bytes)

    def read_tree(self, oid: Oid) -> dict[bytes, TreeEntry]:
        """The entries of a tree, in git's order; raises as ``read_blob`` does."""
        return dict(self._tree(oid))

    def read_commit(self, oid: Oid) -> Commit:
        """A commit, whoever wrote it; raises as ``read_blob`` does."""
        return parse_commit(self._read("commit", oid))

    def tree_data(self, oid: Oid) -> bytes:
        """The bytes of a tree, to be judged as they are; raises as ``read_blob`` does."""
        return self._read("tree", oid)

    def size(self, oid: Oid) -> int:
        """The size of an object in bytes, without its content; raises as ``read_blob`` does."""
        return self._raw.size(oid)

    def commit_data(self, oid: Oid) -> bytes:
        """The bytes of a commit, for those who need little of it; raises as ``read_blob`` does."""
        return self._read("commit", oid)

    def tree_of(self, oid: Oid) -> Oid:
        """The tree of a commit, or the tree itself."""
        kind, data = self._raw.read(oid)
        return tree_of(data) if kind == "commit" else oid

    def entry_at(self, oid: Oid, path: str | bytes) -> TreeEntry | None:
        """The entry at a path of a commit or tree, None if there is none."""
        entry = TreeEntry(TREE_MODE, self.tree_of(oid))
        for name in os.fsencode(path).split(b"/"):
            if entry.mode != TREE_MODE:
                return None
            below = self._tree(entry.oid).get(name)
            if below is None:
                return None
            entry = below
        return entry

    def blob_at(self, commit: Oid, path: str | bytes) -> bytes | None:
        """The file at a path of a commit or tree; None if there is none, or it is a folder."""
        entry = self.entry_at(commit, path)
        if entry is None or entry.mode in (TREE_MODE, GITLINK_MODE):
            return None
        return self.read_blob(entry.oid)

    def _tree(self, oid: Oid) -> dict[bytes, TreeEntry]:
        entries = self._trees.get(oid)
        if entries is None:
            entries = parse_tree(self._read("tree", oid), self.object_format)
            if len(self._trees) >= _CACHED_TREES:
                self._trees.clear()
            self._trees[oid] = entries
        return entries

    def _read(self, wanted: str, oid: Oid, limit_bytes: int | None = None) -> bytes:
        kind, data = self._raw.read(oid, limit_bytes=limit_bytes)
        if kind != wanted:
            raise RecordError(f"object {oid} is a {kind}, not a {wanted}")
        return data

    def parents(self, oid: Oid) -> tuple[Oid, ...]:
        """The parents of a commit, without parsing the rest of it."""
        return parents_of(self._read("commit", oid))

    def history(
        self, tip: Oid, *, stop: Oid | None = None, limit: int | None = None
    ) -> Iterator[Oid]:
        """Commits from tip back to stop, first parents only, newest first.

        Args:
            tip: Where to begin; included.
            stop: Where to end; excluded. None walks to the root.
            limit: At most so many; None is all.

        Raises:
            MissingObjectError: a parent is absent (a shallow clone, or damage).
        """
        at: Oid | None = tip
        count = 0
        while at is not None and at != stop and count != limit:
            parents = self.parents(at)
            yield at
            at = parents[0] if parents else None
            count += 1

    def walk(
        self, tip: Oid, *, stop: Oid | None = None, limit: int | None = None
    ) -> Iterator[tuple[Oid, Commit]]:
        """As ``history``, with the commits themselves: one read for both."""
        at: Oid | None = tip
        count = 0
        while at is not None and at != stop and count != limit:
            commit = self.read_commit(at)
            yield at, commit
            at = commit.parents[0] if commit.parents else None
            count += 1

    def is_ancestor(self, ancestor: Oid, tip: Oid) -> bool:
        """Whether a commit is another one or among its ancestors, through all parents.

        Newest first from both, so that the answer no is found where the histories meet and not at
        the root. Source: commit-reach.c, paint_down_to_common
        """
        sides = {tip: 1}
        sides[ancestor] = sides.get(ancestor, 0) | 2
        queue = [self._dated(oid) for oid in sides]
        heapq.heapify(queue)
        while queue and sides[ancestor] != 3 and any(sides[oid] == 1 for _, oid, _ in queue):
            _, oid, parents = heapq.heappop(queue)
            for parent in parents:
                before = sides.get(parent, 0)
                sides[parent] = before | sides[oid]
                if sides[parent] != before:
                    heapq.heappush(queue, self._dated(parent))
        return sides[ancestor] == 3

    def _dated(self, oid: Oid) -> tuple[int, Oid, tuple[Oid, ...]]:
        commit = self.read_commit(oid)
        return -commit.when, oid, commit.parents

    def tree_from(self, entries: Mapping[str, Content], base: Oid | None = None) -> Oid:
        """A tree with these paths changed, the rest as in base; writes only what is absent.

        Args:
            entries: ``{"nodes/plan/status.json": b"{}", "run.json": oid, "old": None}``. Bytes and
                blob names keep the mode that the path has in base, else are plain files.
            base: A tree; None is the empty one.

        Raises:
            RequestError: a path is empty, absolute, or a folder and a file at once.
        """
        return self._changed(base, _nested(entries)) or self.write_tree({})

    def _changed(self, base: Oid | None, wanted: Mapping[bytes, _Nested]) -> Oid | None:
        before = self._tree(base) if base is not None else {}
        after = dict(before)
        for name, content in wanted.items():
            entry = self._entry(before.get(name), content)
            if entry is None:
                after.pop(name, None)
            else:
                after[name] = entry
        if not after:
            return None
        return base if after == before and base is not None else self.write_tree(after)

    def _entry(self, before: TreeEntry | None, content: _Nested) -> TreeEntry | None:
        if isinstance(content, dict):
            folder = before is not None and before.mode == TREE_MODE
            below = self._changed(before.oid if before and folder else None, content)
            return None if below is None else TreeEntry(TREE_MODE, below)
        if content is None or isinstance(content, TreeEntry):
            return content
        keep = before is not None and before.mode not in (TREE_MODE, GITLINK_MODE)
        oid = self.write_blob(content) if isinstance(content, bytes) else content
        return TreeEntry(before.mode if before and keep else FILE_MODE, oid)

    def diff(self, tree_a: Oid, tree_b: Oid) -> list[Change]:
        """The paths that differ between two trees (or the trees of two commits), sorted.

        Raises:
            MissingObjectError: a tree is absent.
        """
        # Imported here: 30 ms that only those pay who compare.
        from git_fabro.git.treediff import diff_trees

        source, target = self.tree_of(tree_a), self.tree_of(tree_b)
        return diff_trees(source, target, lambda oid: self._read("tree", oid), self.object_format)


def open_objects(repo: Repository) -> Objects:
    """The objects of a repository, as its configuration says: ``fabro.durable``, ``core.*``."""
    level = repo.config("core.looseCompression") or repo.config("core.compression") or ""
    return Objects(
        repo.common_dir,
        repo.object_format,
        repo.config_bool("fabro.durable"),
        objects_dir=repo.objects_dir,
        alternates=repo.alternates,
        level=int(level) if level in _LEVELS else None,
        lazy=repo.git if repo.is_partial else None,
    )


_LEVELS = frozenset(str(level) for level in range(-1, 10))


def _nested(entries: Mapping[str, Content]) -> dict[bytes, _Nested]:
    root: dict[bytes, _Nested] = {}
    for path, content in entries.items():
        *folders, name = os.fsencode(path).split(b"/")
        at = root
        for folder in folders:
            below = at.setdefault(folder, {})
            if not isinstance(below, dict):
                raise RequestError(f"both a file and a folder: {path!r}")
            at = below
        if name in at or not name:
            raise RequestError(f"both a file and a folder, or no path: {path!r}")
        at[name] = content
    return root
