"""``git fabro events``: the records of a run as JSON Lines."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import driving, naming, render
from git_fabro.doors import Doors
from git_fabro.errors import RequestError
from git_fabro.jobs import look
from git_fabro.jobs.look import Stop
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import ENDED

_AFTER = re.compile(r"(?P<seq>[0-9]{1,12})(?:@(?P<at>\S{24}))?\Z")
_POLL_S = 0.2


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(events)


def events(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]")] = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="go on as records come")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="only records from this time on")
    ] = None,
    after: Annotated[
        str, typer.Option(metavar="SEQ[@AT]", help="only records behind this one")
    ] = "0",
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="only the last N")] = None,
    pretty: Annotated[bool, typer.Option("--pretty", help="one line of text each")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON Lines, which is the default")
    ] = False,
) -> int:
    """Print the records of a run, one canonical JSON object a line."""
    doors = naming.doors_or_none()
    home = rundir.home(doors.repository if doors else None, Path.cwd(), driving.environment())
    chosen = naming.find_run(doors, home, run)
    match = _AFTER.match(after)
    if match is None:
        raise RequestError(f"--after takes SEQ or SEQ@AT, not: {after}")
    found = [
        one
        for one in look.records(doors, home, chosen)
        if isinstance(one, Stop) or since is None or one.at >= since
    ]
    last, last_at = int(match["seq"]), match["at"]
    if last_at is not None and not _stands(found, last, last_at):
        last = _common(found, last_at)
    shown = [one for one in found if isinstance(one, Stop) or one.seq > last]
    for one in shown[len(shown) - tail :] if tail is not None else shown:
        if isinstance(one, Stop):
            render.say(f"incomplete: record {one.after} is the last good one: {one.reason}")
            return 1
        _print(one, pretty=pretty and not as_json)
        last = one.seq
    if follow:
        for record in _follow(doors, home, chosen, last):
            _print(record, pretty=pretty and not as_json)
    return 0


def _stands(found: list[Record | Stop], seq: int, at: str) -> bool:
    return any(isinstance(one, Record) and one.seq == seq and one.at == at for one in found)


def _common(found: list[Record | Stop], at: str) -> int:
    """The last record that is older than the one that is gone: numbers are used again."""
    older = [one.seq for one in found if isinstance(one, Record) and one.at < at]
    return max(older, default=0)


def _follow(doors: Doors | None, home: Path, run: RunId, last: int) -> Iterator[Record]:
    while True:
        for one in look.records(doors, home, run):
            if isinstance(one, Record) and one.seq > last:
                last = one.seq
                yield one
        status = look.look(doors, home, run).status
        if status in ENDED or status not in ("running", "submitted"):
            return
        time.sleep(_POLL_S)


def _print(record: Record, *, pretty: bool) -> None:
    if pretty:
        where = f" {record.position}" if record.position else ""
        text = driving.progress_line(record) or ""
        render.out(
            f"{record.seq:>5} {record.at} {record.event.kind}{where} {render.line(text)}".rstrip()
        )
    else:
        render.json_line(codec.record_to_json(record))
