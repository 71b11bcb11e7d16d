from __future__ import annotations

import os
from typing import NamedTuple

import pytest

from git_fabro.git.snapshot.wildmatch import FirstOf, read_glob
from tests.conftest import GitRepo


class Case(NamedTuple):
    """A pattern, the paths that it matches as a whole, and some that it does not."""

    claim: str
    pattern: bytes
    matched: tuple[bytes, ...] = ()
    other: tuple[bytes, ...] = ()


CASES = [
    Case("a star is any part of a name", b"*a*b", (b"ab", b"xaxb", b"aab"), (b"b", b"abx", b"a/b")),
    Case("a star matches no slash", b"a/*b", (b"a/b", b"a/xb"), (b"a/x/b", b"a/x/yb")),
    Case("a star may match nothing at the end", b"a*", (b"a", b"ab"), (b"ba",)),
    Case("a question mark is one byte", b"a?", (b"ab", b"a\xff"), (b"a", b"abc", b"a\xc3\xa9")),
    Case("two stars lead to any depth", b"**/a", (b"a", b"x/y/a"), (b"xa",)),
    Case("two stars end in anything", b"a/**", (b"a/b", b"a/b/c"), (b"b/a/b", b"a")),
    Case(
        "two stars between are any folders", b"a/**/b", (b"a/b", b"a/x/b", b"a/x/y/b"), (b"a/xb",)
    ),
    Case("three stars are two", b"a/***/b", (b"a/b", b"a/x/y/b"), (b"ab",)),
    Case("two stars elsewhere are one", b"?a**/b", (b"xa/b", b"xay/b"), (b"xa/y/b",)),
    Case("two stars before plain bytes are one", b"a/**b", (b"a/b", b"a/xb"), (b"a/x/b",)),
    Case(
        "two stars after plain bytes only are folders",
        b"a**/b",
        (b"ab", b"a/b", b"ax/y/b"),
        (b"b",),
    ),
    Case("and at the end they are anything", b"a**", (b"a", b"ab", b"a/b", b"ab/c"), (b"b",)),
    Case(
        "before a quoted slash: one folder or more", b"a/**\\/b", (b"a/x/b", b"a/x/y/b"), (b"a/b",)
    ),
    Case("two stars may follow each other", b"a/**/**/b", (b"a/b", b"a/x/y/b"), (b"a/xb",)),
    Case("a name is matched to its end", b"**/a*b/*c", (b"x/ab/c", b"axb/xc"), (b"ab/d", b"ab/cd")),
    Case(
        "names between stars stay together", b"**/a/?/**/b", (b"a/a/x/b", b"a/x/y/b"), (b"a/x/a",)
    ),
    Case("a set is one of its bytes", b"[ab]c", (b"ac", b"bc"), (b"abc", b"c")),
    Case("a set is of bytes", b"[\xc3\xa9]", (b"\xc3", b"\xa9"), (b"\xc3\xa9",)),
    Case("a set may be negated", b"[!a]", (b"b", b"\xff"), (b"a", b"bb")),
    Case("a set may be negated in another way", b"[^a]", (b"b", b"!"), (b"a",)),
    Case("a bracket that comes first is a member", b"[]a]", (b"]", b"a"), (b"[", b"b")),
    Case("a bracket after the negation too", b"[!]a]", (b"b", b"!"), (b"]", b"a")),
    Case("a range has both ends", b"[a-c]", (b"a", b"b", b"c"), (b"-", b"d")),
    Case("a range backwards is only its start", b"[c-a]", (b"c",), (b"a", b"b", b"-")),
    Case("a hyphen at the end is a member", b"[a-]", (b"-", b"a"), (b"b",)),
    Case("a hyphen at the start is a member", b"[-a]", (b"-", b"a"), (b"b",)),
    Case("a hyphen may begin a range", b"[--0]", (b"-", b"0"), (b"1", b",")),
    Case("the ends of a range may be quoted", b"[\\a-\\c]", (b"a", b"b", b"c"), (b"\\", b"-")),
    Case("a quoted bracket may end a range", b"[[-\\]]", (b"[", b"\\", b"]"), (b"-", b"^")),
    Case("a range does not go on", b"[a-c-e]", (b"b", b"-", b"e"), (b"d",)),
    Case("a quoted bracket is a member", b"[\\]\\\\]", (b"]", b"\\"), (b"\\]", b"[")),
    Case("a class has its bytes", b"[[:digit:]x]", (b"1", b"x"), (b"d", b":", b"[")),
    Case("a class may be negated", b"[![:alnum:]]", (b"-", b"!", b"\xe9"), (b"a", b"1")),
    Case("space has no vertical tab", b"a[[:space:]]", (b"a ", b"a\t", b"a\r", b"a\n"), (b"a\v",)),
    Case("a class begins no range", b"[[:digit:]-z]", (b"1", b"-", b"z"), (b"a",)),
    Case("a class ends no range", b"[+-[:digit:]]", (b"+]", b"A]", b"d]"), (b"1", b"a]", b"+")),
    Case("an unknown class matches nothing", b"[[:nope:]a]", (), (b"a", b":", b"n")),
    Case("an empty class matches nothing", b"[[::]a]", (), (b"a", b":")),
    Case("half a class is a set", b"[[:]a", (b"[a", b":a"), (b"a",)),
    Case("a class that does not end is a set", b"[[:a]", (b"[", b":", b"a"), (b"]",)),
    Case("a bracket without its end matches nothing", b"a[b", (), (b"a[b", b"ab", b"a")),
    Case("nor does one with only a bracket in it", b"[]", (), (b"[]", b"]", b"[")),
    Case("nor does one whose range does not end", b"[a-", (), (b"[a-", b"a")),
    Case("a set matches no slash", b"a[!b]c", (b"axc",), (b"a/c",)),
    Case("a slash in a set matches nothing", b"a[/]c", (), (b"a/c", b"ac")),
    Case("a quoted wildcard is a byte", b"\\*\\?\\[a]", (b"*?[a]",), (b"a?[a]", b"\\*\\?\\[a]")),
    Case("a backslash before a plain byte is dropped", b"\\a\\b", (b"ab",), (b"\\a\\b",)),
    Case("a backslash at the end matches nothing", b"a\\", (), (b"a", b"a\\")),
    Case(
        "bytes need be no text", b"\xff*\xe9", (b"\xff\xe9", b"\xffa\xe9"), (b"\xff", b"\xc3\xa9")
    ),
    Case("a line's end is a byte to a star", b"a*b", (b"a\nb", b"a\rb"), (b"a\nb\n",)),
]


def matches(pattern: bytes, path: bytes) -> bool:
    expression = read_glob(pattern).expression
    return expression is not None and FirstOf([expression]).find(path) == 0


@pytest.mark.parametrize("case", [pytest.param(case, id=case.claim) for case in CASES])
def test_a_pattern_matches_what_git_matches(case: Case) -> None:
    said = {path: matches(case.pattern, path) for path in case.matched + case.other}

    assert said == dict.fromkeys(case.matched, True) | dict.fromkeys(case.other, False)


def test_git_itself_says_what_the_table_says(repo: GitRepo) -> None:
    for number, case in enumerate(CASES):
        # The slash ties the pattern to its folder, so that whole paths are matched.
        repo.write({f"{number}/.gitignore": b"/" + case.pattern})
    paths = [b"%d/" % at + path for at, case in enumerate(CASES) for path in case[2] + case[3]]
    wanted = {b"%d/" % at + path for at, case in enumerate(CASES) for path in case.matched}

    args = ("check-ignore", "-z", "--stdin", "--no-index")
    said = set(repo.git_bytes(*args, stdin=b"".join(path + b"\0" for path in paths)).split(b"\0"))

    # Below a folder that matches all is ignored.
    below = {path for path in paths if any(path.startswith(top + b"/") for top in wanted)}
    assert said - {b""} == wanted | below


def test_what_is_short_is_spelled_out() -> None:
    assert read_glob(b"a.b").strings == (b"a.b",)
    assert set(read_glob(b"[Dd]ir/[ab]\\*").strings) == {b"Dir/a*", b"Dir/b*", b"dir/a*", b"dir/b*"}
    assert set(read_glob(b"*.py[co]").endings) == {b".pyc", b".pyo"}
    assert read_glob(b"[a-z]") == read_glob(b"[a-z]")._replace(strings=(), endings=())
    assert read_glob(b"*").endings == ()


def test_the_first_of_many_is_found() -> None:
    expressions = [read_glob(pattern).expression or b"" for pattern in (b"a*b", b"a*", b"*")]
    first = FirstOf(expressions)

    assert [first.find(path) for path in (b"axb", b"ax", b"x", b"x/y")] == [0, 1, 2, None]
    assert FirstOf([]).find(b"a") is None


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pattern",
    [
        b"*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
        b"*a" * 500 + b"b",
        b"*[!b]" * 200 + b"b",
        b"**/a*a*a*a*a*a*a*a*b/**/c",
        b"**/*a" * 200 + b"/b",
        b"x" + b"/**" * 300 + b"/b",
        b"**/?*/" * 150 + b"b",
        b"**/a/" * 200 + b"b",
        b"**/*/" * 200 + b"**/*b",
    ],
    ids=os.fsdecode,
)
def test_a_hostile_pattern_is_decided_in_time(pattern: bytes) -> None:
    paths = (b"a" * 255, b"a/" * 2000 + b"a", (b"a" * 200 + b"/") * 20 + b"a", b"x/" * 2000 + b"a")

    assert not any(matches(pattern, path) for path in paths)
