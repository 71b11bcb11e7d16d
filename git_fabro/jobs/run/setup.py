"""What the settings prepare in a fresh work tree, before the first node."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from git_fabro.errors import RequestError
from git_fabro.handlers.call import Groups, Interrupted, Stop
from git_fabro.handlers.guardian import end_group
from git_fabro.store import RunLog
from git_fabro.workflow.settings import Settings

_POLL_S = 0.1


def prepare_work_tree(
    settings: Settings,
    directory: Path,
    environment: Mapping[str, str],
    log: RunLog,
    *,
    stop: Stop,
    groups: Groups,
) -> None:
    """Runs the commands of ``[setup]`` in order; what they print goes to the run directory.

    Raises:
        RequestError: one of them failed or did not end in time; no node has run.
        Interrupted: the run is stopped.
    """
    for number, step in enumerate(settings.setup, start=1):
        output = log.directory.logs(f"setup-{number}") / "output.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        with (
            output.open("wb") as file,
            _start(step.script, directory, {**environment, **step.environment}, file) as process,
        ):
            groups.add(process.pid)
            try:
                status = _wait(process, step.timeout_s, stop)
            finally:
                end_group(process.pid)
                groups.remove(process.pid)
        output.write_bytes(log.mask.data(output.read_bytes()))
        if status != 0:
            why = "did not end in time" if status is None else f"ended with status {status}"
            said = log.mask.text(output.read_text(errors="replace").strip().split("\n")[-1][:200])
            raise RequestError(
                f"preparation {why}: {log.mask.text(step.script)}" + (f": {said}" if said else ""),
                hint="mend [setup] in the settings, and run again",
            )


def _start(
    script: str, directory: Path, environment: Mapping[str, str], output: IO[bytes]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", script],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _wait(process: subprocess.Popen[bytes], timeout_s: float, stop: Stop) -> int | None:
    """The exit status; None if the command did not end in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if stop.is_set():
            end_group(process.pid)
            process.wait()
            raise Interrupted(stop.reason)
        try:
            return process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            continue
    end_group(process.pid)
    process.wait()
    return None
