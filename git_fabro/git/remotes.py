"""Which remotes there are, and which one is meant."""

from __future__ import annotations

from collections.abc import Iterator

from git_fabro.checkpoint import harmless, layout
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.git.discover import Repository


def names(repo: Repository) -> list[str]:
    """The names of the remotes, the default one first.

    That is ``fabro.remote``, the current branch's, ``origin``; then the others by name.
    """
    there = known(repo)
    first = [name for name in _firsts(repo) if name in there]
    return list(dict.fromkeys([*first, *there]))


def choose(repo: Repository, named: str | None = None) -> str:
    """The remote that is meant: the named one, else ``fabro.remote``, the branch's, ``origin``.

    Raises:
        NotFoundError: there is no such remote, or none at all.
        RequestError: there are several, and none of them is the default.
    """
    there = known(repo)
    named = named or repo.config("fabro.remote")
    if named is not None:
        if named not in there:
            raise NotFoundError(f"no such remote: {harmless.line(named)}", hint="git remote -v")
        return named
    if not there:
        raise NotFoundError("there is no remote here", hint="git remote add origin URL")
    first = [name for name in _firsts(repo) if name in there]
    if not first and len(there) > 1:
        raise RequestError(
            f"which remote is meant: {', '.join(there)}", hint="git config fabro.remote NAME"
        )
    return (first or there)[0]


def known(repo: Repository) -> list[str]:
    """The names of the remotes, sorted."""
    keys = (key.split(".", 1)[1] for key in repo.settings if key.startswith("remote."))
    return sorted({key.rpartition(".")[0] for key in keys if "." in key})


def _firsts(repo: Repository) -> Iterator[str | None]:
    branch = (repo.head or "").removeprefix(layout.HEADS)
    yield repo.config("fabro.remote")
    yield repo.config(f"branch.{branch}.remote") if branch else None
    yield "origin"
