"""``git fabro events``: the records of a run as JSON Lines."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Annotated

import typer

from git_fabro.checkpoint import codec
from git_fabro.cli import naming, options, pager, progress, render
from git_fabro.errors import RequestError
from git_fabro.jobs import look
from git_fabro.jobs.look import Stop, Watch
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RUNNING, SUBMITTED

_AFTER = re.compile(r"(?P<seq>[0-9]{1,12})(?:@(?P<at>\S{24}))?\Z", re.ASCII)
_POLL_S = 0.2

Follow = Annotated[bool, typer.Option("-f", "--follow", help="go on as records come")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="only records from this time on")
]
After = Annotated[
    str, typer.Option("--after", metavar="SEQ[@AT]", help="only records behind this one")
]
Tail = Annotated[
    int | None, typer.Option("--tail", min=0, metavar="N", help="only the last N records")
]
Pretty = Annotated[bool, typer.Option("--pretty", help="one line of text each")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON Lines, which is the default")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(events)


def events(
    run: options.RunOrNone = None,
    follow: Follow = False,
    since: Since = None,
    after: After = "0",
    tail: Tail = None,
    pretty: Pretty = False,
    as_json: AsJson = False,
) -> int:
    """Print the records of a run, one canonical JSON object a line."""
    place = naming.here()
    match = _AFTER.match(after)
    if match is None:
        raise RequestError(f"--after takes SEQ or SEQ@AT, not: {after}", hint="git fabro events -h")
    start = naming.moment(since, "--since") if since is not None else ""
    chosen = naming.find_run(place, run)
    found = list(look.records(place.doors, place.home, chosen))
    last = _position(found, int(match["seq"]), match["at"])
    shown = [one for one in found if isinstance(one, Record) and one.seq > last and one.at >= start]
    stop = next((one for one in found if isinstance(one, Stop)), None)
    tell = _pretty if pretty and not as_json else _json
    if not follow:
        pager.begin("events", place.source)
    for record in shown[max(0, len(shown) - tail) :] if tail is not None else shown:
        tell(record)
    if stop is not None:
        render.say(f"incomplete: record {stop.after} is the last good one: {stop.reason}")
        return 1
    if follow:
        behind = max((one.seq for one in found if isinstance(one, Record)), default=0)
        _follow(Watch(place.doors, place.home, chosen, after=max(behind, last)), tell)
    return 0


def _position(found: list[Record | Stop], seq: int, at: str | None) -> int:
    """The record to begin behind: the one that was named, or the last one before where it stood.

    Numbers are used again after a rewind, so a number alone does not name a record.
    """
    records = [one for one in found if isinstance(one, Record)]
    if at is None or any(one.seq == seq and one.at == at for one in records):
        return seq
    return max((one.seq for one in records if one.at < at), default=0)


def _follow(watch: Watch, tell: Callable[[Record], None]) -> None:
    while True:
        status = watch.look().status
        for record in watch.new_records():
            tell(record)
        if status not in (RUNNING, SUBMITTED):
            return
        time.sleep(_POLL_S)


def _json(record: Record) -> None:
    render.json_line(codec.record_to_json(record))


def _pretty(record: Record) -> None:
    where = progress.where(record.position)
    text = (progress.line_of(record) or "").removesuffix(" ...")
    for known in (where, str(record.position)):
        text = text.removeprefix(known).strip()
    row = f"{record.seq:>5} {record.at} {record.event.kind:<18} {where} {text}"
    render.out(render.line(row).rstrip())
