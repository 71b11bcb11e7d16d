"""Git's ignore rules decided in process, as ``git add -A`` decides them; nothing is read here.

The caller lists the folders and reads the files. Names are bytes, and case counts. How a single
pattern matches is in ``wildmatch``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from git_fabro.errors import GitError
from git_fabro.git.snapshot.wildmatch import Glob, compile_glob

# Files and patterns beyond these are git's: they would take us long, and nobody writes them.
_MOST_BYTES = 1 << 20
_MOST_BYTES_OF_GLOBS = 64 << 10
_MOST_BYTES_IN_A_GLOB = 1024
_BOM = b"\xef\xbb\xbf"


class UndecidedError(GitError):
    """A pattern of which it is not certain that git decides as we would; git is to be asked."""

    def __init__(self, why: str, *, pattern: bytes, source: str) -> None:
        super().__init__(f"{source}: {why}: {os.fsdecode(pattern[:80])!a}")
        self.pattern = pattern
        self.source = source


class _Rule(NamedTuple):
    """A pattern, and what it answers: twice its place in the file, and one if it ignores.

    So of two answers the greater one counts.
    """

    glob: Glob
    answer: int
    is_path: bool  # from the file's folder; else a name anywhere below
    folders_only: bool


_NO_ANSWER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The rules of one file that files are held against, or those for folders.

    Patterns that can be spelled out are found by name, the others tried one by one.
    """

    names: dict[bytes, int]
    endings: dict[bytes, int]
    all_endings: tuple[bytes, ...]
    lengths: tuple[int, ...]  # of the endings
    name_globs: tuple[_Rule, ...]  # the greatest answer first
    paths: dict[bytes, int]
    path_globs: tuple[_Rule, ...]

    def answer(self, folder: bytes, name: bytes) -> int:
        """What the last rule says that matches a name in a folder, ``b""`` or ``b"a/b/"``."""
        best = self.names.get(name, _NO_ANSWER)
        if name.endswith(self.all_endings):
            for length in self.lengths:
                best = max(best, self.endings.get(name[len(name) - length :], _NO_ANSWER))
        if self.name_globs:
            best = _greatest(self.name_globs, name, best)
        if self.paths or self.path_globs:
            path = folder + name
            best = max(best, self.paths.get(path, _NO_ANSWER))
            best = _greatest(self.path_globs, path, best)
        return best

    def below(self, folder: bytes) -> _Table:
        """This table without what can match nothing in a folder, ``b"a/b/"``, or below it."""
        left = tuple(
            rule
            for rule in self.path_globs
            if rule.glob.prefix.startswith(folder) or folder.startswith(rule.glob.prefix)
        )
        return self if len(left) == len(self.path_globs) else replace(self, path_globs=left)


def _greatest(rules: tuple[_Rule, ...], text: bytes, best: int) -> int:
    """The first answer in descending order that is greater than one that is known, else that."""
    for rule in rules:
        if rule.answer <= best:
            break
        if rule.glob.matches(text):
            return rule.answer
    return best


def _table(rules: Iterable[_Rule]) -> _Table:
    names: dict[bytes, int] = {}
    endings: dict[bytes, int] = {}
    paths: dict[bytes, int] = {}
    globs: list[_Rule] = []
    for rule in rules:
        if rule.glob.strings:
            (paths if rule.is_path else names).update(dict.fromkeys(rule.glob.strings, rule.answer))
        elif rule.glob.endings and not rule.is_path:
            endings.update(dict.fromkeys(rule.glob.endings, rule.answer))
        else:
            globs.append(rule)
    globs.reverse()
    return _Table(
        names=names,
        endings=endings,
        all_endings=tuple(endings),
        lengths=tuple({len(ending) for ending in endings}),
        name_globs=tuple(rule for rule in globs if not rule.is_path),
        paths=paths,
        path_globs=tuple(rule for rule in globs if rule.is_path),
    )


@dataclass(frozen=True, slots=True)
class Patterns:
    """The rules of one ignore file; equal to those of a file with the same bytes."""

    data: bytes = field(repr=False)
    files: _Table = field(compare=False, repr=False)
    folders: _Table = field(compare=False, repr=False)


def parse_patterns(data: bytes, *, source: str) -> Patterns:
    """The rules in the bytes of an ignore file.

    Source: gitignore(5), "PATTERN FORMAT". Beyond it, as measured: a byte order mark at the start
    and a carriage return at a line's end are dropped, and a line ends where it has a NUL byte.

    Args:
        data: What the file holds.
        source: What the file is called in an error.

    Raises:
        UndecidedError: the file is too large, or has a pattern that is.
    """
    if len(data) > _MOST_BYTES:
        raise UndecidedError("file too large", pattern=b"", source=source)
    rules: list[_Rule] = []
    left = _MOST_BYTES_OF_GLOBS
    for number, line in enumerate(_lines(data)):
        rule = _rule(line, number, source)
        if rule is not None:
            left -= 0 if rule.glob.strings or rule.glob.endings else len(line)
            rules.append(rule)
        if left < 0:
            raise UndecidedError("too many wildcards up to", pattern=line, source=source)
    return Patterns(
        data,
        files=_table(rule for rule in rules if not rule.folders_only),
        folders=_table(rules),
    )


def _lines(data: bytes) -> Iterator[bytes]:
    """The patterns of a file, without what only encloses them."""
    for line in data.removeprefix(_BOM).split(b"\n"):
        if line.startswith(b"#"):
            continue
        text = line.removesuffix(b"\r").partition(b"\0")[0]
        kept = text.rstrip(b" ")
        backslashes = len(kept) - len(kept.rstrip(b"\\"))
        # A space after an odd number of backslashes is quoted.
        yield text[: len(kept) + 1] if backslashes % 2 else kept


def _rule(line: bytes, number: int, source: str) -> _Rule | None:
    """The rule on a line; None if it can match nothing."""
    pattern = line.removeprefix(b"!")
    folders_only = pattern.endswith(b"/")
    pattern = pattern.removesuffix(b"/")
    is_path = b"/" in pattern
    pattern = pattern.removeprefix(b"/")
    if not pattern:
        return None
    glob = _glob(pattern, source)
    answer = 2 * number + (not line.startswith(b"!"))
    return None if glob.rest is None else _Rule(glob, answer, is_path, folders_only)


def _glob(pattern: bytes, source: str) -> Glob:
    if len(pattern) > _MOST_BYTES_IN_A_GLOB:
        raise UndecidedError("pattern too long", pattern=pattern, source=source)
    return compile_glob(pattern)


class _Level(NamedTuple):
    """The rules of one ignore file, seen from a folder at or below the file's own."""

    files: _Table
    folders: _Table
    folder: bytes  # from the file's own folder: b"" or b"a/b/"

    def enter(self, name: bytes) -> _Level:
        folder = self.folder + name + b"/"
        return _Level(self.files.below(folder), self.folders.below(folder), folder)


class FolderRules:
    """What is ignored among the untracked names of one folder.

    Source: gitignore(5): within one file the last match counts; a deeper ``.gitignore`` before one
    above it, before ``info/exclude``, before ``core.excludesFile``.
    """

    __slots__ = ("_ignores_all", "_levels")

    def __init__(self, levels: tuple[_Level, ...], *, ignores_all: bool = False) -> None:
        self._levels = levels  # what counts more stands first
        self._ignores_all = ignores_all

    @classmethod
    def top(
        cls,
        excludes_file: Patterns | None,
        info_exclude: Patterns | None,
        gitignore: Patterns | None,
    ) -> FolderRules:
        """The rules of the work tree's top folder; None: there is no such file."""
        files = (gitignore, info_exclude, excludes_file)
        return cls(tuple(_Level(one.files, one.folders, b"") for one in files if one is not None))

    def enter(self, name: bytes, gitignore: Patterns | None) -> FolderRules:
        """The rules of a folder in this one, with the ``.gitignore`` that lies in it.

        Source: gitignore(5): nothing can be taken in again below a folder that is ignored.
        """
        if self.ignores(name, is_folder=True):
            return _ALL
        own = () if gitignore is None else (_Level(gitignore.files, gitignore.folders, b""),)
        return FolderRules((*own, *(level.enter(name) for level in self._levels)))

    def ignores(self, name: bytes, *, is_folder: bool) -> bool:
        """Whether an untracked name in this folder is ignored; a symbolic link is no folder."""
        if self._ignores_all:
            return True
        for files, folders, folder in self._levels:
            answer = (folders if is_folder else files).answer(folder, name)
            if answer != _NO_ANSWER:
                return answer % 2 == 1
        return False


_ALL = FolderRules((), ignores_all=True)


class PathGlobs:
    """Patterns that keep paths out as git's ``:(exclude,glob,top)`` does.

    Source: gitglossary(7), "pathspec". A pattern also matches all below a folder that has the very
    name that the pattern spells, wildcards or not.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        """Compile them.

        Raises:
            UndecidedError: a pattern is too long, or cannot be handed to git.
        """
        names = [os.fsencode(pattern) for pattern in patterns]
        for name in names:
            if not name or b"\0" in name:
                raise UndecidedError("not a pattern", pattern=name, source="exclude")
        globs = {name: _glob(name, "exclude") for name in names}
        self._names = frozenset(names)
        self._folders = tuple(name.removesuffix(b"/") + b"/" for name in names)
        self._globs = tuple(glob for name, glob in globs.items() if glob.strings != (name,))

    def matches(self, path: bytes) -> bool:
        """Whether a path from the top, that of a file, is matched by any of the patterns."""
        return (
            path in self._names
            or path.startswith(self._folders)
            or any(glob.matches(path) for glob in self._globs)
        )
