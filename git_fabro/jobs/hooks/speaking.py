"""How a hook speaks: in single lines on standard error, that begin with its program's name."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from git_fabro.checkpoint.harmless import line
from git_fabro.errors import FabroError


def say(text: str) -> None:
    """One line, made harmless. Nobody may be reading it."""
    try:
        sys.stderr.write(f"fabro: {line(text)}\n")
        sys.stderr.flush()
    except OSError:
        # The commit or the push goes on without being told of it.
        return


def never_failing(hook: Callable[[], None]) -> int:
    """Runs a hook that may stop nothing: what goes wrong is said, and the status is 0."""
    try:
        hook()
    except FabroError as exc:
        say(f"warning: {exc.message}")
        if exc.hint:
            say(f"hint: {exc.hint}")
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Exception as exc:
        if os.environ.get("FABRO_DEBUG"):
            raise
        say(f"warning: git-fabro has a bug: {type(exc).__name__}: {exc}")
        say("hint: please report it, with FABRO_DEBUG=1 in the environment")
    return 0
