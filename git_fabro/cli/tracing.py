"""``FABRO_TRACE``: what was done, with times: the command, each program it started, the status."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable

_LONGEST = 400


def begin(arguments: list[str]) -> Callable[[int], None]:
    """Begins a trace if one is wanted; gives what ends it with the exit status."""
    wanted = os.environ.get("FABRO_TRACE", "")
    if wanted.lower() in ("", "0", "false"):
        return lambda status: None
    began = time.monotonic()

    def tell(text: str) -> None:
        row = f"{(time.monotonic() - began) * 1000:9.1f} ms {os.getpid()} {text[:_LONGEST]}\n"
        if not wanted.startswith("/"):
            sys.stderr.write(row)
            return
        with open(wanted, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(row)

    def heard(event: str, details: tuple[object, ...]) -> None:
        if event == "subprocess.Popen":
            argv = details[1]
            words = argv if isinstance(argv, (list, tuple)) else [argv]
            tell("start " + shlex.join(os.fsdecode(str(word)) for word in words))

    sys.addaudithook(heard)
    tell("git fabro " + shlex.join(arguments))
    return lambda status: tell(f"exit {status}")
