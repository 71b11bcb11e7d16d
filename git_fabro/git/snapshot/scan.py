"""Finding what changed in a work tree: names by folder time, files by their stat data.

A scan corrects the known folders as it goes and lists the files that have to be read. It opens no
file but ``.gitignore`` and ``.gitattributes``, and writes nothing.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from git_fabro.errors import GitError
from git_fabro.git.snapshot.attributes import check_attributes
from git_fabro.git.snapshot.baseline import Seed
from git_fabro.git.snapshot.content import read_guard
from git_fabro.git.snapshot.folders import (
    CTIME,
    LINKS,
    MTIME,
    REGULAR,
    Folder,
    Known,
    Signature,
    mode_of,
    signature_of,
)
from git_fabro.git.snapshot.ignore import (
    FolderRules,
    PathGlobs,
    Patterns,
    UndecidedError,
    parse_patterns,
)
from git_fabro.git.snapshot.model import Notice, UncoveredError, no_file, too_large
from git_fabro.git.snapshot.two import in_two

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GUARDS = (b".gitignore", b".gitattributes")
# What git refuses on some system or other, where a backslash may part folders.
# Source: read-cache.c, verify_path; path.c, is_ntfs_dotgit
_DOT_GIT = re.compile(rb"(?i)(?:\A|\\)(?:\.git|git~1)[ .]*(?:[:\\]|\Z)")
# The same for links; of the short names all that could be one. Source: is_ntfs_dotgitmodules
_DOT_GITMODULES = re.compile(rb"(?i)(?:\A|\\)(?:\.gitmodules|gi[0-9a-z]*~)")
_LARGEST_GUARD = 1 << 20
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
#: Above so many files two processes look at them.
MANY_FILES = 20_000


class MovedError(Exception):
    """The work tree changed while it was being scanned: its folders are to be looked at again."""


@dataclass(slots=True, kw_only=True)
class Scan:
    """One look at a work tree.

    Args:
        top: An open handle of its top.
        settled_ns: What changed before this time cannot change again unseen.
        outside: The patterns of ``core.excludesFile`` and of ``info/exclude``.
        globs: Untracked paths that stay out.
        largest_bytes: The largest file that is recorded; None: any.
        seed: What the index knows of files that were not looked at yet.
        watch: Called with each folder before it is looked at.
    """

    top: int
    settled_ns: int
    outside: tuple[Patterns | None, Patterns | None]
    globs: PathGlobs
    largest_bytes: int | None
    seed: Seed
    watch: Callable[[bytes], None]
    #: The files to be read.
    changed: list[tuple[Folder, bytes]] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    #: The recorded paths that are no more.
    gone: list[bytes] = field(default_factory=list)
    _has_new_links: bool = False

    def everything(self, root: Folder, *, anew: bool = False) -> None:
        """Look at all below a folder; ``anew`` lists every name, whatever the folders' times.

        Raises:
            UncoveredError: something that only git itself records rightly.
            MovedError: the folders changed meanwhile.
            GitError: a folder cannot be read.
        """
        stack, folders = [(root, anew)], []
        while stack:
            folder, anew = stack.pop()
            anew = self._list(folder, anew=anew)
            folders.append(folder)
            stack.extend((below, anew) for below in folder.folders.values())
        self._compare(folders)

    def some(self, root: Folder, names: Mapping[bytes, Iterable[bytes]]) -> bool:
        """Look at these names alone: ``{folder from the top: names in it}``; raises as above.

        Returns:
            Whether that is enough. Through a new name of a file others may have changed as well:
            then everything is to be looked at.
        """
        ruled = {path for path, wanted in names.items() if any(one in _GUARDS for one in wanted)}
        # New rules before any name that they may ignore, and a folder before those in it.
        for path in sorted(names, key=lambda path: (path not in ruled, path)):
            folder = root.at(path)
            if folder is None:
                # A folder that is gone, or ignored; its parent's event tells.
                continue
            if path in ruled:
                folder.stat = None
                self.everything(folder)
            else:
                self._look_at(folder, names[path])
        if self._has_new_links:
            # Everything meets them again.
            self.changed.clear()
        return not self._has_new_links

    def _look_at(self, folder: Folder, names: Iterable[bytes]) -> None:
        handle = self.open(folder)
        try:
            for name in names:
                found = self._lstat(folder, name, handle)
                if found is None:
                    continue
                self._place(folder, name, stat.S_IFMT(found.st_mode))
                if name in folder.files:
                    self._examine(folder, name, found)
                elif name in folder.folders:
                    folder.folders[name].stat = None
                    self.everything(folder.folders[name])
        finally:
            os.close(handle)
        # Its time has changed by what is known now, and by what may not be.
        folder.stat = None

    def _list(self, folder: Folder, *, anew: bool) -> bool:
        """Bring the names of a folder up to date; whether all below is to be listed anew."""
        self.watch(folder.path)
        handle = self.open(folder)
        try:
            found = signature_of(os.fstat(handle))
            names = self._names(handle) if anew or found != folder.stat else None
            present = folder.guards if names is None else [n for n in _GUARDS if n in names]
            if self._read_guards(folder, handle, present):
                anew = True
                names = self._names(handle) if names is None else names
            if names is None:
                return anew
            if anew:
                folder.rules = None
            for name in [*folder.files, *folder.folders]:
                if name not in names:
                    self._gone(folder, name)
            for name, kind in names.items():
                self._place(folder, name, kind)
            folder.stat = found if self.is_settled(found) else None
            return anew
        except OSError as exc:
            raise self._failed(folder, exc) from exc
        finally:
            os.close(handle)

    def open(self, folder: Folder) -> int:
        try:
            return os.open(folder.path or b".", _OPEN, dir_fd=self.top)
        except OSError as exc:
            raise self._failed(folder, exc) from exc

    def _failed(self, folder: Folder, exc: OSError) -> Exception:
        """What a refusal of the file system means for this scan."""
        if exc.errno in _GONE:
            return self.moved(folder)
        shown = os.fsdecode(folder.path or b"./")
        if exc.errno == errno.EACCES:
            return UncoveredError(f"a folder that cannot be read: {shown!a}")
        return GitError(f"cannot read the folder {shown!a}: {exc.strerror}")

    def moved(self, folder: Folder | None) -> MovedError:
        path = folder.path if folder is not None else b""
        while folder is not None:
            folder.stat = None
            folder = folder.parent
        return MovedError(os.fsdecode(path))

    def _names(self, handle: int) -> dict[bytes, int]:
        """Each name and its kind, as ``stat.S_IFMT`` has it."""
        names: dict[bytes, int] = {}
        with os.scandir(handle) as entries:
            for entry in entries:
                if entry.is_symlink():
                    kind = stat.S_IFLNK
                elif entry.is_dir(follow_symlinks=False):
                    kind = stat.S_IFDIR
                else:
                    kind = stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0
                names[os.fsencode(entry.name)] = kind
        return names

    def is_settled(self, found: Signature) -> bool:
        return found[MTIME] < self.settled_ns and found[CTIME] < self.settled_ns

    def _read_guards(self, folder: Folder, handle: int, present: Iterable[bytes]) -> bool:
        """Read ``.gitignore`` and ``.gitattributes`` if they changed; whether the rules did."""
        guards: dict[bytes, Signature | None] = {}
        changed = False
        for name in present:
            found = os.lstat(name, dir_fd=handle)
            seen = signature_of(found)
            guards[name] = seen if self.is_settled(seen) else None
            if seen == folder.guards.get(name):
                continue
            data = self._guard(folder, name, handle, found)
            if name == b".gitignore":
                changed = changed or data != folder.gitignore
                folder.gitignore = data
            else:
                check_attributes(folder.path + name, data)
        if b".gitignore" not in guards and folder.gitignore is not None:
            folder.gitignore, changed = None, True
        folder.guards = guards
        return changed

    def _guard(self, folder: Folder, name: bytes, handle: int, found: os.stat_result) -> bytes:
        path = folder.path + name
        if stat.S_ISLNK(found.st_mode) or found.st_size > _LARGEST_GUARD:
            raise UncoveredError(
                f"a symbolic link, or very large: {os.fsdecode(path)!a}", evidence=path
            )
        return read_guard(name, handle) if stat.S_ISREG(found.st_mode) else b""

    def _place(self, folder: Folder, name: bytes, kind: int) -> None:
        """Bring one name up to date: what it is now is known, what it was is forgotten."""
        if kind == stat.S_IFDIR:
            if name in folder.files:
                self._gone(folder, name)
            if name not in folder.folders and self._is_entered(folder, name):
                folder.enter(name)
            return
        if name in folder.folders:
            self._gone(folder, name)
        if kind == stat.S_IFLNK and _DOT_GITMODULES.search(name):
            path = folder.path + name
            raise UncoveredError(f"a link that git refuses: {os.fsdecode(path)!a}", evidence=path)
        if kind not in (stat.S_IFREG, stat.S_IFLNK):
            if name in folder.files:
                self.notices.append(no_file(folder.path + name))
                self._gone(folder, name)
            return
        if name not in folder.files and self._is_recorded(folder, name):
            folder.files[name] = Known(None, REGULAR, b"")

    def _is_entered(self, folder: Folder, name: bytes) -> bool:
        _refuse_dot_git(folder, name)
        if folder.parent is None and name == b".git":
            return False
        return not self.rules_of(folder).ignores(name, is_folder=True)

    def _is_recorded(self, folder: Folder, name: bytes) -> bool:
        """Whether an untracked file is to be tracked."""
        _refuse_dot_git(folder, name)
        if folder.parent is None and name == b".git":
            return False
        if self.rules_of(folder).ignores(name, is_folder=False):
            return False
        return not self.globs.matches(folder.path + name)

    def rules_of(self, folder: Folder) -> FolderRules:
        """The ignore rules of a folder, read once."""
        if folder.rules is not None:
            return folder.rules
        # Folders may lie deeper than Python's calls may: a loop.
        unread, above = [], folder.parent
        while above is not None and above.rules is None:
            unread.append(above)
            above = above.parent
        rules = above.rules if above is not None else None
        for one in reversed(unread):
            rules = one.rules = self._rules_in(one, rules)
        folder.rules = self._rules_in(folder, rules)
        return folder.rules

    def _rules_in(self, folder: Folder, above: FolderRules | None) -> FolderRules:
        where = os.fsdecode(folder.path) + ".gitignore"
        data = folder.gitignore
        try:
            patterns = parse_patterns(data, source=where) if data is not None else None
        except UndecidedError as exc:
            raise UncoveredError(f"an ignore rule that git decides: {exc}") from exc
        if above is None:
            return FolderRules.top(*self.outside, patterns)
        return above.enter(folder.name, patterns)

    def _gone(self, folder: Folder, name: bytes) -> None:
        known = folder.files.get(name)
        if known is not None and known.oid:
            self.gone.append(folder.path + name)
        if name in folder.folders:
            below = folder.folders[name].walk()
            self.gone += [one.path + file for one in below for file in one.files]
        folder.forget(name)

    def _compare(self, folders: list[Folder]) -> None:
        count = sum(len(folder.files) for folder in folders)
        full = [folder for folder in folders if folder.files]
        look = functools.partial(_differing, self.top)
        for place, names in in_two(look, full) if count > MANY_FILES else look(full):
            folder = full[place]
            handle = self.open(folder)
            try:
                for name in names:
                    self._examine_now(folder, name, handle)
            finally:
                os.close(handle)

    def _examine_now(self, folder: Folder, name: bytes, handle: int) -> None:
        found = self._lstat(folder, name, handle)
        if found is not None:
            self._examine(folder, name, found)

    def _lstat(self, folder: Folder, name: bytes, handle: int) -> os.stat_result | None:
        """What a name looks like; None: it is gone, and that is known now."""
        try:
            return os.lstat(name, dir_fd=handle)
        except OSError as exc:
            if exc.errno not in _GONE:
                raise self._failed(folder, exc) from exc
        self._gone(folder, name)
        return None

    def _examine(self, folder: Folder, name: bytes, found: os.stat_result) -> None:
        """One file that is not known to be as it was: by the index it may be, else it is read."""
        known, seen = folder.files[name], signature_of(found)
        if seen == known.stat:
            return
        mode = mode_of(found.st_mode)
        if mode is None:
            raise self.moved(folder)
        if seen[LINKS] > 1 and (known.stat is None or known.stat[LINKS] != seen[LINKS]):
            self._has_new_links = True
        path = folder.path + name
        blob = self.seed.blob(path, seen, mode)
        if blob is not None:
            folder.know(name, Known(seen if self.is_settled(seen) else None, mode, blob))
            return
        if self.largest_bytes is not None and found.st_size > self.largest_bytes:
            self._too_large(folder, name, known)
            return
        self.changed.append((folder, name))

    def _too_large(self, folder: Folder, name: bytes, known: Known) -> None:
        self.notices.append(too_large(folder.path + name))
        if known.oid:
            folder.files[name] = known._replace(stat=None)
        else:
            del folder.files[name]
            # It may shrink without its folder's time changing.
            folder.stat = None


def _differing(top: int, folders: Sequence[Folder]) -> list[tuple[int, list[bytes]]]:
    """The files that do not look as they are known to, by their folder's place."""
    found: list[tuple[int, list[bytes]]] = []
    lstat, signature = os.lstat, signature_of
    for place, folder in enumerate(folders):
        names = []
        try:
            handle = os.open(folder.path or b".", _OPEN, dir_fd=top)
        except OSError:
            # Whoever examines the names meets it again, and says so.
            found.append((place, list(folder.files)))
            continue
        for name, known in folder.files.items():
            try:
                if signature(lstat(name, dir_fd=handle)) != known[0]:
                    names.append(name)
            except OSError:
                names.append(name)
        os.close(handle)
        if names:
            found.append((place, names))
    return found


def _refuse_dot_git(folder: Folder, name: bytes) -> None:
    if _DOT_GIT.search(name) and not (folder.parent is None and name == b".git"):
        inside = name == b".git"
        what = "a repository inside" if inside else "a name that git refuses"
        raise UncoveredError(f"{what}: {os.fsdecode(folder.path + name)!a}")
