"""Work tree to tree by git itself, through an index of our own: what ``git add -A`` records."""

from __future__ import annotations

import os
import random
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from git_fabro.checkpoint.model import Oid, parse_oid
from git_fabro.errors import BusyError, GitError
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Objects
from git_fabro.git.program import Finished, Git, failure
from git_fabro.git.snapshot.again import make_again
from git_fabro.git.snapshot.index import (
    Contents,
    Stamp,
    first_doubtful_s,
    is_readable,
    lock_of,
    remove_left,
    replace_index,
    scan,
    without_stat,
)
from git_fabro.git.snapshot.model import Notice, Rules, Snapshot, no_file, too_large

#: How long another process's lock on the index is waited for.
PATIENCE_S = 5.0

#: A plain index: no daemon's bitmap, no shared part, no folded folders, no cache that may be wrong.
SETTINGS = (
    "index.version=2",
    "index.sparse=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.fsmonitor=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "advice.addEmbeddedRepo=false",
    "core.safecrlf=false",
)
_NEVER_S = 1 << 32
_TRIES = 5
# More do not fit on a command line for certain.
_MOST_SUBMODULES = 500
T = TypeVar("T")


class ReferenceEngine:
    """Snapshots of one work tree through one index.

    The index is the work tree's own (a run's linked work tree), or a private copy (``seed_index``)
    where the work tree's own belongs to the user.
    """

    def __init__(self, repo: Repository, index: Path, rules: Rules) -> None:
        if repo.git is None or repo.work_tree is None:
            raise GitError("a snapshot needs the git program and a work tree")
        self._git: Git = repo.git.with_settings(*SETTINGS)
        self._git_dir = repo.git_dir
        self._work_tree = repo.work_tree
        self._format = repo.object_format
        self._index = index
        linked = repo.git_dir != repo.common_dir and index == repo.git_dir / "index"
        self._own_lock = lock_of(index) if linked else None
        self._rules = rules
        self._stamp = Stamp(index)
        self._seen: tuple[tuple[int, ...], Contents] | None = None
        self._written: tuple[tuple[int, ...], Oid] | None = None
        self._by_name = bool(rules.excludes) or rules.largest_bytes is not None
        self._told: set[bytes] = set()

    def record(self) -> Snapshot:
        """The work tree as a tree; the index holds the same afterwards.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
            GitError: a file cannot be read, or the disk refuses an object.
        """
        self._stamp.begin()
        before = self._patiently(self._forget_young)
        notices = self._patiently(lambda: self._add(before))
        notices += self._dirty_submodules(before)
        self._patiently(self._settle)
        tree = self._tree()
        self._stamp.finish()
        untold = tuple(notice for notice in notices if notice.path not in self._told)
        self._told.update(notice.path for notice in untold)
        return Snapshot(tree, untold)

    def _settle(self) -> None:
        """Have the index written anew once all its files are older: till then git reads them again.

        Files of the very second in which git wrote the index are compared by content, always. Git
        itself settles that when it next writes, which it does not while nothing changes.
        """
        if self._seen is None:
            return
        (_, mtime_ns, _, _), contents = self._seen
        written_s = mtime_ns // 1_000_000_000
        if contents.newest_s >= written_s and int(time.time()) > written_s:
            self._run("update-index", "--force-write-index")

    def _tree(self) -> Oid:
        """The tree of the index; git is not asked again while the index is the very same file."""
        if self._written is not None and self._written[0] == self._signature():
            return self._written[1]
        tree = self._patiently(self._write_tree)
        if self._index.exists():
            self._written = self._signature(), tree
        return tree

    def _write_tree(self) -> Oid:
        try:
            return parse_oid(self._run("write-tree").decode("ascii").strip())
        except GitError:
            # A blob may be gone that was recorded just now, or some snapshots ago. traps: OB11
            make_again(self._run, self._work_tree)
            raise

    def look_again(self, objects: Objects, before: Oid | None, tree: Oid) -> int:
        """Remember what a snapshot brought, so that ``objects`` can write it again.

        To be called while nothing changes the work tree: what a clean-up took already is made
        from its files.

        Args:
            objects: Where the objects are remembered.
            before: A tree that is on a ref, whose objects need no care; None is none.
            tree: The snapshot that this engine recorded last.

        Returns:
            How many objects were gone.

        Raises:
            GitError: some are gone for good, or are taken as fast as they are made.
        """
        count = 0
        for _ in range(_TRIES):
            gone = objects.hold(tree, before)
            if gone is None:
                return count
            count += make_again(self._run, self._work_tree) or 1
            self._patiently(self._write_tree)
        raise GitError(f"an object of the snapshot is gone: {gone}", hint="git fsck")

    def remove_left_lock(self) -> bool:
        """Remove the lock that a killed git left on a run's own linked work tree; whether it did.

        To be called when no process of the node runs any more. A lock that goes or changes within a
        tenth of a second is somebody's at work, and stays; so does any lock of another index.
        """
        return self._own_lock is not None and remove_left(self._own_lock)

    def set_index_to(self, tree: Oid) -> None:
        """Make the index hold a tree, keeping the stat data of what stays the same.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
        """
        self.distrust_young()
        self._patiently(lambda: self._run("read-tree", "--reset", tree))

    def distrust_young(self) -> None:
        """Make git read every file again that changed shortly before the last snapshot.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
        """
        self._patiently(self._forget_young)

    def _forget_young(self) -> frozenset[bytes]:
        """Drop stat data that may hide a change (traps: WT24); the gitlinks in the index."""
        last_ns = self._stamp.last_ns()
        since_s = first_doubtful_s(last_ns)
        try:
            seen = self._signature()
        except FileNotFoundError:
            return frozenset()
        if self._seen is not None and self._seen[0] == seen and self._seen[1].newest_s < since_s:
            return self._seen[1].gitlinks
        data, contents = self._plain(since_s)
        top = os.fsencode(self._work_tree)
        stale = [entry for entry in contents.young if entry.may_be_stale(top, last_ns)]
        if stale:
            replace_index(self._index, without_stat(data, stale, self._format))
        self._seen = (seen, contents)
        return contents.gitlinks

    def _plain(self, since_s: int) -> tuple[bytes, Contents]:
        data = self._index.read_bytes()
        contents = scan(data, self._format, since_s=since_s) if is_readable(data) else None
        if contents is None or contents.is_split:
            # Version 4, or split. Git writes it anew, and sees to the racy entries itself.
            self._run("update-index", "--index-version", "2", "--no-split-index")
            data = self._index.read_bytes()
            contents = scan(data, self._format, since_s=since_s)
        return data, contents

    def _signature(self) -> tuple[int, ...]:
        found = self._index.stat()
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size

    def _add(self, gitlinks: frozenset[bytes]) -> list[Notice]:
        if not self._by_name:
            done = self._call("add", "-A", "--sparse")
            if done.status == 0:
                # Git has something to say mostly of a nested repository; which, the index tells.
                return self._new_gitlinks(gitlinks) if done.stderr else []
            if lock_of(self._index).exists():
                raise BusyError(f"another process holds {lock_of(self._index).name}")
            # A nested repository without a commit, or a file that vanished: name by name.
        return self._add_by_name(gitlinks)

    def _new_gitlinks(self, before: frozenset[bytes]) -> list[Notice]:
        data = self._index.read_bytes()
        return [
            Notice("nested_repository", "nested repository recorded by its commit only", path)
            for path in sorted(scan(data, self._format, since_s=_NEVER_S).gitlinks - before)
        ]

    def _dirty_submodules(self, gitlinks: frozenset[bytes]) -> list[Notice]:
        """Submodules with changes that their commit, which is all that is recorded, lacks."""
        top = os.fsencode(self._work_tree)
        names = [
            name
            for name in sorted(gitlinks - self._told)
            if os.path.lexists(os.path.join(top, name, b".git"))
        ]
        if not names:
            return []
        paths = [f":(literal,top){os.fsdecode(name)}" for name in names[:_MOST_SUBMODULES]]
        done = self._call("diff-files", "--raw", "-z", "--ignore-submodules=none", "--", *paths)
        # A damaged submodule is no reason to fail: its commit is recorded all the same.
        dirty = done.stdout.split(b"\0")[1::2] if done.status == 0 else []
        text = "submodule with changes that are not recorded, only its commit is"
        return [Notice("submodule_dirty", text, name) for name in dirty]

    def _add_by_name(self, gitlinks: frozenset[bytes]) -> list[Notice]:
        notices = self._add_tracked()
        excludes = [f":(exclude,glob,top){glob}" for glob in self._rules.excludes if glob]
        asked = ["--", ".", *excludes] if excludes else []
        listed = self._run("ls-files", "-o", "--exclude-standard", "-z", *asked)
        names, left_out = self._sorted_out(listed.split(b"\0")[:-1])
        if names:
            options = ("--add", "--remove", "--replace", "-z", "--stdin")
            self._run("update-index", *options, input=b"".join(name + b"\0" for name in names))
        notices += self._new_gitlinks(gitlinks) if any(map(self._is_folder, names)) else []
        self._by_name = self._by_name or bool(left_out)
        return notices + left_out

    def _add_tracked(self) -> list[Notice]:
        changed = dict.fromkeys(self._run("ls-files", "-m", "-z").split(b"\0")[:-1])
        notices = self._drop([name for name in changed if self._is_no_file(name)])
        kept = [name for name in changed if self._is_too_large(name)]
        notices += [too_large(name) for name in kept]
        # Names on standard input: a command line has a limit.
        lines = (b".", *(b":(exclude,literal,top)" + name for name in kept))
        options = ("--pathspec-from-file=-", "--pathspec-file-nul")
        self._run("add", "-u", "--sparse", *options, input=b"\0".join(lines))
        return notices

    def _drop(self, names: Sequence[bytes]) -> list[Notice]:
        """Forget tracked paths where git would refuse to record anything at all."""
        if names:
            paths = b"".join(name + b"\0" for name in names)
            self._run("update-index", "--force-remove", "-z", "--stdin", input=paths)
        return [no_file(name) for name in names]

    def _is_no_file(self, name: bytes) -> bool:
        try:
            kind = os.lstat(os.path.join(os.fsencode(self._work_tree), name)).st_mode
        except OSError:
            return False
        return not (stat.S_ISREG(kind) or stat.S_ISLNK(kind) or stat.S_ISDIR(kind))

    def _sorted_out(self, names: Iterable[bytes]) -> tuple[list[bytes], list[Notice]]:
        good: list[bytes] = []
        notices: list[Notice] = []
        for name in names:
            if name.endswith(b"/"):
                # A repository of its own, which git lists as one name.
                if self._has_commit(name):
                    good.append(name.rstrip(b"/"))
                else:
                    text = "nested repository without a commit left out"
                    notices.append(Notice("nested_repository", text, name.rstrip(b"/")))
            elif self._is_too_large(name):
                notices.append(too_large(name))
            else:
                good.append(name)
        return good, notices

    def _has_commit(self, name: bytes) -> bool:
        inside = Path(os.fsdecode(os.path.join(os.fsencode(self._work_tree), name)))
        done = self._git.call(["rev-parse", "-q", "--verify", "HEAD^{commit}"], cwd=inside)
        return done.status == 0

    def _is_folder(self, name: bytes) -> bool:
        path = os.path.join(os.fsencode(self._work_tree), name)
        return os.path.isdir(path) and not os.path.islink(path)

    def _is_too_large(self, name: bytes) -> bool:
        if self._rules.largest_bytes is None:
            return False
        try:
            found = os.lstat(os.path.join(os.fsencode(self._work_tree), name))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return found.st_size > self._rules.largest_bytes

    def _call(self, *args: str, input: bytes = b"") -> Finished:
        return self._git.call(
            args,
            cwd=self._work_tree,
            git_dir=self._git_dir,
            work_tree=self._work_tree,
            index=self._index,
            input=input,
        )

    def _run(self, *args: str, input: bytes = b"") -> bytes:
        done = self._call(*args, input=input)
        if done.status != 0:
            raise failure(args, done, cwd=self._work_tree)
        return done.stdout

    def _patiently(self, step: Callable[[], T]) -> T:
        deadline = time.monotonic() + PATIENCE_S
        pause_s, tries = 0.005, 0
        while True:
            try:
                return step()
            except (BusyError, GitError) as exc:
                lock = lock_of(self._index)
                # A lock may just have gone, a file may vanish while it is being recorded, and a
                # gc may take a folder of objects away that git is about to write to.
                tries += not lock.exists()
                if tries >= _TRIES:
                    raise
                if time.monotonic() > deadline:
                    raise BusyError(f"another process holds {lock}") from exc
            time.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, 0.25)


def seed_index(repo: Repository, index: Path) -> None:
    """A private index that begins as the work tree's own, whose bytes stay what they are.

    An index that is there already is left alone: it is newer than the user's.
    """
    if index.exists():
        return
    index.parent.mkdir(parents=True, exist_ok=True)
    copy = index.with_name(f"{index.name}.{os.getpid()}")
    try:
        # With its time: git finds racy entries by the index not being younger. traps: WT23
        shutil.copy2(repo.git_dir / "index", copy)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise GitError(f"cannot copy the index: {exc.strerror}") from exc
    os.rename(copy, index)
    Stamp(index).as_old_as_index()
