"""Which engine records a work tree, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RequestError
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Objects
from git_fabro.git.snapshot.reference import ReferenceEngine, Rules, Snapshot


class Engine(Protocol):
    """What turns a work tree into a tree."""

    def record(self) -> Snapshot: ...

    def look_again(self, objects: Objects, before: Oid | None, tree: Oid) -> int: ...

    def remove_left_lock(self) -> bool: ...

    def set_index_to(self, tree: Oid) -> None: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and the reason in one line, for a trace."""

    engine: Engine
    reason: str


def choose_engine(repo: Repository, index: Path, rules: Rules | None = None) -> Choice:
    """The engine for a work tree and the index that belongs to its snapshots.

    Raises:
        RequestError: ``fabro.snapshot`` asks for an engine that cannot serve here.
    """
    wanted = repo.config("fabro.snapshot") or "auto"
    if wanted not in ("auto", "reference"):
        raise RequestError(
            f"no such snapshot engine: {wanted}", hint="git config --unset fabro.snapshot"
        )
    engine = ReferenceEngine(repo, index, rules or rules_of(repo))
    return Choice(engine, "reference: the only engine there is")


def rules_of(repo: Repository, excludes: tuple[str, ...] = ()) -> Rules:
    """What stays out, as ``fabro.maxFileSize`` and these patterns say.

    Raises:
        RequestError: ``fabro.maxFileSize`` is no size.
    """
    return Rules(excludes=excludes, largest_bytes=_size(repo.config("fabro.maxFileSize")))


def _size(text: str | None) -> int | None:
    # Source: git-config(1), integer
    if text is None:
        return None
    number, unit = text[:-1], text[-1:].lower()
    if unit not in _UNITS:
        number, unit = text, ""
    if not number.isdecimal():
        raise RequestError(f"not a size: fabro.maxFileSize={text}")
    return int(number) * _UNITS[unit]


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
