"""Driving a run in a process of its own, in the background."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from git_fabro.checkpoint.model import RunId
from git_fabro.cli import render
from git_fabro.cli.driving import Drive
from git_fabro.errors import FabroError, RequestError

LOG = "driver.log"


def detached(drive: Drive, folder: Path, *, as_json: bool) -> int:
    """Drives in the background; prints the run's id once the run exists.

    Args:
        drive: What to drive.
        folder: The run's own directory, where the driver's output goes.
        as_json: The id as a document.

    Raises:
        FabroError: it could not be begun.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _drive_alone(drive, folder, writing)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, encoding="utf-8") as answer:
        said = json.loads(answer.read() or "{}")
    run = said.get("began")
    if run is None:
        if said.get("shown"):
            render.say(said["shown"])
        message = said.get("message") or f"the run could not be begun; see {folder / LOG}"
        raise RequestError(message, hint=said.get("hint"))
    if as_json:
        render.document({"run_id": run})
    else:
        render.out(run)
    return 0


def _drive_alone(drive: Drive, folder: Path, writing: int) -> None:
    """The life of the process in the background: never returns."""
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    status = 128
    try:
        _redirect(folder)

        def began(run: RunId) -> None:
            _tell(writing, {"began": run})
            os.close(writing)

        status = drive.here(began)
    except FabroError as exc:
        render.error(exc)
        said = {"message": exc.message, "hint": exc.hint, "shown": getattr(exc, "source", None)}
        _tell(writing, said)
        status = exc.status
    except BaseException:
        # The last floor: nobody above it could say what went wrong, so the log does.
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect(folder: Path) -> None:
    """Standard input from nowhere, both outputs into the driver's log."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(number, target)
    os.close(log)
    os.close(nothing)


def _tell(writing: int, said: dict[str, object]) -> None:
    try:
        os.write(writing, json.dumps(said).encode())
    except OSError:
        # The run had begun, and whoever started it is gone: the log has the error.
        return
