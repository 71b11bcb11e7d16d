"""The model stylesheet: which model, provider and effort a node gets by shape, class and id.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from git_fabro.errors import RequestError

#: Properties, and the names that they are read as.
PROPERTIES = {
    "model": "model",
    "llm_model": "model",
    "provider": "provider",
    "llm_provider": "provider",
    "reasoning_effort": "reasoning_effort",
    "speed": "speed",
    "backend": "backend",
    "max_tokens": "max_tokens",
}

_BLANK = re.compile(r"(?:\s|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_SELECTOR = re.compile(r"(\*)|([.#]?)([A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-]))*+)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+")
_VALUE = re.compile(r'"((?:[^"\\\n]|\\.)*+)"|(?:[^;{}"/]|/(?!\*))++')
_FOUND = re.compile(r"[A-Za-z0-9_.#-]{1,20}|.", re.DOTALL)
_RANKS = {"*": 0, "": 1, ".": 2, "#": 3}


class StylesheetError(RequestError):
    """A stylesheet that does not parse; ``offset`` counts characters from its beginning."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Rule:
    """``selector { .. }``; the mark is ``*``, ``.``, ``#``, or nothing for a shape."""

    mark: str
    name: str
    properties: Mapping[str, str]

    def matches(self, node: str, shape: str, classes: Iterable[str]) -> bool:
        if self.mark == "#":
            return self.name == node
        if self.mark == ".":
            return self.name in classes
        return self.mark == "*" or self.name == shape


@dataclass(frozen=True, slots=True)
class Stylesheet:
    """Rules, the weakest first, and the names of properties that nothing is known of."""

    rules: tuple[Rule, ...] = ()
    unknown: tuple[str, ...] = ()


def parse(text: str) -> Stylesheet:
    """The rules of a stylesheet.

    Raises:
        StylesheetError: it does not parse.
    """
    rules: list[Rule] = []
    unknown: dict[str, None] = {}
    offset = _skip(text, 0)
    while offset < len(text):
        selector = _SELECTOR.match(text, offset)
        if selector is None:
            raise _unexpected("a selector", text, offset)
        offset = _mark(text, selector.end(), "{")
        properties: dict[str, str] = {}
        while text[offset : offset + 1] != "}":
            offset = _declaration(text, offset, properties, unknown)
        offset = _skip(text, offset + 1)
        rules.append(Rule(selector[1] or selector[2], selector[3] or "", properties))
    return Stylesheet(tuple(sorted(rules, key=lambda rule: _RANKS[rule.mark])), tuple(unknown))


def properties_of(
    sheet: Stylesheet, node: str, *, shape: str, classes: Iterable[str]
) -> dict[str, str]:
    """What a stylesheet says of a node: ``{"model": "large", "reasoning_effort": "high"}``."""
    found: dict[str, str] = {}
    for rule in sheet.rules:
        if rule.matches(node, shape, classes):
            found.update(rule.properties)
    return found


def _declaration(
    text: str, offset: int, properties: dict[str, str], unknown: dict[str, None]
) -> int:
    """Reads ``prop: value`` and the semicolon after it, if there is one."""
    name = _NAME.match(text, offset)
    if name is None:
        raise _unexpected('a property or "}"', text, offset)
    offset = _mark(text, name.end(), ":")
    value = _VALUE.match(text, offset)
    written = "" if value is None else value[0] if value[1] is None else value[1]
    if value is None or not written.strip():
        raise _unexpected("a value", text, offset)
    offset = _skip(text, value.end())
    if name[0] in PROPERTIES:
        properties[PROPERTIES[name[0]]] = written.strip()
    else:
        unknown[name[0]] = None
    if text[offset : offset + 1] == ";":
        return _skip(text, offset + 1)
    if text[offset : offset + 1] != "}":
        raise _unexpected('";" or "}"', text, offset)
    return offset


def _mark(text: str, offset: int, mark: str) -> int:
    offset = _skip(text, offset)
    if text[offset : offset + 1] != mark:
        raise _unexpected(f'"{mark}"', text, offset)
    return _skip(text, offset + 1)


def _skip(text: str, offset: int) -> int:
    match = _BLANK.match(text, offset)
    return match.end() if match is not None else offset


def _unexpected(wanted: str, text: str, offset: int) -> StylesheetError:
    match = _FOUND.match(text, offset)
    found = f'"{match[0]}"' if match is not None else "the end"
    return StylesheetError(f"expected {wanted}, found {found}", offset)
