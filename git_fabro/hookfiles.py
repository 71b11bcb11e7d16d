"""The shell parts of the hooks: where they lie, and which Python they start.

What they do once Python runs is the jobs'; where they are put, the installer's.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from git_fabro.errors import NotFoundError

_PLACEHOLDER = "@python@"
_PACKAGE = Path(__file__).resolve().parent
#: In an installed package, and in a clone.
_FOLDERS = (_PACKAGE / "_hooks", _PACKAGE.parent / "hooks")


def shim(name: str) -> str:
    """The text of a hook, POSIX sh, that starts the Python which runs now.

    Args:
        name: As git calls the hook: ``pre-receive``.

    Raises:
        NotFoundError: there is no such hook.
    """
    for folder in _FOLDERS:
        path = folder / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            return text.replace(_PLACEHOLDER, shlex.quote(sys.executable))
    raise NotFoundError(f"no such hook: {name}", hint="pip install --force-reinstall git-fabro")
