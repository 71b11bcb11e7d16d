"""What a person sees. The only room that prints; every text from outside is made harmless first."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar

from git_fabro.checkpoint.harmless import HARMFUL
from git_fabro.checkpoint.harmless import line as line
from git_fabro.checkpoint.harmless import safe as safe
from git_fabro.errors import FabroError

#: So many rows of a stream are looked at before the first one is printed; so many are printed at
#: once from then on.
_FIRST_ROWS, _BLOCK_ROWS = 32, 64
_COLOURS = {
    "success": "32",
    "succeeded": "32",
    "ended": "32",
    "partially_succeeded": "33",
    "unfinished": "33",
    "failed": "31",
    "applied": "32",
    "partial_success": "33",
    "blocked": "33",
    "paused": "33",
    "running": "36",
    "fail": "31",
    "interrupted": "31",
    "stopped": "31",
}
T = TypeVar("T")


def out(text: str = "") -> None:
    """One line of results."""
    _write(safe(text) + "\n")


def _write(harmless: str) -> None:
    if harmless.isascii():
        sys.stdout.write(harmless)
        return
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(harmless.encode(encoding, "backslashreplace").decode(encoding))


def names(values: Sequence[str], *, nul: bool) -> None:
    """A list of names, one a line; or each as it is, ended by a NUL, for ``xargs -0``."""
    for value in values:
        if nul:
            # Bytes of a path that are no UTF-8 come as surrogates, and go as what they were.
            sys.stdout.flush()
            sys.stdout.buffer.write(os.fsencode(value) + b"\0")
        else:
            out(value.replace("\n", "\\n").replace("\t", "\\t"))


def raw(data: bytes) -> None:
    """Bytes as they are: what somebody asked for by name, for a pipe."""
    sys.stdout.flush()
    if is_terminal():
        _write(safe(data.decode("utf-8", "backslashreplace")))
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def document(value: Any) -> None:
    """One JSON document; nothing but JSON escapes is needed to make it harmless."""
    _write(_json(value, indent=2) + "\n")


def value(data: Any) -> str:
    """A JSON value in one line; a text as it is."""
    return data if isinstance(data, str) else _json(data)


def json_line(value: Any) -> None:
    """One JSON value a line, for streams."""
    _write(_json(value, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _json(value: Any, **form: Any) -> str:
    # Imported here: 2 ms that text does not pay.
    import json

    text = json.dumps(value, ensure_ascii=not _is_utf8(), sort_keys=True, **form)
    return HARMFUL.sub(_json_escaped, text)


def _json_escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def say(text: str) -> None:
    """One line to standard error: progress, warnings, what is no result. Never fails."""
    encoding = sys.stderr.encoding or "utf-8"
    shown = safe(text).encode(encoding, "backslashreplace").decode(encoding)
    try:
        sys.stderr.write(shown + "\n")
        sys.stderr.flush()
    except OSError:
        # Nobody reads it any more, and what is being done is worth more than being told of it.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - stays for the rest of the process


def warn(text: str) -> None:
    say(f"warning: {line(text)}")


def hint(text: str) -> None:
    say(f"hint: {line(text)}")


def error(exc: FabroError) -> None:
    """``fatal: what: which`` and the next command."""
    say(f"fatal: {exc.message}")
    if exc.hint:
        hint(exc.hint)


def is_terminal() -> bool:
    """Whether a person reads standard output, through a pager or not."""
    return sys.stdout.isatty() or bool(os.environ.get("GIT_PAGER_IN_USE"))


def wants_colour(option: str | None, setting: str | None) -> bool:
    """Whether to colour: the option, then ``NO_COLOR``, then the setting, then the terminal."""
    if option is None and os.environ.get("NO_COLOR"):
        return False
    wanted = option or setting or "auto"
    if wanted == "always":
        return True
    if wanted in ("never", "false", "no", "off", "0"):
        return False
    return is_terminal() and os.environ.get("TERM") != "dumb"


def table(
    rows: Sequence[Sequence[str]],
    *,
    head: Sequence[str] = (),
    colour: int | None = None,
    indent: str = "",
) -> None:
    """Rows as aligned text; the last column is not padded.

    Args:
        rows: Cells, as many in each row.
        head: A row of headings.
        colour: The column that holds statuses and is to be coloured; None is none.
        indent: Stands before each row.
    """
    shown = [_harmless(row) for row in ([head] if head else []) + list(rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    form = indent + "  ".join(f"%-{width}s" for width in widths)
    if colour is not None:
        shown = [
            (
                *row[:colour],
                paint(row[colour].ljust(widths[colour]), row[colour]),
                *row[colour + 1 :],
            )
            for row in shown
        ]
    _write("".join([(form % row).rstrip() + "\n" for row in shown]))


def _harmless(row: Sequence[str]) -> tuple[str, ...]:
    """The cells of a row, each harmless text of one line."""
    # What is printable is harmless, and a tenth of the work to find out.
    return tuple(row) if "".join(row).isprintable() else tuple(line(cell) for cell in row)


def streamed(rows: Iterable[Sequence[str]], *, head: Sequence[str], colour: int | None) -> int:
    """Rows as aligned text, printed as they come; how many there were.

    The first rows say how wide the columns are; a later one that is wider stands out.

    Args:
        rows: Cells, as many in each row as in the head.
        head: A row of headings, left out if there are no rows.
        colour: The column that holds statuses and is to be coloured; None is none.
    """
    rest = iter(rows)
    first = list(islice(rest, _FIRST_ROWS))
    if not first:
        return 0
    last = len(head) - 1
    widths = [max(len(line(row[at])) for row in (head, *first)) for at in range(last)]
    form = "  ".join([f"%-{width}s" for width in widths] + ["%s"])
    count = 0
    shown = [form % tuple(head)]
    for block in chain([first], _blocks(rest)):
        shown += [_aligned(row, form, widths, colour) for row in block]
        _write("".join([text.rstrip() + "\n" for text in shown]))
        if not count:
            sys.stdout.flush()
        count += len(block)
        shown = []
    return count


def _blocks(items: Iterable[T]) -> Iterator[list[T]]:
    """Some at a time: a write for each costs as much as all the rest of it."""
    rest = iter(items)
    while block := list(islice(rest, _BLOCK_ROWS)):
        yield block


def _aligned(row: Sequence[str], form: str, widths: Sequence[int], colour: int | None) -> str:
    text = form % tuple(row)
    if not text.isprintable():
        text = form % tuple(line(cell) for cell in row)
    return text if colour is None else _with_colour(text, widths, row[colour], colour)


def _with_colour(text: str, widths: Sequence[int], status: str, colour: int) -> str:
    """An aligned row with one of its columns in the colour of a status."""
    begin = sum(widths[:colour]) + 2 * colour
    end = begin + widths[colour]
    # A wide cell before it has moved the column: then there is no colour.
    if text[begin:end].rstrip() != status:
        return text
    return text[:begin] + paint(text[begin:end], status) + text[end:]


def paint(text: str, status: str) -> str:
    """Text in the colour of a status."""
    code = _COLOURS.get(status)
    return f"\x1b[{code}m{text}\x1b[m" if code else text


def painted(parts: Sequence[tuple[str, str]]) -> None:
    """One line of parts, each in the colour of the status beside it; "" is no colour."""
    _write(_painted(parts))


def all_painted(lines: Iterable[Sequence[tuple[str, str]]]) -> None:
    """Lines as ``painted`` prints one, as they come."""
    for block in _blocks(lines):
        _write("".join(map(_painted, block)))


def _painted(parts: Sequence[tuple[str, str]]) -> str:
    return "".join([paint(safe(text), status) for text, status in parts]) + "\n"


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


def near(word: str, known: Mapping[str, object] | Sequence[str]) -> str | None:
    """The known name that was most likely meant, None if none is near."""
    # Imported here: 4 ms that only those pay who mistype.
    import difflib

    found = difflib.get_close_matches(word, list(known), n=1)
    return found[0] if found else None
