"""``git fabro wait``: wait until a run ends."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from git_fabro.cli import driving, naming, options, render
from git_fabro.errors import RequestError
from git_fabro.jobs.look import Watch, Whole
from git_fabro.workflow.state import RUNNING, SUBMITTED

_POLL_S = 0.2

Timeout = Annotated[
    float | None, typer.Option("--timeout", min=0, metavar="S", help="seconds to wait at most")
]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(wait)


def wait(
    run: options.RunOrNone = None, timeout: Timeout = None, as_json: options.AsJson = False
) -> int:
    """Wait until a run ends, rests, or asks a person; the exit status says which."""
    place = naming.here()
    chosen = naming.find_run(place, run)
    whole = _wait(Watch(place.doors, place.home, chosen), timeout)
    if as_json:
        has_branch = whole.run_tip is not None
        ending = driving.summary(chosen, whole.state, has_branch=has_branch)
        render.document(ending | {"status": whole.status})
    else:
        reason = f": {whole.state.reason}" if whole.state.reason else ""
        render.out(f"{chosen} {whole.status}{reason}")
    return driving.exit_status(whole.status)


def _wait(watch: Watch, timeout: float | None) -> Whole:
    deadline = None if timeout is None else time.monotonic() + timeout
    while (whole := watch.look()).status in (RUNNING, SUBMITTED):
        if deadline is not None and time.monotonic() >= deadline:
            raise RequestError(
                f"run has not ended in time: {whole.run}", hint=f"git fabro attach {whole.run}"
            )
        time.sleep(_POLL_S)
    return whole
