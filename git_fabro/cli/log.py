"""``git fabro log``: the timeline of a run, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Annotated

import typer

from git_fabro import history, targets
from git_fabro.branches import LOCAL
from git_fabro.cli import naming, options, pager, render
from git_fabro.cli.naming import Here
from git_fabro.jobs import timeline
from git_fabro.place import History, Place

_HEAD = ("CHECKPOINT", "NODE", "STATUS", "WHEN", "TOOK", "FILES", "RUN", "META", "")
_STATUS = 2
_SHORT = 12

Oneline = Annotated[bool, typer.Option("--oneline", help="one short line each")]
Patch = Annotated[bool, typer.Option("-p", "--patch", help="and what each changed")]
Stat = Annotated[bool, typer.Option("--stat", help="and how many lines of which files")]
Graph = Annotated[bool, typer.Option("--graph", help="with forks and parallel branches")]
Number = Annotated[
    int | None, typer.Option("-n", "--max-count", min=0, metavar="N", help="only the newest N")
]
Reverse = Annotated[bool, typer.Option("--reverse", help="the oldest first")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(log)


def log(
    run: options.RunOrNone = None,
    oneline: Oneline = False,
    patch: Patch = False,
    stat: Stat = False,
    graph: Graph = False,
    number: Number = None,
    reverse: Reverse = False,
    color: options.Color = None,
    as_json: options.AsJson = False,
) -> int:
    """Print the timeline of a run, newest first."""
    place = naming.here()
    chosen = naming.find_run(place, run)
    told = history.timeline_of(place.reading(), chosen)
    if told.branches.origin != LOCAL:
        render.say(f"run {chosen} as {told.branches.origin} had it")
    places: Iterable[Place] = islice(targets.places(told), number)
    if reverse:
        places = reversed(list(places))
    coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
    if as_json:
        entries = [timeline.checkpoint(told, one).to_json() for one in places]
        render.document({"run_id": chosen, "entries": entries})
        return _problems(told)
    pager.begin("log", place.source)
    if graph:
        _draw(place, told, places)
    elif patch or stat:
        _with_changes(told, places, patch=patch, coloured=coloured)
    elif oneline:
        for one in places:
            render.painted(_short(told, one) if coloured else _plain(_short(told, one)))
    else:
        _table(told, places, coloured=coloured)
    return _problems(told)


def _table(told: History, places: Iterable[Place], *, coloured: bool) -> None:
    rows = (_cells(told, one) for one in places)
    if not render.streamed(rows, head=_HEAD, colour=_STATUS if coloured else None):
        render.out("No checkpoints found.")


def _cells(told: History, one: Place) -> tuple[str, ...]:
    entry, detail = one.entry, told.detail(one)
    meta = entry.meta_commit or entry.named_meta_commit or ""
    return (
        entry.name,
        _what(one),
        entry.status or "",
        "" if entry.when is None else timeline.stamp(entry.when)[:19].replace("T", " "),
        "" if detail.duration_ms is None else render.duration(detail.duration_ms),
        "" if detail.files_changed is None else str(detail.files_changed),
        (entry.run_commit or "")[:_SHORT],
        meta[:_SHORT],
        _details(told, one),
    )


def _what(one: Place) -> str:
    entry = one.entry
    return entry.kind if entry.node is None else f"{entry.node}@{entry.visit}"


def _details(told: History, one: Place) -> str:
    """What is to be known of an entry, in parentheses: ``(visit 2, loop, no run commit)``."""
    entry, found = one.entry, []
    if entry.visit is not None and entry.visit > 1:
        found.append(f"visit {entry.visit}, loop")
    if told.made_by == "fabro" and entry.node in told.interior():
        found.append("parallel interior")
    if entry.why:
        found.append(entry.why)
    return f"({', '.join(found)})" if found else ""


def _short(told: History, one: Place) -> list[tuple[str, str]]:
    entry = one.entry
    status = entry.status or ""
    commit = (entry.run_commit or entry.meta_commit or "")[:_SHORT]
    tail = _details(told, one)
    return [
        (f"{commit} {entry.name} {_what(one)}".replace("\n", " "), ""),
        (f" {status}" if status else "", status),
        (f" {tail}" if tail else "", ""),
    ]


def _plain(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("".join(text for text, _ in parts), "")]


def _with_changes(told: History, places: Iterable[Place], *, patch: bool, coloured: bool) -> None:
    # Imported here: 40 ms that a log without changes does not pay.
    from git_fabro.cli import changes
    from git_fabro.jobs import difference

    for one in places:
        render.painted(_short(told, one) if coloured else _plain(_short(told, one)))
        if one.step is None or one.before is None:
            continue
        found = difference.between(told.source, one.before, one.step.oid)
        if patch:
            changes.patch(found, coloured=coloured)
        else:
            changes.stat(found, coloured=coloured)


def _draw(place: Here, told: History, places: Iterable[Place]) -> None:
    # Imported here: 20 ms that a log without a graph does not pay.
    from git_fabro import listing
    from git_fabro.jobs import lanes

    parents = listing.parents(told.source, place.home, place.branches, place.environment)
    forks = lanes.forks_of(told.branches.run, parents)
    for text in lanes.drawn(told, places, forks, lambda one: _plain(_short(told, one))[0][0]):
        render.out(render.line(text))


def _problems(told: History) -> int:
    """Names what could not be read; gives the exit status."""
    for problem in told.problems:
        render.warn(problem)
    return 1 if told.problems else 0
