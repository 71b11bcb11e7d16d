"""Conditions on edges: parsed when a graph is loaded, evaluated against a run's context.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from git_fabro.errors import RequestError

#: Newer spellings of statuses, read wherever a status is read (git-fabro-workflow(7)).
STATUS_WORDS = {
    "succeeded": "success",
    "partially_succeeded": "partial_success",
    "failed": "fail",
}
STATUSES = frozenset({"success", "partial_success", "fail", "retry", "skipped"})

#: Of a longer subject, ``matches`` searches this many characters at either end.
MATCH_LIMIT = 16_384
_PATTERN_LIMIT = 1_000

_BLANKS = re.compile(r"\s*+")
_NOTS = re.compile(r"(?:!\s*+)*+")
_KEY = re.compile(r'[^\s=!<>&|()"]++')
_OPERATOR = re.compile(r"!=|>=|<=|=|>|<|(?<=\s)(?:contains|matches)(?=\s|\Z)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_BARE = re.compile(r"(?:[^&|]|&(?!&)|\|(?!\|))*+")
_JOINT = re.compile(r"&&|\|\|")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_MISTAKEN = re.compile(r"[=<>!]|~(?=\s)")
_FOUND = re.compile(r"\S{1,20}")

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}

Lookup = Callable[[str], object]


class ConditionError(RequestError):
    """A condition that does not parse; ``offset`` counts characters from its beginning."""

    def __init__(self, message: str, offset: int, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """``key op value``, or a bare key with the operator empty."""

    key: str
    operator: str = ""
    value: str = ""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """True if all clauses of one alternative hold; without alternatives it is always true."""

    alternatives: tuple[tuple[Clause, ...], ...]


def parse(text: str) -> Condition:
    """A condition; an empty text gives one that is always true.

    Raises:
        ConditionError: the text is no condition, or a regular expression in it does not compile.
    """
    if not text.strip():
        return Condition(())
    alternatives: list[tuple[Clause, ...]] = []
    clauses: list[Clause] = []
    offset = 0
    while True:
        clause, offset = _clause(text, offset)
        clauses.append(clause)
        joint = _JOINT.match(text, offset)
        if joint is None or joint[0] == "||":
            alternatives.append(tuple(clauses))
            clauses = []
        if joint is None:
            return Condition(tuple(alternatives))
        offset = joint.end()


def evaluate(condition: Condition, lookup: Lookup) -> bool:
    """Whether a condition holds; ``lookup`` gives a key's value, None where it is missing."""
    if not condition.alternatives:
        return True
    return any(
        all(_holds(clause, lookup) for clause in clauses) for clauses in condition.alternatives
    )


def names_outcome_words(condition: Condition) -> frozenset[str]:
    """The words, no statuses, that a condition compares the outcome with."""
    return frozenset(
        clause.value
        for clause in outcome_clauses(condition)
        if normalise_status(clause.value) not in STATUSES
    )


def outcome_clauses(condition: Condition) -> tuple[Clause, ...]:
    """The clauses that compare the outcome with a word."""
    return tuple(
        clause
        for clauses in condition.alternatives
        for clause in clauses
        if clause.key in {"outcome", "context.outcome"} and clause.operator in {"=", "!="}
    )


def normalise_status(word: str) -> str:
    """A status in its older spelling; any other word as it is."""
    return STATUS_WORDS.get(word, word)


def _clause(text: str, offset: int) -> tuple[Clause, int]:
    offset = _skip_blanks(text, offset)
    nots = _NOTS.match(text, offset)
    negated = nots is not None and nots[0].count("!") % 2 == 1
    offset = nots.end() if nots is not None else offset
    key = _KEY.match(text, offset)
    if key is None:
        raise _no_key(text, offset)
    end = _skip_blanks(text, key.end())
    if end == len(text) or _JOINT.match(text, end):
        return Clause(key=key[0], negated=negated), end
    operator = _OPERATOR.match(text, end)
    if operator is None:
        raise ConditionError(f"unknown operator {_found(text, end)}", end)
    value, end = _value(text, operator)
    if operator[0] == "matches":
        _check_pattern(value, offset)
    return Clause(key=key[0], operator=operator[0], value=value, negated=negated), end


def _no_key(text: str, offset: int) -> ConditionError:
    if text[offset : offset + 1] in {"(", ")"}:
        return ConditionError(
            'parentheses are not supported; "&&" binds tighter than "||", "!" tighter than both',
            offset,
        )
    return ConditionError(f"expected a key, found {_found(text, offset)}", offset)


def _value(text: str, operator: re.Match[str]) -> tuple[str, int]:
    if operator[0] in {"=", "!=", "<", ">"} and _MISTAKEN.match(text, operator.end()):
        wrong = operator[0] + text[operator.end()]
        raise ConditionError(f'unknown operator "{wrong}"', operator.start())
    offset = _skip_blanks(text, operator.end())
    if text[offset : offset + 1] == '"':
        return _quoted_value(text, offset)
    bare = _BARE.match(text, offset)
    value = bare[0].strip() if bare is not None else ""
    if bare is None or not value:
        after = f'expected a value after "{operator[0]}", found {_found(text, offset)}'
        raise ConditionError(f'{after}; the empty text is ""', offset)
    return value, bare.end()


def _quoted_value(text: str, offset: int) -> tuple[str, int]:
    match = _QUOTED.match(text, offset)
    if match is None:
        raise ConditionError("the quoted value is not closed", offset)
    end = _skip_blanks(text, match.end())
    if end < len(text) and not _JOINT.match(text, end):
        raise ConditionError(f'expected "&&" or "||", found {_found(text, end)}', end)
    return re.sub(r'\\(["\\])', r"\1", match[1]), end


def _skip_blanks(text: str, offset: int) -> int:
    match = _BLANKS.match(text, offset)
    return match.end() if match is not None else offset


def _found(text: str, offset: int) -> str:
    match = _FOUND.match(text, offset)
    return f'"{match[0]}"' if match is not None else "the end"


def _check_pattern(pattern: str, offset: int) -> None:
    """Refuses what does not compile, and what may take for ever on a text that it does not match.

    A repetition of a group that itself holds an open repetition, ``(a+)+``, tries exponentially
    many ways. What is left is bounded by ``MATCH_LIMIT``.
    """
    if len(pattern) > _PATTERN_LIMIT:
        raise ConditionError(f"regular expression longer than {_PATTERN_LIMIT} characters", offset)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ConditionError(f"regular expression does not compile: {exc}", offset) from exc
    if _repeats_a_repetition(pattern):
        raise ConditionError(
            "regular expression repeats a group that holds a repetition, which may never end",
            offset,
        )


def _repeats_a_repetition(pattern: str) -> bool:
    groups = [False]  # for each open group: whether a repetition stands in it
    closed: bool | None = None  # whether the group that has just been closed holds one
    for token in re.finditer(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*+\]|\{[0-9,]++\}|.", pattern, re.DOTALL):
        part = token[0]
        if part == "(":
            groups.append(False)
        repeats = part in {"*", "+"} or (part[0] == "{" and "," in part)
        if closed and (repeats or part[0] == "{"):
            return True
        groups[-1] = groups[-1] or repeats
        closed = None
        if part == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] = groups[-1] or closed
    return False


def _holds(clause: Clause, lookup: Lookup) -> bool:
    return _compare(clause, _look_up(clause.key, lookup)) != clause.negated


def _look_up(key: str, lookup: Lookup) -> object:
    inner = key.removeprefix("context.")
    if inner != key:
        value = lookup(key)
        if value is not None:
            return value
    return lookup("command.output" if inner == "tool.output" else inner)


def _compare(clause: Clause, value: object) -> bool:
    operator, wanted = clause.operator, clause.value
    if operator in _COMPARE:
        left, right = _number(_text(value)), _number(wanted)
        return left is not None and right is not None and _COMPARE[operator](left, right)
    if operator == "contains":
        if isinstance(value, list):
            return any(_text(element) == wanted for element in value)
        return wanted in _text(value)
    if operator == "matches":
        return _search(wanted, _text(value))
    text = _text(value)
    if operator == "":
        return text not in {"", "false", "0"}
    if clause.key.endswith(("outcome", "status")):
        text, wanted = normalise_status(text), normalise_status(wanted)
    return (text == wanted) == (operator == "=")


def _search(pattern: str, subject: str) -> bool:
    if len(subject) <= 2 * MATCH_LIMIT:
        return re.search(pattern, subject) is not None
    ends = (subject[:MATCH_LIMIT], subject[-MATCH_LIMIT:])
    return any(re.search(pattern, end) is not None for end in ends)


def _number(text: str) -> float | None:
    stripped = text.strip()
    return float(stripped) if _NUMBER.match(stripped) else None


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
