"""Where a command line arrives: which command it names, and the one boundary for errors.

``git fabro run`` and ``git-fabro-run`` are the same program, which also reads its own name. A
command's module, and Typer, are imported only once the command is known.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from typing import Any

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
    "log": ("log", "print the timeline of a run, newest first"),
    "show": ("show", "show all of a run or a checkpoint"),
    "diff": ("diff", "print what a run or a checkpoint changed"),
    "compare": ("compare", "print two runs side by side"),
    "rewind": ("rewind", "put a run back to one of its checkpoints"),
    "fork": ("fork", "make a new run from a checkpoint of another one"),
    "undo": ("undo", "take the last operation back: refs, work tree and index"),
    "redo": ("redo", "take the last undo back"),
    "op": ("op", "list the operations that undo can take back"),
    "events": ("events", "print the records of a run as JSON Lines"),
    "validate": ("validate", "check a workflow and print all diagnostics"),
    "graph": ("graph", "draw the graph of a workflow or a run"),
    "workflow": ("workflow", "list workflows, or create one"),
    "sync": ("sync", "bring runs here and at a remote up to each other"),
    "fsck": ("fsck", "prove the record of runs"),
    "install": ("install", "put the hooks of this repository in place"),
    "uninstall": ("uninstall", "take the hooks out, and put back what was there"),
    "hook": ("hook", "do what a hook does, for a hook manager"),
}
#: Commands whose most usual forms are read without Typer, and the modules that do it.
_PLAIN = {"hook": "hook", "list": "runs", "log": "timeline"}
_ALIASES = {"ps": "list", "inspect": "show"}


def main(argv: list[str] | None = None) -> int:
    """Runs one command line; gives the exit status."""
    name, *rest = [os.path.basename(sys.argv[0]), *sys.argv[1:]] if argv is None else ["", *argv]
    command = name.removeprefix("git-fabro").removeprefix("-")
    arguments = [command, *rest] if command and name.startswith("git-fabro-") else rest
    status = _traced(arguments) if os.environ.get("FABRO_TRACE") else _to_the_end(arguments)
    if argv is None:
        # The process ends now, and would look for garbage among all modules once more.
        gc.freeze()
    return status


def _traced(arguments: list[str]) -> int:
    from git_fabro.cli import tracing

    ended = tracing.begin(arguments)
    status = _to_the_end(arguments)
    ended(status)
    return status


def _to_the_end(arguments: list[str]) -> int:
    """One command line, until all it printed has been taken, or nobody wants it any more."""
    try:
        status = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        status = CLOSED_PIPE
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    pager = sys.modules.get("git_fabro.cli.pager")
    if pager is not None:
        pager.end()
    return status


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        render.say("fatal: command is missing")
        render.hint("git fabro -h")
        return USAGE
    first, rest = arguments[0], arguments[1:]
    if first == "-h":
        _summary()
        return USAGE
    if first == "--version":
        render.out(f"git-fabro {VERSION}")
        return 0
    if first == "--help":
        return 0 if _manual("git-fabro") else _summary()
    command = _ALIASES.get(first, first)
    if command not in COMMANDS:
        what = "option" if first.startswith("-") else "command"
        known = ["-h", "--help", "--version"] if what == "option" else [*COMMANDS, *_ALIASES]
        near = render.near(first, known)
        render.say(f"fatal: no such {what}: {first}")
        render.hint(f"git fabro {near}" if near else "git fabro -h")
        return USAGE
    return _guarded(command, rest)


def _guarded(command: str, rest: list[str]) -> int:
    """One command, with the only place that turns errors into a status."""
    try:
        return _invoke(command, rest)
    except FabroError as exc:
        for diagnostic in getattr(exc, "diagnostics", ()):
            render.say(diagnostic.render())
        sys.stdout.flush()
        render.error(exc)
        return exc.status
    except BrokenPipeError:
        raise
    except Exception as exc:
        if os.environ.get("FABRO_DEBUG"):
            raise
        render.say(f"fatal: git-fabro has a bug: {type(exc).__name__}: {render.line(str(exc))}")
        render.hint(f"please report it with the output of: FABRO_DEBUG=1 git fabro {command} ...")
        return FATAL


def _invoke(command: str, rest: list[str]) -> int:
    status = _plainly(_PLAIN[command], rest) if command in _PLAIN else None
    if status is not None:
        return status
    # Typer costs 50 ms, so only what is needed of it, and only here.
    import typer
    from typer._click.exceptions import UsageError

    from git_fabro.cli import usage

    before = rest[: rest.index("--")] if "--" in rest else rest
    module = import_module(f"git_fabro.cli.{COMMANDS[command][0]}")
    rest = getattr(module, "spelled", list)(rest)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    module.register(app)
    parsed = typer.main.get_command(app)
    name, meant = _meant(command, parsed, before)
    if "--help" in before and _manual(f"git-fabro-{command}"):
        return 0
    if "-h" in before or "--help" in before:
        usage.summary(name, meant)
        return USAGE if "-h" in before else 0
    try:
        # Not main(), which turns a closed pipe into status 1 and Ctrl-C into an error of its own.
        with parsed.make_context(f"git fabro {command}", _with_colour(rest)) as context:
            status = parsed.invoke(context)
    except UsageError as exc:
        usage.refuse(name, meant, exc)
        return USAGE
    return int(status or 0)


def _plainly(module: str, rest: list[str]) -> int | None:
    """One of the usual forms of a command, told without Typer; None if it is another form."""
    # Nothing becomes garbage on this way; to look for it takes a tenth of the time.
    gc.disable()
    try:
        told = import_module(f"git_fabro.cli.{module}")
        wanted = told.plain(rest)
        return None if wanted is None else int(told.tell(wanted))
    finally:
        gc.enable()


def _meant(command: str, parsed: Any, words: list[str]) -> tuple[str, Any]:
    """The command itself, or the subcommand of it that the first word names."""
    below = getattr(parsed, "commands", {})
    word = next((one for one in words if not one.startswith("-")), "")
    return (f"{command} {word}", below[word]) if word in below else (command, parsed)


def _with_colour(rest: list[str]) -> list[str]:
    """The arguments with git's short forms spelled out: ``--color`` and ``--no-color``."""
    spelled = {"--color": "--color=always", "--no-color": "--color=never"}
    end = rest.index("--") if "--" in rest else len(rest)
    return [spelled.get(one, one) for one in rest[:end]] + rest[end:]


def _summary() -> int:
    render.out("usage: git fabro <command> [<args>]")
    render.out()
    render.table([(name, what) for name, (_, what) in COMMANDS.items()], indent="    ")
    render.out()
    render.out("'git fabro <command> -h' is a summary of a command, '--help' its manual page.")
    return 0


def _manual(page: str) -> bool:
    """Shows a manual page as git does for its own commands; False if there is none."""
    import shutil
    import subprocess

    if shutil.which("man") is None:
        return False
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    beside = (os.path.join(here, "man"), os.path.join(sys.prefix, "share", "man", "man1"))
    files = [os.path.join(folder, f"{page}.1") for folder in beside]
    found = next((file for file in files if os.path.isfile(file)), page)
    sys.stdout.flush()
    known = (
        found != page or subprocess.run(["man", "-w", page], capture_output=True).returncode == 0
    )
    return known and subprocess.run(["man", found]).returncode == 0


if __name__ == "__main__":
    raise SystemExit(main())
