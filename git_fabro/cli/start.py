"""Where a command line arrives: which command it names, and the one boundary for errors.

``git fabro run`` and ``git-fabro-run`` are the same program, which also reads its own name. A
command's module, and Typer, are imported only once the command is known.
"""

from __future__ import annotations

import difflib
import os
import signal
import sys
from importlib import import_module

from git_fabro.cli import render
from git_fabro.errors import FabroError

VERSION = "0.1.0"
USAGE, FATAL, CLOSED_PIPE = 129, 128, 141

#: Command: module below ``git_fabro.cli``, and what it does.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "run a workflow, each finished node a checkpoint"),
    "resume": ("resume", "go on with a run from its last checkpoint"),
    "attach": ("attach", "follow a run as it happens, and answer its questions"),
    "answer": ("answer", "answer a question of a run"),
    "pause": ("pause", "let a run rest after the node that is running"),
    "stop": ("stop", "end what a run is doing now; it can be resumed"),
    "wait": ("wait", "wait until a run ends"),
    "list": ("list", "list runs"),
    "show": ("show", "show all of a run or a checkpoint"),
    "events": ("events", "print the records of a run as JSON Lines"),
    "validate": ("validate", "check a workflow and print all diagnostics"),
    "graph": ("graph", "draw the graph of a workflow or a run"),
    "workflow": ("workflow", "list workflows, or create one"),
}
_ALIASES = {"ps": "list", "inspect": "show"}
#: Commands that only print: a closed pipe ends them silently, as it ends git's own.
_READING = frozenset({"list", "show", "events", "validate", "graph"})


def main(argv: list[str] | None = None) -> int:
    """Runs one command line; gives the exit status."""
    name, *rest = [os.path.basename(sys.argv[0]), *sys.argv[1:]] if argv is None else ["", *argv]
    command = name.removeprefix("git-fabro").removeprefix("-")
    arguments = [command, *rest] if command and name.startswith("git-fabro-") else rest
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    return status


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] == "-h":
        _summary()
        return USAGE
    first, rest = arguments[0], arguments[1:]
    if first == "--version":
        render.out(f"git-fabro {VERSION}")
        return 0
    if first == "--help":
        return _manual("git-fabro")
    command = _ALIASES.get(first, first)
    if command not in COMMANDS:
        near = difflib.get_close_matches(command, [*COMMANDS, *_ALIASES], n=1)
        render.say(f"fatal: not a git-fabro command: {first}")
        render.hint(f"git fabro {near[0]}" if near else "git fabro -h")
        return USAGE
    return _guarded(command, rest)


def _guarded(command: str, rest: list[str]) -> int:
    """One command, with the only place that turns errors into a status."""
    if command in _READING:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        return _invoke(command, rest)
    except FabroError as exc:
        render.error(exc)
        return exc.status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        raise
    except Exception as exc:
        if os.environ.get("FABRO_DEBUG"):
            raise
        render.say(f"fatal: git-fabro has a bug: {type(exc).__name__}: {exc}")
        render.hint(f"please report it with the output of: FABRO_DEBUG=1 git fabro {command} ...")
        return FATAL


def _invoke(command: str, rest: list[str]) -> int:
    # Typer costs 50 ms, so only what is needed of it, and only here.
    import typer
    from typer._click.exceptions import UsageError

    if rest[:1] == ["--help"]:
        return _manual(f"git-fabro-{command}")
    module = import_module(f"git_fabro.cli.{COMMANDS[command][0]}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    module.register(app)
    asks_for_help = "-h" in rest[: rest.index("--")] if "--" in rest else "-h" in rest
    try:
        status = app(
            ["-h"] if rest[:1] == ["-h"] else rest,
            prog_name=f"git fabro {command}",
            standalone_mode=False,
        )
    except UsageError as exc:
        render.say(f"fatal: {exc.format_message()}")
        render.hint(f"git fabro {command} -h")
        return USAGE
    except typer.Exit as exc:
        return exc.exit_code
    except typer.Abort:
        return 128 + signal.SIGINT
    return USAGE if asks_for_help else int(status or 0)


def _summary() -> None:
    render.out("usage: git fabro <command> [<args>]")
    render.out()
    rows = [(name, what) for name, (_, what) in COMMANDS.items()]
    for text in render.columns(rows):
        render.out(f"   {text}")
    render.out()
    render.out(
        "'git fabro <command> -h' is a summary, 'git fabro <command> --help' the manual page."
    )


def _manual(page: str) -> int:
    """Shows a manual page, as git does for its own commands."""
    try:
        os.execvp("man", ["man", page])
    except OSError:
        _summary()
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
