"""What ``git fabro list`` prints. Without Typer, which takes longer to load than 700 runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from git_fabro import listing
from git_fabro.branches import LOCAL
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import naming, pager, render
from git_fabro.listing import Choice
from git_fabro.summary import Row

_HEAD = ("RUN", "STATUS", "WORKFLOW", "NODE", "CHECKPOINTS", "AGE", "GOAL")
#: What a row has beside the keys of its document.
_INNER = frozenset({"problem", "is_over", "made_by"})
_STATUS = 1
_GOAL_WIDTH = 60


class Wanted(NamedTuple):
    """What was asked for on the command line."""

    chosen: Choice = Choice()
    quiet: bool = False
    nul: bool = False
    color: str | None = None
    as_json: bool = False


def plain(words: Sequence[str]) -> Wanted | None:
    """What the most usual command lines ask for; None for all others, which Typer reads."""
    wanted = Wanted()
    for word in words:
        if word in ("-a", "--all"):
            wanted = wanted._replace(chosen=Choice(show_all=True))
        elif word in ("-q", "--quiet"):
            wanted = wanted._replace(quiet=True)
        elif word == "--json":
            wanted = wanted._replace(as_json=True)
        else:
            return None
    return wanted


def tell(wanted: Wanted) -> int:
    """Prints the runs that were asked for; gives the exit status."""
    place = naming.here()
    shown = [row for row in _rows(place) if wanted.chosen.takes(row)]
    if wanted.as_json:
        render.document({"runs": [_json(row) for row in shown]})
    elif wanted.quiet:
        render.names([row.run_id for row in shown], nul=wanted.nul)
    else:
        _print(place, shown, wanted.color)
    return _problems(shown)


def _json(row: Row) -> dict[str, object]:
    return {key: value for key, value in row._asdict().items() if key not in _INNER}


def _rows(place: naming.Here) -> Iterator[Row]:
    """All runs, the newest first."""
    quick = {}
    if place.source is not None:
        quick = listing.rows(place.source, place.home, place.branches, place.environment)
    for run in reversed(naming.all_runs(place)):
        yield quick.get(run) or _living(place, run)


def _living(place: naming.Here, run: RunId) -> Row:
    # Imported here: 150 ms that a list of runs at rest does not pay.
    from git_fabro.jobs import look

    return look.row(place.doors, place.home, run)


def _print(place: naming.Here, shown: Sequence[Row], color: str | None) -> None:
    if not shown:
        return
    coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
    pager.begin("list", place.source)
    now_s = time.time()
    remote = any(row.origin != LOCAL for row in shown)
    rows = [_cells(row, now_s, (row.origin,) if remote else ()) for row in shown]
    head = (*_HEAD[:2], *(("ORIGIN",) if remote else ()), *_HEAD[2:])
    render.table(rows, head=head, colour=_STATUS if coloured else None)


def _cells(row: Row, now_s: float, origin: tuple[str, ...]) -> tuple[str, ...]:
    goal = row.goal.split("\n")[0]
    return (
        row.run_id,
        row.status,
        *origin,
        row.workflow,
        row.node or "",
        str(row.checkpoints),
        _age(row.created_at, now_s),
        goal if len(goal) <= _GOAL_WIDTH else f"{goal[: _GOAL_WIDTH - 1]}…",
    )


def _age(created_at: str, now_s: float) -> str:
    try:
        # Fabro's times have a fraction of up to nine digits.
        begun = datetime.fromisoformat(f"{created_at[:19]}+00:00").timestamp()
    except ValueError:
        return "?"
    seconds = now_s - begun
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def _problems(shown: Sequence[Row]) -> int:
    """Names the runs that cannot be read; gives the exit status."""
    broken = [row for row in shown if row.problem]
    for row in broken:
        render.warn(f"run cannot be read: {row.run_id}: {row.problem}")
    return 1 if broken else 0
