"""``git fabro attach``: follow a run as it happens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.checkpoint.model import RunId
from git_fabro.cli import driving, naming, render
from git_fabro.doors import Doors
from git_fabro.gates import Reply
from git_fabro.jobs import answer as job
from git_fabro.jobs import look
from git_fabro.jobs.answer import Place
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RUNNING, SUBMITTED

_POLL_S = 0.2
_CHUNK_BYTES = 64 * 1024


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(attach)


def attach(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]")] = None,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="without the output of nodes")
    ] = False,
) -> int:
    """Follow a run until it ends or asks; Ctrl-C leaves it running."""
    doors = naming.doors_or_none()
    home = rundir.home(doors.repository if doors else None, Path.cwd(), driving.environment())
    chosen = naming.find_run(doors, home, run)
    logs = Logs(RunDirectory.of(home, chosen))
    last = 0
    while True:
        whole = look.look(doors, home, chosen)
        for record in _new(doors, home, chosen, last):
            last = record.seq
            text = driving.progress_line(record)
            if text is not None:
                render.out(text)
        if not quiet:
            logs.print_new()
        _ask(doors, chosen)
        if whole.status not in (RUNNING, SUBMITTED):
            break
        time.sleep(_POLL_S)
    render.out(f"{chosen} {whole.status}")
    for command in driving.next_commands(chosen, whole.state):
        render.out(f"  {command}")
    return 1 if whole.status == look.INTERRUPTED else driving.exit_status(whole.state)


def _new(doors: Doors | None, home: Path, run: RunId, last: int) -> Iterator[Record]:
    for one in look.records(doors, home, run):
        if isinstance(one, Record) and one.seq > last:
            yield one


def _ask(doors: Doors | None, run: RunId) -> None:
    """Asks the open questions at this terminal, if it is one."""
    prompter = driving.prompter()
    if prompter is None or doors is None:
        return
    place = Place(doors=doors, run=run, folder=Path.cwd(), environment=driving.environment())
    for question, gate in job.open_questions(place).items():
        typed = prompter(question, gate, threading.Event().is_set)
        if typed is not None:
            job.answer(place, question, Reply(text=typed, principal=job.principal_of(doors)))


class Logs:
    """The output of nodes as it grows in the run directory; each byte is printed once."""

    def __init__(self, directory: RunDirectory) -> None:
        self._folder = directory.path / "logs"
        self._seen: dict[Path, int] = {}

    def print_new(self) -> None:
        for path in sorted(self._folder.glob("*/std*.log")):
            try:
                with path.open("rb") as file:
                    file.seek(self._seen.get(path, 0))
                    data = file.read(_CHUNK_BYTES)
            except OSError:
                continue
            if data:
                self._seen[path] = self._seen.get(path, 0) + len(data)
                for text in data.decode("utf-8", "replace").splitlines():
                    render.out(f"{path.parent.name} | {text}")
