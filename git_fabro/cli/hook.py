"""``git fabro hook``: what the hooks do, for hook managers that call it themselves."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from git_fabro.cli import options, render
from git_fabro.errors import NotFoundError

_HOOKS = ("post-commit", "post-rewrite", "pre-push", "pre-receive")
_RUN_BRANCH = "ref: refs/heads/fabro/run/"

Name = Annotated[str, typer.Argument(metavar="NAME", help=", ".join(_HOOKS))]
Words = Annotated[list[str] | None, typer.Argument(metavar="[ARGS]", help="as git gave them")]


class Called(NamedTuple):
    """A hook and its arguments."""

    name: str
    words: list[str]


def plain(rest: list[str]) -> Called | None:
    """The usual form, which needs no Typer: a hook that there is, and whatever follows."""
    return Called(rest[0], rest[1:]) if rest and rest[0] in _HOOKS else None


def tell(called: Called) -> int:
    """Does what a hook does; its status is for git."""
    if called.name != "pre-receive" and os.environ.get("GIT_FABRO_HOOK"):
        # A git of our own: its hooks would call each other for ever.
        return 0
    if called.name.startswith("post-") and not _may_be_on_a_run():
        return 0
    # Imported here: 150 ms that no commit on another branch pays.
    job = import_module(f"git_fabro.jobs.hooks.{called.name.replace('-', '_')}")
    return int(job.main(called.words) if called.name == "pre-push" else job.main())


def _may_be_on_a_run() -> bool:
    """Whether HEAD names a run branch; also where that cannot be read from here."""
    folder = Path(os.environ.get("GIT_DIR", ".git"))
    try:
        if folder.is_file():
            folder = Path(folder.read_text().removeprefix("gitdir:").strip())
        head = (folder / "HEAD").read_text()
    except (OSError, UnicodeDecodeError):
        return True
    return head.startswith(_RUN_BRANCH) or ".invalid" in head


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(hook)


def hook(name: Name, words: Words = None) -> int:
    """Do what a hook does, for a hook manager that calls it."""
    called = plain([name, *(words or [])])
    if called is None:
        near = render.near(name, list(_HOOKS))
        raise NotFoundError(
            f"no such hook: {name}", hint=f"git fabro hook {near}" if near else "git fabro hook -h"
        )
    return tell(called)
