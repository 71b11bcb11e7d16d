"""Git's wildcard patterns as compiled matchers; which names a pattern is held against is not here.

Source: gitignore(5), "PATTERN FORMAT"; what it leaves open is measured against git, in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import NamedTuple

_SLASH = ord("/")
_ANY = frozenset(range(1, 256)) - {_SLASH}
_SPECIAL = re.compile(rb"[*?[\\]")
# More strings than these are not spelled out, but matched.
_MOST_STRINGS = 16


class Glob(NamedTuple):
    """A pattern that is held against a whole name or path; its stars match no slash.

    ``strings`` is the pattern spelled out where that is short: ``[ab]c`` is ``(b"ac", b"bc")``.
    ``endings`` likewise, where one star is followed by what can be spelled out.
    """

    expression: bytes | None  # for a regular expression, up to its end; None: nothing matches
    strings: tuple[bytes, ...] = ()
    endings: tuple[bytes, ...] = ()


class FirstOf:
    """Which of many expressions is the first that matches; one pass of the compiled matcher."""

    __slots__ = ("_regex",)

    def __init__(self, expressions: Iterable[bytes]) -> None:
        # An empty group at the end of each tells which it was, and leaves its beginning plain,
        # where the matcher looks first.
        choices = b"|".join(expression + rb"\Z()" for expression in expressions)
        self._regex = re.compile(choices, re.DOTALL) if choices else None

    def find(self, text: bytes) -> int | None:
        """The place of the first expression that matches all of a text; None: none does."""
        found = self._regex.match(text) if self._regex is not None else None
        return None if found is None or found.lastindex is None else found.lastindex - 1


class _Star(NamedTuple):
    """A run of stars: any string without a slash, or whole folders, or all that follows."""

    folders: str = ""  # "*": any number of folders; "+": one at least; each with its slash
    is_all: bool = False


#: One byte out of these, or stars; a slash is the set that has only the slash.
_Item = frozenset[int] | _Star


@lru_cache(maxsize=4096)
def read_glob(pattern: bytes) -> Glob:
    """A pattern as git reads it where a slash counts (``WM_PATHNAME``).

    What stands before the first special byte is compared by itself, and two stars are folders
    only at the beginning of what follows it, or after a slash: ``ab**/c`` matches ``abc`` and
    ``abx/y/c``, ``?b**/c`` matches ``ab/c`` and not ``ab/y/c``.
    """
    special = _SPECIAL.search(pattern)
    if special is None:
        return Glob(re.escape(pattern), strings=(pattern,))
    prefix, rest = pattern[: special.start()], pattern[special.start() :]
    items = _items(rest)
    if items is None:
        return Glob(None)
    strings = tuple(prefix + string for string in _spelled_out(items))
    ends = not prefix and items[0] == _Star() and len(items) > 1
    endings = _spelled_out(items[1:]) if ends else ()
    return Glob(re.escape(prefix) + _expression(items), strings, endings)


def _items(pattern: bytes) -> list[_Item] | None:
    """What a pattern consists of; None if nothing can match it."""
    items: list[_Item] = []
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        if char == b"*":
            star, at = _star(pattern, at)
            items.append(star)
            continue
        if char == b"[":
            found = _bracket(pattern, at + 1)
            if found is None:
                return None
            members, at = found
            items.append(members)
            continue
        if char == b"\\":
            at += 1
            if at == len(pattern):
                return None
        items.append(_ANY if char == b"?" else frozenset({pattern[at]}))
        at += 1
    return items


def _star(pattern: bytes, at: int) -> tuple[_Star, int]:
    """The run of stars at this place, and where the pattern goes on."""
    end = at
    while pattern[end : end + 1] == b"*":
        end += 1
    if end - at == 1 or (at > 0 and pattern[at - 1] != _SLASH):
        return _Star(), end
    if end == len(pattern):
        return _Star(is_all=True), end
    if pattern[end] == _SLASH:
        return _Star(folders="*"), end + 1
    # Before an escaped slash, two stars do not match "no folder".
    if pattern.startswith(b"\\/", end):
        return _Star(folders="+"), end + 2
    return _Star(), end


_ELEMENT = re.compile(rb"\[:(?P<kind>[^]]*):\]|\\(?P<escaped>.)|(?P<plain>.)", re.DOTALL)
_RANGE_END = re.compile(rb"\\(?P<escaped>.)|(?P<plain>[^]])", re.DOTALL)


def _bracket(pattern: bytes, at: int) -> tuple[frozenset[int], int] | None:
    """The bytes that a bracket expression matches, and what follows it; None if it is malformed."""
    inverted = pattern.startswith((b"!", b"^"), at)
    at = start = at + inverted
    members: set[int] = set()
    low: int | None = None
    # A bracket that comes first is a member.
    while at == start or not pattern.startswith(b"]", at):
        end = _RANGE_END.match(pattern, at + 1) if low and pattern.startswith(b"-", at) else None
        if low and end is not None:
            members.update(range(low, (end["escaped"] or end["plain"])[0] + 1))
            low, at = None, end.end()
            continue
        element = _ELEMENT.match(pattern, at)
        if element is None:
            return None
        if element["kind"] is not None:
            if element["kind"] not in _CLASSES:
                return None
            members |= _CLASSES[element["kind"]]
            low = None
        else:
            low = (element["escaped"] or element["plain"])[0]
            members.add(low)
        at = element.end()
    matched = _ANY - members if inverted else _ANY & members
    return (matched, at + 1) if matched else None


_DIGITS = frozenset(b"0123456789")
_LOWER = frozenset(range(ord("a"), ord("z") + 1))
_UPPER = frozenset(range(ord("A"), ord("Z") + 1))
_GRAPH = frozenset(range(0x21, 0x7F))
# Measured with git 2.39.5 for each byte; ASCII in every locale.
_CLASSES = {
    b"alnum": _DIGITS | _LOWER | _UPPER,
    b"alpha": _LOWER | _UPPER,
    b"blank": frozenset(b"\t "),
    b"cntrl": frozenset(range(0x20)) | {0x7F},
    b"digit": _DIGITS,
    b"graph": _GRAPH,
    b"lower": _LOWER,
    b"print": _GRAPH | {0x20},
    b"punct": _GRAPH - _DIGITS - _LOWER - _UPPER,
    b"space": frozenset(b"\t\n\r "),
    b"upper": _UPPER,
    b"xdigit": _DIGITS | frozenset(b"ABCDEFabcdef"),
}


def _spelled_out(items: list[_Item]) -> tuple[bytes, ...]:
    """All the strings that items without stars match; empty if there are stars or too many."""
    sets: list[frozenset[int]] = []
    count = 1
    for item in items:
        if isinstance(item, _Star):
            return ()
        sets.append(item)
        count *= len(item)
        if count > _MOST_STRINGS:
            return ()
    return tuple(bytes(string) for string in product(*sets))


def _expression(items: list[_Item]) -> bytes:
    """A regular expression that never goes back over more than one folder's name.

    Between two stars the first place that fits is as good as any: what follows a star can begin
    later, never earlier. So each star's part is an atomic group, and a hostile pattern costs its
    length times the name's.
    """
    done, folders, group = b"", b"", b""
    parts = [b""]
    for item in items:
        if isinstance(item, _Star) and item.is_all:
            return done + b"(?>" + folders + group + b").*"
        if isinstance(item, _Star) and item.folders:
            done += b"(?>" + folders + group + b")" if folders or group else b""
            folders, group = b"(?:[^/]*/)" + item.folders.encode() + b"?", b""
        elif isinstance(item, _Star):
            parts.append(b"")
        elif item == {_SLASH}:
            group += _name(parts) + b"/"
            parts = [b""]
        else:
            parts[-1] += _one_of(item)
    return done + folders + group + _name(parts)


def _name(parts: list[bytes]) -> bytes:
    """An expression for one folder's or file's name: these parts, with stars between them."""
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    if not middle and not last:
        return first + b"[^/]*"
    inner = b"".join(b"(?>[^/]*?" + part + b")" for part in middle)
    return b"(?>" + first + inner + b"[^/]*" + last + rb"(?=/|\Z))"


def _one_of(members: frozenset[int]) -> bytes:
    if len(members) == 1:
        return re.escape(bytes(members))
    if members == _ANY:
        return b"[^/]"
    runs: list[list[int]] = []
    for byte in sorted(members):
        if runs and runs[-1][1] == byte - 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    return b"[" + b"".join(rb"\x%02x-\x%02x" % tuple(run) for run in runs) + b"]"
