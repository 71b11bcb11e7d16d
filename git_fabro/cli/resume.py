"""``git fabro resume``: go on with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.cli import driving, naming, render
from git_fabro.jobs.run import resume as job
from git_fabro.jobs.run.crew import Terms


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(resume)


def resume(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="default: the run here, else the newest")
    ] = None,
    detach: Annotated[
        bool, typer.Option("-d", "--detach", help="in the background; prints the run id")
    ] = False,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="answer gates by their first choice")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="run a workflow that arrived by fetch")
    ] = False,
    keep_changes: Annotated[
        bool, typer.Option("--keep-changes", help="keep what the interrupted node left")
    ] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="from a holder on another machine")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="no progress")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="the summary as one JSON document")
    ] = False,
) -> int:
    """Go on with a run from its last checkpoint."""
    doors, environment, folder = naming.doors_or_none(), driving.environment(), Path.cwd()
    home = rundir.home(doors.repository if doors else None, folder, environment)
    chosen = naming.find_run(doors, home, run)
    request = job.Request(
        run=chosen,
        folder=folder,
        environment=environment,
        trust=trust,
        take_over=take_over,
        terms=Terms(
            auto_approve=auto_approve,
            prompter=None if detach else driving.prompter(),
            keep_changes=keep_changes,
        ),
    )
    view = driving.Progress(quiet=quiet or detach)
    drive = driving.Drive(
        lambda began: job.resume(request, doors, on_record=view.on_record, began=began),
        view,
        as_json=as_json,
    )
    try:
        return driving.detached(drive, home, chosen) if detach else drive.here()
    except job.UntrustedError as exc:
        render.say(exc.source)
        raise
