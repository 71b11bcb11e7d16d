"""What the settings prepare in a fresh work tree, before the first node."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from git_fabro.errors import RequestError
from git_fabro.store import RunLog
from git_fabro.workflow.settings import Settings


def prepare_work_tree(
    settings: Settings, directory: Path, environment: Mapping[str, str], log: RunLog
) -> None:
    """Runs the commands of ``[setup]`` in order; what they print goes to the run directory.

    Raises:
        RequestError: one of them failed or did not end in time; no node has run.
    """
    for number, step in enumerate(settings.setup, start=1):
        output = log.directory.logs(f"setup-{number}") / "output.log"
        output.parent.mkdir(parents=True, exist_ok=True)
        status = _run(
            step.script, directory, {**environment, **step.environment}, step.timeout_s, output
        )
        _mask(output, log)
        if status != 0:
            why = "did not end in time" if status is None else f"ended with status {status}"
            raise RequestError(
                f"preparation {why}: {log.mask.text(step.script)}", hint=f"cat {output}"
            )


def _run(
    script: str, directory: Path, environment: Mapping[str, str], timeout_s: float, output: Path
) -> int | None:
    with (
        output.open("wb") as file,
        subprocess.Popen(
            ["sh", "-c", script],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def _mask(output: Path, log: RunLog) -> None:
    output.write_bytes(log.mask.data(output.read_bytes()))
