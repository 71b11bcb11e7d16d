"""Findings about a file: where, how bad, which rule; how they are collected, sorted and printed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from git_fabro.workflow.graph import Place

Severity = Literal["error", "warning", "info"]

ERROR: Severity = "error"
WARNING: Severity = "warning"
INFO: Severity = "info"

_RANK = {ERROR: 0, WARNING: 1, INFO: 2}

#: A source line longer than this is printed as the part around its caret.
_EXCERPT = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. ``source`` is the whole line that ``place`` is in, without its line break."""

    file: str
    place: Place
    severity: Severity
    rule: str
    message: str
    source: str = ""

    def render(self) -> str:
        """Three lines: position and message, the source line, a caret below the column.

        Source: git-fabro-workflow(7).
        """
        level = "" if self.severity == ERROR else f"{self.severity}: "
        where = f"{self.file}:{self.place.line}:{self.place.column}"
        line, before = self._excerpt()
        caret = "".join("\t" if character == "\t" else " " for character in line[:before])
        return f"{where}: {level}{visible(self.message)} [{self.rule}]\n{visible(line)}\n{caret}^"

    def _excerpt(self) -> tuple[str, int]:
        before = self.place.column - 1
        if len(self.source) <= _EXCERPT:
            return self.source, before
        begin = max(0, before - _EXCERPT // 2)
        return self.source[begin : begin + _EXCERPT], before - begin


class Findings:
    """Collects the diagnostics of one file; positions are given as offsets into ``text``."""

    def __init__(self, file: str, text: str) -> None:
        self.text = clean(text)
        self._file = file
        self._begins = [0, *(found.end() for found in re.finditer("\n", self.text))]
        self._found: dict[tuple[int, str, str], Severity] = {}

    def add(self, severity: Severity, rule: str, offset: int, message: str) -> None:
        """Notes a finding; the same one twice is one."""
        self._found.setdefault((offset, rule, message), severity)

    def error(self, rule: str, offset: int, message: str) -> None:
        self.add(ERROR, rule, offset, message)

    def warning(self, rule: str, offset: int, message: str) -> None:
        self.add(WARNING, rule, offset, message)

    def info(self, rule: str, offset: int, message: str) -> None:
        self.add(INFO, rule, offset, message)

    def place(self, offset: int) -> Place:
        line = bisect_right(self._begins, offset)
        return Place(line, offset - self._begins[line - 1] + 1)

    def offset(self, place: Place) -> int:
        """The offset of a place, moved back to the last line where it lies behind the text."""
        begin = self._begins[min(place.line, len(self._begins)) - 1]
        return min(begin + place.column - 1, len(self.text))

    def sorted(self) -> tuple[Diagnostic, ...]:
        return in_order(
            Diagnostic(
                file=self._file,
                place=(place := self.place(offset)),
                severity=severity,
                rule=rule,
                message=message,
                source=self._line(place.line),
            )
            for (offset, rule, message), severity in self._found.items()
        )

    def _line(self, number: int) -> str:
        begin = self._begins[number - 1]
        end = self._begins[number] - 1 if number < len(self._begins) else len(self.text)
        return self.text[begin:end]


def clean(text: str) -> str:
    """The text without a byte order mark, its line ends as line feeds."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By file, then position, then severity."""
    return tuple(
        sorted(
            diagnostics,
            key=lambda one: (one.file, one.place, _RANK[one.severity], one.rule, one.message),
        )
    )


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(one.severity == ERROR for one in diagnostics)


def visible(text: str) -> str:
    """The text without anything that a terminal would obey; as long as before, tabs kept."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def quoted(text: str) -> str:
    """A text as messages show it: in double quotes, on one line, cut to 60 characters."""
    line = text.replace("\n", "\\n").replace("\t", "\\t")
    return f'"{line if len(line) <= 60 else line[:57] + "..."}"'


def suggestion(name: str, known: Iterable[str], *, lead: str = "; ") -> str:
    """``; did you mean "build"?``, or nothing where no known name is near."""
    near = nearest(name, known)
    return "" if near is None else f"{lead}did you mean {quoted(near)}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that takes the fewest edits, at most two and fewer than it has letters."""
    limit = min(2, len(name) - 1)
    best: str | None = None
    for candidate in known:
        if abs(len(candidate) - len(name)) > limit or candidate == name:
            continue
        distance = _edits(name, candidate)
        if distance <= limit:
            best, limit = candidate, distance - 1
    return best


def _edits(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for number, character in enumerate(left, 1):
        previous, row[0] = row[0], number
        for column, other in enumerate(right, 1):
            previous, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, previous + (character != other)),
            )
    return row[len(right)]
