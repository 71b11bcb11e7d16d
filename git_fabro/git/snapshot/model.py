"""The values of a snapshot: what it gave, what stays out, and why an engine cannot serve."""

from __future__ import annotations

from dataclasses import dataclass

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError

#: The code of the notice that says which engine records from now on.
ENGINE_NOTICE = "snapshot_engine"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something of a work tree that is not in its snapshot as it stands there."""

    code: str  # file_excluded, nested_repository, submodule_dirty, file_changing, folder_unreadable
    message: str
    path: bytes = b""  # empty: it is about no single path


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tree that a work tree was recorded as; an engine tells of each path once."""

    tree: Oid
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What stays out of a snapshot besides ignored files.

    ``excludes`` are git's ``:(glob)`` patterns from the top; they keep untracked names out, never a
    change of a tracked file. A file above ``largest_bytes`` is left as it was recorded before.
    """

    excludes: tuple[str, ...] = ()
    largest_bytes: int | None = None


class UncoveredError(GitError):
    """The fast engine does not cover this work tree exactly; git itself is to record it.

    ``evidence`` is the file that decides it: while it stays as it is, so does the answer. None:
    nothing short of another look tells. ``once`` says that the next snapshot is covered.
    """

    def __init__(self, reason: str, *, evidence: bytes | None = None, once: bool = False) -> None:
        super().__init__(f"fabro.snapshot is fast: {reason}", hint="git config fabro.snapshot auto")
        self.reason = reason
        self.evidence = evidence
        self.once = once


def too_large(path: bytes) -> Notice:
    return Notice("file_excluded", "file is above fabro.maxFileSize, not recorded", path)


def no_file(path: bytes) -> Notice:
    return Notice("file_excluded", "device, pipe or socket in place of a file, not recorded", path)
