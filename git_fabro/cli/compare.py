"""``git fabro compare``: two runs side by side, say a fork and its origin."""

from __future__ import annotations

import typer

from git_fabro import history
from git_fabro.cli import naming, options, pager, render
from git_fabro.jobs import compare as job
from git_fabro.jobs.compare import Comparison, Pair, Side

_HEAD = ("", "NODE", "STATUS", "TOOK", "FILES", "STATUS", "TOOK", "FILES")


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(compare)


def compare(run: options.Run, other: options.Run, as_json: options.AsJson = False) -> int:
    """Print where two runs part, then node by node what each came to."""
    place = naming.here()
    left = history.timeline_of(place.reading(), naming.find_run(place, run))
    right = history.timeline_of(place.reading(), naming.find_run(place, other))
    found = job.compare(left, right)
    runs = (left.branches.run, right.branches.run)
    if as_json:
        render.document(_json(runs, found))
    else:
        pager.begin("compare", place.source)
        _print(runs, found)
    for problem in (*left.problems, *right.problems):
        render.warn(problem)
    return 1 if left.problems or right.problems else 0


def _json(runs: tuple[str, str], found: Comparison) -> dict[str, object]:
    return {
        "runs": list(runs),
        "shared": len(found.shared),
        "rows": [pair.to_json() for pair in found.pairs],
    }


def _print(runs: tuple[str, str], found: Comparison) -> None:
    render.out(f"left   {runs[0]}")
    render.out(f"right  {runs[1]}")
    if found.shared:
        last = found.shared[-1]
        what = last.kind if last.node is None else f"{last.node}@{last.visit}"
        render.out(render.line(f"they part after {last.name} {what}"))
    else:
        render.out("they share no checkpoint")
    if found.pairs:
        render.out()
        render.table([_cells(pair) for pair in found.pairs], head=_HEAD)


def _cells(pair: Pair) -> tuple[str, ...]:
    what = "commit" if pair.node is None else f"{pair.node}@{pair.visit}"
    return ("" if pair.is_same else "*", what, *_side(pair.left), *_side(pair.right))


def _side(side: Side | None) -> tuple[str, str, str]:
    if side is None:
        return "-", "", ""
    spent, files = side.detail.duration_ms, side.detail.files_changed
    return (
        side.entry.status or side.entry.kind,
        "" if spent is None else render.duration(spent),
        "" if files is None else str(files),
    )
