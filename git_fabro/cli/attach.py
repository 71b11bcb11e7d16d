"""``git fabro attach``: follow a run as it happens."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from git_fabro.checkpoint import codec
from git_fabro.cli import driving, naming, options, progress, render, terminal
from git_fabro.cli.naming import Here
from git_fabro.errors import ConflictError, NotFoundError
from git_fabro.gates import Reply
from git_fabro.jobs import answer as job
from git_fabro.jobs.answer import Place
from git_fabro.jobs.look import Watch, Whole
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.state import BLOCKED, RUNNING, SUBMITTED, Gate

_POLL_S = 0.2
_CHUNK_BYTES = 64 * 1024

WithoutOutput = Annotated[bool, typer.Option("-q", "--quiet", help="without the output of nodes")]
AsJson = Annotated[bool, typer.Option("--json", help="the records as JSON Lines")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(attach)


def attach(
    run: options.RunOrNone = None, quiet: WithoutOutput = False, as_json: AsJson = False
) -> int:
    """Follow a run until it ends or asks a person; Ctrl-C leaves it running."""
    place = naming.here()
    chosen = naming.find_run(place, run)
    watch = Watch(place.doors, place.home, chosen)
    logs = None if quiet or as_json else Logs(RunDirectory.of(place.home, chosen))
    try:
        whole = _follow(watch, logs, place, as_json=as_json)
    except KeyboardInterrupt:
        render.say(f"left running: {chosen}")
        render.hint(f"git fabro attach {chosen}")
        raise
    if not as_json:
        render.out(f"{chosen} {whole.status}")
        has_branch = whole.run_tip is not None
        for command in driving.next_commands(chosen, whole.state, has_branch=has_branch):
            render.out(f"  {command}")
    return driving.exit_status(whole.status)


def _follow(watch: Watch, logs: Logs | None, place: Here, *, as_json: bool) -> Whole:
    while True:
        whole = watch.look()
        for record in watch.new_records():
            if as_json:
                render.json_line(codec.record_to_json(record))
                continue
            text = progress.line_of(record)
            if text is not None:
                render.out(text)
        if logs is not None:
            logs.print_new()
        if whole.status in (RUNNING, SUBMITTED, BLOCKED):
            _ask(place, watch, whole)
        if whole.status not in (RUNNING, SUBMITTED):
            return watch.look()
        time.sleep(_POLL_S)


def _ask(here: Here, watch: Watch, whole: Whole) -> None:
    """Asks the open questions at this terminal, if it is one; others may answer them first."""
    prompter = terminal.prompter()
    if prompter is None:
        return
    place = Place(doors=here.doors, run=whole.run, folder=here.folder, environment=here.environment)
    for question, gate in _open(whole).items():

        def over(question: str = question) -> bool:
            return question not in _open(watch.look())

        typed = prompter(question, gate, over)
        if typed is not None:
            _answer(place, question, typed)


def _open(whole: Whole) -> dict[str, Gate]:
    return {name: gate for name, gate in whole.state.gates.items() if gate.answer is None}


def _answer(place: Place, question: str, text: str) -> None:
    try:
        job.answer(place, question, Reply(text=text, principal=job.principal_of(place.doors)))
    except (NotFoundError, ConflictError) as exc:
        # Somebody else was faster, or the deadline has passed: what follows will show it.
        render.warn(exc.message)


class Logs:
    """The output of nodes as it grows in the run directory; each byte is printed once."""

    def __init__(self, directory: RunDirectory) -> None:
        self._folder = directory.path / "logs"
        self._seen: dict[Path, int] = {}

    def print_new(self) -> None:
        """Prints what has come since the last time."""
        for path in sorted(self._folder.glob("*/std*.log")):
            try:
                with path.open("rb") as file:
                    file.seek(self._seen.get(path, 0))
                    data = file.read(_CHUNK_BYTES)
            except OSError:
                continue
            if data:
                self._seen[path] = self._seen.get(path, 0) + len(data)
                for text in data.decode("utf-8", "replace").removesuffix("\n").split("\n"):
                    render.out(f"{path.parent.name} | {text}")
