"""Replacing of ``{{ name }}`` and ``$name`` in attributes, once, never in what was inserted.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_DOLLAR = r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*+)"
_ANY = r"(?P<open>\{\{|\{%)"
_SCRIPT = re.compile(r"(?P<open>\{\{)(?=\s*+(?:goal|inputs|vars)\b)")
_TEXT = re.compile(_ANY)
_PROSE = re.compile(rf"{_ANY}|{_DOLLAR}")
_EXPRESSION = re.compile(r"\{\{\s*+(?:(goal)|(?:inputs|vars)\.([^\s{}]++))\s*+\}\}")
_LITERAL = re.compile(r'\{\{\s*+"(\{\{|\}\}|\{%|%\})"\s*+\}\}')


@dataclass(frozen=True, slots=True)
class Unknown:
    """A name that nothing is known by; the offset counts from the text's beginning."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text with its names replaced, and those that could not be.

    ``variables`` were written ``$name`` and stay as they are; ``templates`` are errors.
    """

    text: str
    variables: tuple[Unknown, ...] = ()
    templates: tuple[Unknown, ...] = ()


@dataclass(frozen=True, slots=True)
class Names:
    """What texts may name. The goal is None while the goal itself is read."""

    goal: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str | None:
        return self.goal if name == "goal" and self.goal is not None else self.variables.get(name)


def in_script(text: str, names: Names) -> Replaced:
    """A command's script: ``$`` is the shell's, and of ``{{`` only what names a value of ours."""
    return _replace(text, names, _SCRIPT)


def in_prose(text: str, names: Names) -> Replaced:
    """A prompt, a label or the goal: ``{{ name }}`` and ``$name``."""
    return _replace(text, names, _PROSE)


def in_text(text: str, names: Names) -> Replaced:
    """Any other attribute: ``{{ name }}`` only."""
    return _replace(text, names, _TEXT)


def _replace(text: str, names: Names, pattern: re.Pattern[str]) -> Replaced:
    if "{" not in text and "$" not in text:
        return Replaced(text)
    parts: list[str] = []
    variables: list[Unknown] = []
    templates: list[Unknown] = []
    offset = 0
    while found := pattern.search(text, offset):
        parts.append(text[offset : found.start()])
        if found["open"]:
            offset = _end(text, found)
            value = _value(text[found.start() : offset], names)
        else:
            offset = found.end()
            value = names.value(found["name"])
        written = text[found.start() : offset]
        if value is None:
            unknown = templates if found["open"] else variables
            unknown.append(Unknown(_shown(written), found.start()))
        parts.append(written if value is None else value)
    parts.append(text[offset:])
    return Replaced("".join(parts), tuple(variables), tuple(templates))


def _end(text: str, opened: re.Match[str]) -> int:
    """The offset after the closing marks; that of the text's end where there are none."""
    literal = _LITERAL.match(text, opened.start())
    if literal is not None:
        return literal.end()
    close = text.find("}}" if opened[0] == "{{" else "%}", opened.end())
    return len(text) if close < 0 else close + 2


def _value(written: str, names: Names) -> str | None:
    literal = _LITERAL.match(written)
    if literal is not None:
        return literal[1]
    found = _EXPRESSION.match(written)
    if found is None:
        return None
    return names.goal if found[1] else names.variables.get(found[2])


def _shown(written: str) -> str:
    return written[2:].removesuffix("}}").strip() if written.startswith("{{") else written
