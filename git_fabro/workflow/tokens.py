"""DOT text to tokens. Comments are gone; places are offsets into the text.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
from typing import NamedTuple

WORD, STRING, INTEGER, FLOAT, DURATION = "word", "string", "integer", "float", "duration"
BAD, END = "bad", "end"

#: Kinds of tokens that can be an attribute's value.
VALUES = frozenset({WORD, STRING, INTEGER, FLOAT, DURATION})

# Every position must match, the end too: a search that fails tries all later positions again.
_SKIP = r"(?:(?:\A|\n)[^\S\n]*+\#[^\n]*+|\s|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_TOKEN = re.compile(
    rf"""{_SKIP}(?:
      (?P<word>[A-Za-z_](?:[A-Za-z0-9_.:]|-(?![->]))*+)
    | (?P<mark>->|--|[{{}}\[\]=,;+<>])
    | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")
    | (?P<number>-?[0-9.](?:[A-Za-z0-9_.]|-(?![->]))*+)
    | (?P<open>"|/\*)
    | (?P<bad>.)
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NUMBERS = (
    (INTEGER, re.compile(r"-?[0-9]+\Z")),
    (FLOAT, re.compile(r"-?[0-9]*\.[0-9]+\Z")),
    (DURATION, re.compile(r"[0-9]+(?:ms|s|m|h|d)\Z")),
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "\n": ""}


#: No workflow has so many words and marks; more of them are a mistake, or meant to keep us busy.
MOST_WORDS = 500_000


class Tokens(NamedTuple):
    """The n-th token in three lists; the last two tokens are ends, so that one may look ahead.

    The kind of a mark is the mark itself. ``unclosed`` is the offset of a string or a comment that
    never ends, or of the first word too many: nothing after it is read, for to look for its end
    again and again takes quadratic time.
    """

    kinds: list[str]
    texts: list[str]
    offsets: list[int]
    unclosed: int | None


def tokenize(text: str) -> Tokens:
    """All tokens of a text with plain line feeds. A string's text is still as it is written."""
    kinds: list[str] = []
    texts: list[str] = []
    offsets: list[int] = []
    unclosed = None
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or BAD
        part = found[kind]
        if len(kinds) == MOST_WORDS and kind != END:
            unclosed = found.end() - len(part)
            break
        if kind == "mark":
            kind = part
        elif kind == "number":
            kind = INTEGER if part.isdecimal() else _number(part)
        elif kind == "open":
            unclosed = found.end() - len(part)
            break
        elif kind == END:
            break
        kinds.append(kind)
        texts.append(part)
        offsets.append(found.end() - len(part))
    return Tokens([*kinds, END, END], [*texts, "", ""], [*offsets, len(text), len(text)], unclosed)


def _number(text: str) -> str:
    return next((kind for kind, pattern in _NUMBERS if pattern.match(text)), BAD)


def unescape(written: str) -> str:
    """What a string means, from the text between its quotes."""
    if "\\" not in written:
        return written
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), written)
