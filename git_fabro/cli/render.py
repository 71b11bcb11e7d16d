"""What a person sees. The only room that prints; every text from outside is made harmless first."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from git_fabro.errors import FabroError

# Control characters, and what turns the direction of writing around. Source: UAX #9; ECMA-48
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def safe(text: str) -> str:
    """Text that cannot move the cursor, colour, hide or reorder: such characters become ``\\xNN``."""
    return _HARMFUL.sub(_escaped, text.encode("utf-8", "backslashreplace").decode())


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def line(text: str) -> str:
    """Harmless text of one line."""
    return safe(text.replace("\n", " ").replace("\t", " "))


def out(text: str = "") -> None:
    """One line of results."""
    sys.stdout.write(safe(text) + "\n")


def raw(data: bytes) -> None:
    """Bytes as they are: what somebody asked for by name, for a pipe."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.write(safe(data.decode("utf-8", "backslashreplace")))
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def document(value: Any) -> None:
    """One JSON document; nothing but JSON escapes is needed to make it harmless."""
    text = json.dumps(value, ensure_ascii=not _is_utf8(), sort_keys=True, indent=2)
    sys.stdout.write(_HARMFUL.sub(_json_escaped, text) + "\n")


def json_line(value: Any) -> None:
    """One JSON value a line, for streams."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    sys.stdout.write(_HARMFUL.sub(_json_escaped, text) + "\n")
    sys.stdout.flush()


def _json_escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def say(text: str) -> None:
    """One line to standard error: progress, warnings, what is no result."""
    sys.stderr.write(safe(text) + "\n")
    sys.stderr.flush()


def warn(text: str) -> None:
    say(f"warning: {line(text)}")


def hint(text: str) -> None:
    say(f"hint: {line(text)}")


def error(exc: FabroError) -> None:
    """``fatal: what: which`` and the next command."""
    say(f"fatal: {exc.message}")
    if exc.hint:
        hint(exc.hint)


def columns(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> Iterable[str]:
    """Rows as aligned text; the last column is not padded."""
    shown = [
        [line(cell) for cell in row]
        for row in ([list(head)] if head else []) + [list(r) for r in rows]
    ]
    if not shown:
        return
    widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]) - 1)]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def duration(milliseconds: int) -> str:
    """A length of time for people: ``812ms``, ``7.1s``, ``3m12s``, ``2h05m``."""
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def wants_colour(setting: str | None) -> bool:
    """Whether to colour standard output: ``NO_COLOR`` wins, then the setting, then the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if setting in ("always", "true"):
        return setting == "always" or sys.stdout.isatty()
    if setting in ("never", "false"):
        return False
    return sys.stdout.isatty()
