"""Run workflows in Git: each finished node is a checkpoint, and Git is the only store.

::

    import git_fabro

    repository = git_fabro.open(".")
    run = repository.start("demo", goal="ship it")
    for checkpoint in run.timeline():
        print(checkpoint.ordinal, checkpoint.node, checkpoint.run_commit)

Importing the package costs nothing: what a name stands for is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git_fabro import handlers
    from git_fabro.api import Repository, Run, open

__all__ = ["Repository", "Run", "handlers", "open"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported here: 60 ms that the command line's own start does not pay.
    from git_fabro import api

    return getattr(api, name)
