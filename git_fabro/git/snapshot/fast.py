"""The fast engine: a work tree as a tree, in process, without git's index.

It keeps every recorded file with what it looked like (``folders``), finds what changed (``scan``),
reads and stores just that, and makes anew only the trees on the way to it. Where it does not do
exactly what git does it says so before anything is written (``UncoveredError``), and git does it.
"""

from __future__ import annotations

import itertools
import operator
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git.discover import Repository
from git_fabro.git.encoding import object_name
from git_fabro.git.objects import Objects
from git_fabro.git.snapshot import statcache
from git_fabro.git.snapshot.baseline import Seed, reconcile, seeded
from git_fabro.git.snapshot.content import read_content
from git_fabro.git.snapshot.cover import Cover
from git_fabro.git.snapshot.entries import IndexFile, read_index
from git_fabro.git.snapshot.folders import (
    LINKS,
    MTIME,
    Folder,
    Known,
    Signature,
    mode_of,
    signature_of,
)
from git_fabro.git.snapshot.ignore import PathGlobs, UndecidedError
from git_fabro.git.snapshot.model import Notice, Rules, Snapshot, UncoveredError
from git_fabro.git.snapshot.rounds import FEW_FILES, MISSED, Rounds
from git_fabro.git.snapshot.runindex import VERSION, Changes, RunIndex
from git_fabro.git.snapshot.scan import MovedError, Scan

_TRIES = 5
# Reading more files than these that were never read is git's, once.
_MANY = 2_000
# The clock that file systems stamp files with. Source: clock_gettime(2), CLOCK_REALTIME_COARSE
_COARSE = 5
_TICK_NS = 20_000_000
_CHANGING = "file changed while it was read, recorded as it was last read"


class FastEngine:
    """Snapshots of one work tree, whose tracked paths are those of an index and of the last one."""

    def __init__(
        self,
        repo: Repository,
        objects: Objects,
        index: Path,
        rules: Rules,
        *,
        set_index_to: Callable[[Oid], None],
        few_files: int = FEW_FILES,
    ) -> None:
        """An engine that knows nothing yet.

        Args:
            repo: The repository as seen from the work tree.
            objects: Where blobs and trees are written.
            index: What it tracks is tracked.
            rules: What stays out.
            set_index_to: Git's own way of having the index hold a tree.
            few_files: Up to so many files all of them are looked at each time.
        """
        if repo.work_tree is None:
            raise GitError("a snapshot needs a work tree")
        self._top = repo.work_tree
        self._objects = objects
        #: What is new in the snapshot that is being made; a second try adds to it.
        self._batch = objects.batch()
        self._index = index
        self._cache = index.with_name(f"{index.name}.fabro-stat")
        self._rules = rules
        self._cover = Cover(repo)
        self._globs: PathGlobs | None = None
        self._root: Folder | None = None
        self._index_seen: Signature | None = None
        self._seed = Seed()
        self._has_declined = False
        self._is_doubted = False
        self._writes_all = False
        self._is_index_other = False
        self._is_new = False
        self._told: set[Notice] = set()
        self._rounds = Rounds(repo.work_tree, few_files=few_files)
        self._set_index_to = set_index_to
        self._run_index: RunIndex | None = None
        #: The recorded paths that the index does not hold as they are; None: nobody knows.
        self._unsettled: dict[bytes, Known | None] | None = {}

    def record(self) -> Snapshot:
        """The work tree as a tree; neither it nor any index is touched.

        Raises:
            UncoveredError: git itself is to record it; nothing was written.
            GitError: a file cannot be read, or the disk refuses an object.
        """
        anew = self._cover.check()
        try:
            for _ in range(_TRIES):
                try:
                    return self._record(anew=anew)
                except MovedError as exc:
                    # What had gone by then is known to nobody.
                    moved, self._unsettled = exc, None
                    self._rounds.fail()
            raise GitError(f"the work tree changes while it is recorded, at {str(moved)!a}")
        except BaseException:
            # Half corrected is worse than unknown.
            self.forget()
            self._batch = self._objects.batch()
            raise

    def prove(self) -> tuple[Notice, ...]:
        """Look at every file if the last snapshot did not; what the journal had not told of.

        Raises:
            GitError: a file cannot be read, or git itself has to record the work tree.
        """
        if not self._rounds.is_watching:
            return ()
        self._rounds.make_full()
        return tuple(one for one in self.record().notices if one.code == MISSED)

    def forget(self) -> None:
        """Know nothing any more: the next snapshot begins with the index."""
        self._root, self._run_index, self._unsettled = None, None, None
        self._rounds.fail()

    def _record(self, *, anew: bool) -> Snapshot:
        root = self._follow_index()
        happened = self._rounds.begin(everything=anew or self._is_index_other)
        settled_ns = _settled_ns()
        handle = self._open_top()
        try:
            scan = Scan(
                top=handle,
                settled_ns=settled_ns,
                outside=self._cover.outside,
                globs=self._path_globs(),
                largest_bytes=self._rules.largest_bytes,
                seed=self._seed,
                watch=self._rounds.watch,
            )
            if happened is None:
                # What came from a cache was ignored by rules that may be others by now.
                scan.everything(root, anew=anew or self._is_new)
            elif not scan.some(root, happened):
                happened = None
                scan.everything(root)
            self._decline_many(scan)
            changes, notices = self._read(scan)
        finally:
            os.close(handle)
        tree = self._tree(root)
        # What was gone may have come again before the scan ended.
        changes = dict.fromkeys(scan.gone) | changes
        if self._unsettled is not None:
            self._unsettled |= changes
        self._seed, self._is_index_other, self._is_new = Seed(), False, False
        notices += self._rounds.end(happened, changes, root)
        return Snapshot(tree, tuple(self._untold([*scan.notices, *notices])))

    def _untold(self, notices: list[Notice]) -> Iterator[Notice]:
        for one in notices:
            if one not in self._told:
                self._told.add(one)
                yield one

    def _open_top(self) -> int:
        try:
            return os.open(self._top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as exc:
            raise GitError(f"cannot read the work tree: {exc.strerror}: {self._top}") from exc

    def _decline_many(self, scan: Scan) -> None:
        """Leave it to git once to read all files, where no index says anything of them."""
        if self._seed.is_first and len(scan.changed) > _MANY and not self._has_declined:
            self._has_declined = True
            raise UncoveredError(f"{len(scan.changed)} files were never read", once=True)

    def look_again(self, before: Oid | None, tree: Oid) -> int:
        """As the reference engine's: how many objects of the last snapshot were gone.

        Raises:
            GitError: some are gone for good, or are taken as fast as they are made.
        """
        for count in range(_TRIES):
            gone = self._objects.hold(tree, before)
            if gone is None:
                return count
            # What was known by the index alone: all files are read.
            self.forget()
            self._is_doubted = self._writes_all = True
            try:
                same = self.record().tree == tree
            finally:
                self._writes_all = False
            if not same:
                break
        raise GitError(f"an object of the snapshot is gone: {gone}", hint="git fsck")

    def settle(self, tree: Oid) -> None:
        """Bring the index, which is the run's own, up to the last snapshot.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
        """
        if self._unsettled == {}:
            return
        if self._unsettled is None or not self._is_written(self._unsettled):
            self._run_index = None
            self._set_index_to(tree)
        self._index_seen, self._unsettled = _look(self._index), {}

    def _is_written(self, changes: Changes) -> bool:
        """Whether the index could be written without git: it is as we know it, and a plain one."""
        if self._index_seen is None or _look(self._index) != self._index_seen:
            return False
        if self._run_index is None:
            try:
                data = self._index.read_bytes()
            except OSError:
                return False
            if int.from_bytes(data[4:8]) != VERSION:
                return False
            self._run_index = RunIndex(self._index, data, self._index_seen[MTIME])
        self._run_index.change(changes, self._top)
        self._run_index.write()
        return True

    def close(self) -> None:
        """Keep what is known of the files for the next process, and let go of the watches."""
        self._rounds.close()
        if self._root is not None and self._index_seen is not None and self._unsettled == {}:
            statcache.save(self._cache, self._root, self._index_seen)

    def _path_globs(self) -> PathGlobs:
        if self._globs is None:
            try:
                self._globs = PathGlobs(self._rules.excludes)
            except UndecidedError as exc:
                raise UncoveredError(f"an exclude pattern that git decides: {exc}") from exc
        return self._globs

    def _follow_index(self) -> Folder:
        """The known folders, which hold just what the index tracks and what was recorded since."""
        seen = _look(self._index)
        if self._root is not None and seen == self._index_seen:
            return self._root
        if self._root is None and seen is not None and not self._is_doubted:
            self._root = statcache.load(self._cache, seen)
            if self._root is not None:
                self._index_seen, self._unsettled, self._is_new = seen, {}, True
                return self._root
        index = self._read_index()
        if self._root is None:
            self._is_new = True
            self._root = seeded(index, self._top, self._objects)
            written_ns = seen[MTIME] if seen is not None and not self._is_doubted else 0
            self._seed = Seed(index.entries, written_ns, is_first=not self._is_doubted)
            self._is_doubted, self._unsettled = False, {}
        else:
            self._unsettled, others = reconcile(self._root, index)
            self._is_index_other = self._is_index_other or others
        self._index_seen, self._run_index = seen, None
        return self._root

    def _read_index(self) -> IndexFile:
        try:
            return read_index(self._index.read_bytes())
        except FileNotFoundError:
            return IndexFile({}, {})
        except OSError as exc:
            raise GitError(f"cannot read the index: {exc.strerror}") from exc

    def _read(self, scan: Scan) -> tuple[dict[bytes, Known | None], list[Notice]]:
        """Read and store what is to be read; the paths that are recorded otherwise now."""
        changes: dict[bytes, Known | None] = {}
        notices: list[Notice] = []
        for folder, names in itertools.groupby(scan.changed, key=operator.itemgetter(0)):
            handle = scan.open(folder)
            try:
                for _, name in names:
                    read = self._read_one(scan, folder, name, handle)
                    if read.stat is None:
                        notices.append(Notice("file_changing", _CHANGING, folder.path + name))
                    if read.stat is None or read.stat[LINKS] > 1:
                        self._rounds.look_always(folder, name)
                    settled = read.stat is not None and scan.is_settled(read.stat)
                    if folder.know(name, read if settled else read._replace(stat=None)):
                        changes[folder.path + name] = read
            finally:
                os.close(handle)
        return changes, notices

    def _read_one(self, scan: Scan, folder: Folder, name: bytes, handle: int) -> Known:
        content = read_content(name, handle)
        mode = mode_of(content.mode) if content is not None else None
        if content is None or mode is None:
            raise scan.moved(folder)
        oid = object_name("blob", content.data, self._objects.object_format)
        if self._writes_all:
            self._batch.write("blob", content.data)
        elif bytes.fromhex(oid) != folder.files[name].oid:
            # What was recorded under this name already is in the repository, as a ref reaches it.
            self._batch.write_new("blob", content.data)
        return Known(content.stat, mode, bytes.fromhex(oid))

    def _tree(self, root: Folder) -> Oid:
        # Folders may lie deeper than Python's calls may: a loop.
        for folder in reversed(list(root.without_tree())):
            trees = {name: below.tree or b"" for name, below in folder.folders.items()}
            data = folder.entries(trees)
            folder.tree = bytes.fromhex(self._batch.write("tree", data)) if data else b""
        self._batch.store()
        return Oid(root.tree.hex()) if root.tree else self._objects.write_tree({})


def _look(path: Path) -> Signature | None:
    try:
        return signature_of(os.stat(path))
    except OSError:
        return None


def _settled_ns() -> int:
    """Before which time a file's times mean that a change from now on would show."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(_COARSE)
    return time.time_ns() - _TICK_NS
