"""What an agent says about the way on: the routing object in its response."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from git_fabro.handlers.call import Notice
from git_fabro.workflow.condition import STATUSES, normalise_status
from git_fabro.workflow.state import (
    CANCELLED,
    DETERMINISTIC,
    FAIL,
    FAILURE_CLASSES,
    RETRY,
    SUCCESS,
    Failure,
    Json,
    Outcome,
)

ROUTING = frozenset(
    {
        "outcome",
        "preferred_next_label",
        "preferred_label",
        "suggested_next_ids",
        "context_updates",
        "failure_reason",
    }
)
#: In the file ``status.json``, ``status`` is a synonym of ``outcome``.
ROUTING_OF_FILE = ROUTING | {"status"}

_ENGINE_KEYS = frozenset({"outcome", "failure_class", "preferred_label"})
_ENGINE_PREFIXES = ("internal.", "graph.", "current", "thread.", "parallel.")

#: Deeper values could not be read back from the record.
_DEEPEST = 100

_STRING = r'"(?:[^"\\]|\\.)*+"?'
_STRING_IN_LINE = r'"(?:[^"\\\n]|\\.)*+"?'
_MARKS = tuple(re.compile(rf"[{{}}]|{text}", re.DOTALL) for text in (_STRING, _STRING_IN_LINE))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a routing object asks for; ``names_class``: it says what kind of failure it is."""

    outcome: Outcome
    notices: tuple[Notice, ...] = ()
    names_class: bool = False


def last_object_with(text: str, fields: Collection[str]) -> dict[str, Json] | None:
    """The last outermost balanced ``{…}`` that is a JSON object with one of the fields.

    Braces in strings do not count, and one that is never closed hides nothing. What is a string is
    looked at twice: once as JSON has it, once with strings that end with their line, as a stray
    quotation mark before the object would swallow it. Linear in the length of the text.
    """
    best: tuple[int, dict[str, Json]] | None = None
    for marks in _MARKS:
        for start, end in reversed(_outermost(text, marks)):
            if best and start <= best[0]:
                break
            value = _parsed(text[start:end])
            if isinstance(value, dict) and not value.keys().isdisjoint(fields):
                best = start, value
                break
    return best[1] if best else None


def _outermost(text: str, marks: re.Pattern[str]) -> list[tuple[int, int]]:
    """Where balanced braces begin and end that lie in no other balanced braces, in order."""
    found: list[tuple[int, int]] = []
    open_at: list[int] = []
    at = text.find("{")
    while at >= 0 and (mark := marks.search(text, at)):
        at = mark.end()
        if mark[0] == "{":
            open_at.append(mark.start())
        elif mark[0] == "}":
            start = open_at.pop()
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, at))
        if not open_at:
            at = text.find("{", at)
    return found


def _parsed(text: str) -> Json:
    try:
        value: Json = _decoder().decode(text)
    except (ValueError, RecursionError):
        return None
    return value


@cache
def _decoder() -> json.JSONDecoder:
    """Reads what models write: line ends in strings, and numbers that no record could hold."""
    return json.JSONDecoder(strict=False, parse_float=_float, parse_int=_int, parse_constant=str)


def _float(text: str) -> Json:
    number = float(text)
    return number if math.isfinite(number) else text


def _int(text: str) -> Json:
    return int(text) if len(text) <= 300 else text


def verdict_of(found: Mapping[str, Json], words: Collection[str]) -> Verdict:
    """What a routing object comes to.

    Args:
        found: The object, from a response or from ``status.json``.
        words: The outcome words, besides the statuses, that the node's edges know.
    """
    updates, notices = _updates(found.get("context_updates"))
    reason = _text(found.get("failure_reason"))
    said = found.get("outcome", found.get("status"))
    word = _text(said) or (FAIL if reason else SUCCESS)
    status = _status(word)
    if status is None and word not in words:
        known = ", ".join(sorted(STATUSES) + sorted(words))
        status, reason = FAIL, f'unknown outcome "{word[:80]}" (known: {known})'
    failure = None
    if status in (FAIL, RETRY):
        failure = Failure(reason or f"the agent said {status}", _class(found.get("failure_class")))
    label = found.get("preferred_next_label", found.get("preferred_label"))
    outcome = Outcome(
        status=status or SUCCESS,
        word="" if status else word,
        context_updates=updates,
        preferred_label=_text(label),
        suggested_next_ids=_texts(found.get("suggested_next_ids")),
        failure=failure,
        notes=_text(found.get("notes")),
    )
    return Verdict(outcome, tuple(notices), bool(_text(found.get("failure_class"))))


def _status(word: str) -> str | None:
    status = normalise_status(word.lower())
    return status if status in STATUSES else None


def _class(value: Json) -> str:
    word = _text(value).lower()
    word = CANCELLED if word == "canceled" else word
    return word if word in FAILURE_CLASSES else DETERMINISTIC


def _text(value: Json) -> str:
    """A text as it is, trimmed; what else was given, as JSON; nothing for null."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _texts(value: Json) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())


def _updates(value: Json) -> tuple[dict[str, Json], list[Notice]]:
    """The context updates that an agent may make, and a notice about those it may not."""
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        return {}, [Notice("context_updates_dropped", "context_updates is no object")]
    kept = {key: item for key, item in value.items() if _is_free(key) and not _is_deep(item)}
    dropped: list[Json] = [key for key in value if key not in kept]
    if not dropped:
        return kept, []
    names = ", ".join(str(key)[:80] for key in dropped[:20])
    message = f"context keys belong to the engine or are nested too deeply: {names}"
    return kept, [Notice("context_updates_dropped", message, details={"keys": dropped})]


def _is_free(key: str) -> bool:
    return key not in _ENGINE_KEYS and not key.startswith(_ENGINE_PREFIXES)


def _is_deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(_DEEPEST):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return True


def _inside(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
