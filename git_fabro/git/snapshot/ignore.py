"""Git's ignore rules decided in process, as ``git add -A`` decides them; nothing is read here.

The caller lists the folders and reads the files. Names are bytes, and case counts. How a single
pattern matches is in ``wildmatch``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from git_fabro.errors import GitError
from git_fabro.git.snapshot.wildmatch import FirstOf, Glob, read_glob

# Files and patterns beyond these are git's: they would take us seconds, and nobody writes them.
_MOST_BYTES = 256 << 10
_MOST_BYTES_OF_GLOBS = 32 << 10
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


class _Matcher:
    """The rules of one file for names, or those for paths.

    Patterns that can be spelled out are looked up; the others are tried in one pass, the last of
    the file first.
    """

    __slots__ = ("_answers", "_endings", "_first", "_lengths", "_strings")

    def __init__(self, rules: list[_Rule]) -> None:
        self._strings: dict[bytes, int] = {}
        self._endings: dict[bytes, int] = {}
        others: list[_Rule] = []
        for rule in reversed(rules):
            strings, endings = rule.glob.strings, rule.glob.endings
            for string in strings:
                self._strings.setdefault(string, rule.answer)
            if endings and not rule.is_path:
                for ending in endings:
                    self._endings.setdefault(ending, rule.answer)
            elif not strings:
                others.append(rule)
        #: How long the endings are that have this last byte.
        self._lengths: dict[bytes, set[int]] = {}
        for ending in self._endings:
            self._lengths.setdefault(ending[-1:], set()).add(len(ending))
        self._answers = tuple(rule.answer for rule in others)
        self._first = FirstOf(rule.glob.expression or b"" for rule in others)

    def answer(self, text: bytes) -> int:
        """What the last rule says that matches a name or path."""
        best = self._strings.get(text, _NO_ANSWER)
        for length in self._lengths.get(text[-1:], ()):
            # Of a text that is too short this is its end, which is an ending as well.
            best = max(best, self._endings.get(text[len(text) - length :], _NO_ANSWER))
        place = self._first.find(text)
        return best if place is None else max(best, self._answers[place])


class _Table(NamedTuple):
    """The rules of one file that files are held against, or those for folders."""

    names: _Matcher
    paths: _Matcher | None

    def answer(self, folder: bytes, name: bytes) -> int:
        """What the last rule says that matches a name in a folder, ``b""`` or ``b"a/b/"``."""
        answer = self.names.answer(name)
        if self.paths is None:
            return answer
        return max(answer, self.paths.answer(folder + name))


def _table(rules: list[_Rule]) -> _Table:
    paths = [rule for rule in rules if rule.is_path]
    names = [rule for rule in rules if not rule.is_path]
    return _Table(_Matcher(names), _Matcher(paths) if paths else None)


@dataclass(frozen=True, slots=True)
class Patterns:
    """The rules of one ignore file; equal to those of a file with the same bytes."""

    data: bytes = field(repr=False)
    files: _Table = field(compare=False, repr=False)
    folders: _Table = field(compare=False, repr=False)
    has_rules: bool = field(compare=False)


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
            is_plain = len(rule.glob.strings or rule.glob.endings) == 1
            left -= 0 if is_plain else len(line)
            rules.append(rule)
        if left < 0:
            raise UndecidedError("too many wildcards up to", pattern=line, source=source)
    return Patterns(
        data,
        files=_table([rule for rule in rules if not rule.folders_only]),
        folders=_table(rules),
        has_rules=bool(rules),
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
    if pattern.startswith(b"**/") and b"/" not in pattern[3:]:
        # A name in any folder.
        is_path, pattern = False, pattern[3:]
    if not pattern:
        return None
    glob = _glob(pattern, source)
    answer = 2 * number + (not line.startswith(b"!"))
    return None if glob.expression is None else _Rule(glob, answer, is_path, folders_only)


def _glob(pattern: bytes, source: str) -> Glob:
    if len(pattern) > _MOST_BYTES_IN_A_GLOB:
        raise UndecidedError("pattern too long", pattern=pattern, source=source)
    return read_glob(pattern)


class _Level(NamedTuple):
    """The rules of one ignore file, seen from a folder at or below the file's own."""

    patterns: Patterns
    folder: bytes  # from the file's own folder: b"" or b"a/b/"


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
        return cls(tuple(_Level(one, b"") for one in files if one is not None and one.has_rules))

    def enter(self, name: bytes, gitignore: Patterns | None) -> FolderRules:
        """The rules of a folder in this one, with the ``.gitignore`` that lies in it.

        Source: gitignore(5): nothing can be taken in again below a folder that is ignored.
        """
        if self.ignores(name, is_folder=True):
            return _ALL
        levels = [_Level(patterns, folder + name + b"/") for patterns, folder in self._levels]
        if gitignore is not None and gitignore.has_rules:
            levels.insert(0, _Level(gitignore, b""))
        return FolderRules(tuple(levels))

    def ignores(self, name: bytes, *, is_folder: bool) -> bool:
        """Whether an untracked name in this folder is ignored; a symbolic link is no folder."""
        if self._ignores_all:
            return True
        for patterns, folder in self._levels:
            table = patterns.folders if is_folder else patterns.files
            answer = table.answer(folder, name)
            if answer != _NO_ANSWER:
                return answer % 2 == 1
        return False


_ALL = FolderRules((), ignores_all=True)


class PathGlobs:
    """Patterns that keep untracked files out as git's ``:(exclude,glob,top)`` does.

    Source: gitglossary(7), "pathspec". A pattern also matches all below a folder that has the very
    name that the pattern spells, wildcards or not.
    """

    __slots__ = ("_folders", "_globs", "_names")

    def __init__(self, patterns: tuple[str, ...]) -> None:
        """Compile them.

        Raises:
            UndecidedError: a pattern is none, is too long, or takes more than paths to decide.
        """
        names = [os.fsencode(pattern) for pattern in patterns]
        self._names = frozenset(names)
        self._folders = tuple(name.removesuffix(b"/") + b"/" for name in names)
        globs = [_path_glob(name) for name in names]
        self._globs = FirstOf(glob.expression for glob in globs if glob.expression is not None)

    def matches(self, path: bytes) -> bool:
        """Whether any of the patterns matches the path of a file, from the top."""
        return (
            path in self._names
            or path.startswith(self._folders)
            or self._globs.find(path) is not None
        )


def _path_glob(pattern: bytes) -> Glob:
    if not pattern or b"\0" in pattern:
        raise UndecidedError("not a pattern", pattern=pattern, source="exclude")
    glob = _glob(pattern, "exclude")
    if glob.strings != (pattern,) and pattern.endswith((b"/", b"/*")):
        # git 2.39 does not enter a folder "a/" that matches, unless something is tracked in it:
        # "a/*" then keeps out a/b/c, which it does not match.
        raise UndecidedError("matches folders", pattern=pattern, source="exclude")
    return glob
