"""Options and arguments that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from git_fabro.errors import RequestError

#: How every command is registered: ``-h`` is ours, and ``--help`` never reaches Typer.
SETTINGS: dict[str, Any] = {"help_option_names": []}

Run = Annotated[str, typer.Argument(metavar="RUN", help="an id, a prefix of one, or a workflow")]
RunOrNone = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="default: the run here, else the newest")
]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="the run, where a word could be both")
]
Workflow = Annotated[str, typer.Argument(metavar="WORKFLOW", help="a file, or a name")]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON document")]
AutoApprove = Annotated[
    bool, typer.Option("--auto-approve", help="answer questions by their first choice")
]
Color = Annotated[str | None, typer.Option("--color", metavar="WHEN", help="always, auto or never")]
Detach = Annotated[
    bool, typer.Option("-d", "--detach", help="in the background; prints the run's id")
]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="K=V", help="a label")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="no progress")]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="progress, where standard error is no terminal too")
]


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """``K=V`` options as a table.

    Raises:
        RequestError: one has no ``=``, or no key.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise RequestError(f"{option} takes K=V, not: {text}", hint=f"{option} KEY=VALUE")
        found[key] = value
    return found


def only_with(given: bool, wanted: bool, option: str, hint: str) -> None:
    """Nothing, if an option that goes with another one is not given alone.

    Raises:
        RequestError: it is.
    """
    if given and not wanted:
        raise RequestError(f"{option} is for a list of names", hint=hint)
