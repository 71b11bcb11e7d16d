"""Git's pager, started as git starts it: only at a terminal, and not within another pager."""

from __future__ import annotations

import os
import subprocess
import sys

from git_fabro.branches import Source

_OFF, _ON = frozenset({"false", "no", "off", "0"}), frozenset({"true", "yes", "on", "1"})
_running: list[subprocess.Popen[bytes]] = []


def begin(command: str, source: Source | None) -> None:
    """Sends what follows on standard output through the pager, if one is to be used.

    Source: git-config(1), "pager.<cmd>", "core.pager"; git-var(1), GIT_PAGER
    """
    if os.environ.get("GIT_PAGER_IN_USE") or not sys.stdout.isatty():
        return
    program = _program(command, source)
    if program in ("", "cat"):
        return
    sys.stdout.flush()
    os.environ["GIT_PAGER_IN_USE"] = "true"
    environment = {"LESS": "FRX", "LV": "-c"} | dict(os.environ)
    process = subprocess.Popen(program, shell=True, stdin=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    os.dup2(process.stdin.fileno(), sys.stdout.fileno())
    process.stdin.close()
    _running.append(process)


def end() -> None:
    """Waits until the pager has been left."""
    while _running:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        _running.pop().wait()


def _program(command: str, source: Source | None) -> str:
    """The command line of the pager; "" for none."""

    def config(key: str) -> str | None:
        return source.repository.config(key) if source is not None else None

    chosen = config(f"pager.fabro-{command}") or config("pager.fabro") or "true"
    if chosen.lower() in _OFF:
        return ""
    if chosen.lower() not in _ON:
        return chosen
    for wanted in (os.environ.get("GIT_PAGER"), config("core.pager"), os.environ.get("PAGER")):
        if wanted is not None:
            return wanted
    # Imported here: 3 ms that are paid at a terminal only.
    import shutil

    return "less" if shutil.which("less") else ""
