"""What differs between two commits, printed: counted lines, or a patch."""

from __future__ import annotations

from git_fabro.cli import render
from git_fabro.jobs.difference import Difference

_MOST_MARKS = 40
#: The status in whose colour a line of a patch is printed.
_SIGNS = {"+": "success", "-": "fail", "@": "running"}


def patch(difference: Difference, *, coloured: bool) -> None:
    """The patch, each line made harmless."""
    for text in difference.patch():
        sign = _SIGNS.get(text[:1], "") if coloured else ""
        render.painted([(text.replace("\r", "\\r"), sign)])


def stat(difference: Difference, *, coloured: bool) -> None:
    """A line for each path and one for all, as ``git diff --stat`` has them."""
    counted = difference.counted()
    if not counted:
        return
    names = [render.line(_name(one.path)) for one in counted]
    width = max(map(len, names))
    for name, one in zip(names, counted, strict=True):
        if one.added is None or one.deleted is None:
            render.out(f" {name.ljust(width)} | Bin")
            continue
        plus, minus = _marks(one.added, one.deleted)
        number = str(one.added + one.deleted)
        render.painted(
            [
                (f" {name.ljust(width)} | {number} ", ""),
                ("+" * plus, "success" if coloured else ""),
                ("-" * minus, "fail" if coloured else ""),
            ]
        )
    added = sum(one.added or 0 for one in counted)
    deleted = sum(one.deleted or 0 for one in counted)
    render.out(f" {len(counted)} files changed, {added} insertions(+), {deleted} deletions(-)")


def _marks(added: int, deleted: int) -> tuple[int, int]:
    total = added + deleted
    if total <= _MOST_MARKS:
        return added, deleted
    plus = round(added * _MOST_MARKS / total)
    return plus, _MOST_MARKS - plus


def _name(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
