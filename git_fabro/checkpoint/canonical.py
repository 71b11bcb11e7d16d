"""JSON as git-fabro writes and reads it: one form of each value, and nothing that surprises.

Source: git-fabro-format(5), "JSON".
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from git_fabro.errors import RecordError

if TYPE_CHECKING:
    from git_fabro.workflow.state import Json

_DEPTH_LIMIT = 200
_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def canonical(value: Json) -> bytes:
    """Canonical JSON without a line feed: sorted keys, no blanks, UTF-8 (git-fabro-format(5)).

    Raises:
        RecordError: the value holds NaN or an infinity, or is nested too deeply.
    """
    try:
        text = json.dumps(
            value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
        )
    except (ValueError, RecursionError, TypeError) as exc:
        raise RecordError(f"value has no canonical form: {exc}") from exc
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def parse_json(data: bytes, where: str, *, is_ours: bool = True) -> Any:
    """A JSON value; a key twice in one object, NaN and deep nesting are refused.

    Args:
        data: The bytes.
        where: Names them in messages.
        is_ours: Also refused is what canonical JSON cannot hold: numbers that are not finite once
            they are read, and halves of characters.

    Raises:
        RecordError: the data is no such JSON.
    """
    try:
        text = data.decode()
        _check_depth(text, where)
        value = json.loads(
            text,
            object_pairs_hook=_unique(where),
            parse_constant=_refuse(where),
            parse_float=_finite(where) if is_ours else None,
        )
        if is_ours and _ESCAPED_SURROGATE.search(text):
            _check_characters(value, where)
        return value
    except (ValueError, RecursionError) as exc:
        raise RecordError(f"{where}: not JSON: {exc}") from exc


def _check_depth(text: str, where: str) -> None:
    """Refuses nesting that would exhaust the stack of the parser, before it starts."""
    if text.count("[") + text.count("{") <= _DEPTH_LIMIT:
        return
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', text):
        mark = match[0][0]
        depth += 1 if mark in "[{" else -1 if mark in "]}" else 0
        if depth > _DEPTH_LIMIT:
            raise RecordError(f"{where}: nested more than {_DEPTH_LIMIT} deep")


def _unique(where: str) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise RecordError(f"{where}: a key stands twice in one object")
        return found

    return build


def _refuse(where: str) -> Any:
    def refuse(name: str) -> Any:
        raise RecordError(f"{where}: {name} is no JSON")

    return refuse


def _finite(where: str) -> Any:
    def finite(text: str) -> float:
        number = float(text)
        if math.isinf(number):
            raise RecordError(f"{where}: a number is too large: {text[:20]}")
        return number

    return finite


def _check_characters(value: Any, where: str) -> None:
    """Refuses halves of characters, which have no UTF-8; whole ones may be written as two."""
    if _SURROGATES.search(json.dumps(value, ensure_ascii=False)):
        raise RecordError(f"{where}: half of a character is no text")


def document(value: Json) -> bytes:
    """Canonical JSON as a file: one line and its line feed."""
    return canonical(value) + b"\n"
