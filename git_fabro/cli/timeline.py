"""What ``git fabro log`` prints. Without Typer, so that the first row comes at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from git_fabro import history, targets
from git_fabro.branches import LOCAL
from git_fabro.cli import naming, pager, render
from git_fabro.cli.naming import Here
from git_fabro.jobs import timeline
from git_fabro.place import History, Place

_HEAD = ("CHECKPOINT", "NODE", "STATUS", "WHEN", "TOOK", "FILES", "RUN", "META", "")
_STATUS = 2
_SHORT = 12
_MOST_DIGITS = 9  # a number of more is Typer's to judge


class Wanted(NamedTuple):
    """What was asked for on the command line; ``number`` None is all."""

    run: str | None = None
    oneline: bool = False
    patch: bool = False
    stat: bool = False
    graph: bool = False
    number: int | None = None
    reverse: bool = False
    color: str | None = None
    as_json: bool = False


def plain(words: Sequence[str]) -> Wanted | None:
    """What the most usual command lines ask for; None for all others, which Typer reads.

    Typer takes longer to load than 1,000 checkpoints take to be printed.
    """
    wanted, rest = Wanted(), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--oneline":
            wanted = wanted._replace(oneline=True)
        elif word == "--json":
            wanted = wanted._replace(as_json=True)
        elif word == "-n" and rest and _is_small(rest[0]):
            wanted = wanted._replace(number=int(rest.pop(0)))
        elif word.startswith("-") or wanted.run is not None or not word:
            return None
        else:
            wanted = wanted._replace(run=word)
    return wanted


def _is_small(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS


def tell(wanted: Wanted) -> int:
    """Prints the timeline of a run; gives the exit status."""
    place = naming.here()
    chosen = naming.find_run(place, wanted.run)
    told = history.timeline_of(place.reading(), chosen, detailed=_shows_details(wanted))
    if told.branches.origin != LOCAL:
        render.say(f"run {chosen} as {told.branches.origin} had it")
    places: Iterable[Place] = islice(targets.places(told), wanted.number)
    if wanted.reverse:
        places = reversed(list(places))
    if wanted.as_json:
        entries = [timeline.checkpoint(told, one).to_json() for one in places]
        render.document({"run_id": chosen, "entries": entries})
        return _problems(told)
    coloured = render.wants_colour(wanted.color, place.config("color.fabro", "color.ui"))
    pager.begin("log", place.source)
    if wanted.graph:
        _draw(place, told, places)
    elif wanted.patch or wanted.stat:
        _with_changes(told, places, patch=wanted.patch, coloured=coloured)
    elif wanted.oneline:
        short = (_short(told, one) for one in places)
        render.all_painted(short if coloured else map(_plain, short))
    else:
        _table(told, places, coloured=coloured)
    return _problems(told)


def _shows_details(wanted: Wanted) -> bool:
    """Whether durations and numbers of files are printed."""
    return wanted.as_json or not (wanted.oneline or wanted.patch or wanted.stat or wanted.graph)


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
        "" if entry.when is None else _when(entry.when),
        "" if detail.duration_ms is None else render.duration(detail.duration_ms),
        "" if detail.files_changed is None else str(detail.files_changed),
        (entry.run_commit or "")[:_SHORT],
        meta[:_SHORT],
        _details(told, one),
    )


def _when(when: int) -> str:
    """A time in seconds since the epoch, for people: ``2024-01-01 02:46:40``, UTC."""
    hours, seconds = divmod(when, 3600)
    return f"{_hour(hours)}:{seconds // 60:02d}:{seconds % 60:02d}"


@cache
def _hour(hours: int) -> str:
    # Many checkpoints fall into one, and a calendar takes its time.
    return timeline.stamp(hours * 3600).partition(":")[0].replace("T", " ")


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
