"""``git fabro wait``: wait until a run ends."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from git_fabro import rundir
from git_fabro.cli import driving, naming, render
from git_fabro.errors import RequestError
from git_fabro.jobs import look
from git_fabro.workflow.state import RUNNING, SUBMITTED

_POLL_S = 0.2


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(wait)


def wait(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="seconds to wait at most")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON document")] = False,
) -> int:
    """Wait until a run ends, is stopped, or asks a person; the exit status says which."""
    doors = naming.doors_or_none()
    home = rundir.home(doors.repository if doors else None, Path.cwd(), driving.environment())
    chosen = naming.find_run(doors, home, run)
    deadline = None if timeout is None else time.monotonic() + timeout
    while (whole := look.look(doors, home, chosen)).status in (RUNNING, SUBMITTED):
        if deadline is not None and time.monotonic() >= deadline:
            raise RequestError(
                f"run has not ended in time: {chosen}", hint=f"git fabro attach {chosen}"
            )
        time.sleep(_POLL_S)
    if as_json:
        render.document(driving.summary(chosen, whole.state) | {"status": whole.status})
    else:
        reason = f": {whole.state.reason}" if whole.state.reason else ""
        render.out(f"{chosen} {whole.status}{reason}")
    return 1 if whole.status == look.INTERRUPTED else driving.exit_status(whole.state)
