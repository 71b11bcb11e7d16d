"""``git fabro resume``: go on with a run."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import detaching, driving, history, naming, options, render, terminal
from git_fabro.cli.progress import Progress
from git_fabro.jobs.run import resume as job
from git_fabro.jobs.run.crew import Terms

Trust = Annotated[bool, typer.Option("--trust", help="admit a workflow that arrived by fetch")]
KeepChanges = Annotated[
    bool, typer.Option("--keep-changes", help="keep what the interrupted node left")
]
TakeOver = Annotated[bool, typer.Option("--take-over", help="from a holder on another machine")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(resume)


def resume(
    run: options.RunOrNone = None,
    detach: options.Detach = False,
    auto_approve: options.AutoApprove = False,
    trust: Trust = False,
    keep_changes: KeepChanges = False,
    take_over: TakeOver = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> int:
    """Go on with a run from its last checkpoint."""
    place = naming.here()
    chosen = naming.find_run(place, run)
    request = job.Request(
        run=chosen,
        folder=place.folder,
        environment=place.environment,
        trust=trust,
        take_over=take_over,
        terms=Terms(
            auto_approve=auto_approve,
            prompter=None if detach else terminal.prompter(),
            keep_changes=keep_changes,
        ),
    )
    view = Progress(quiet=quiet, verbose=verbose)
    doors = history.repository(place) if place.source is not None else None
    drive = driving.Drive(
        lambda began: job.resume(request, doors, on_record=view.on_record, began=began),
        as_json=as_json,
        has_branch=chosen in place.branches and place.branches[chosen].run_tip is not None,
    )
    try:
        if detach:
            return detaching.detached(drive, place.home / chosen, as_json=as_json)
        return drive.here()
    except job.UntrustedError as exc:
        render.say(exc.source)
        raise
