"""What a clean-up took of the index's objects, made again from the files of the work tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from git_fabro.errors import GitError

_GITLINK, _SYMLINK = b"160000", b"120000"


class Run(Protocol):
    """Git on one work tree and its index: what it prints."""

    def __call__(self, *args: str, input: bytes = b"") -> bytes: ...


def make_again(run: Run, work_tree: Path) -> int:
    """Store every blob that the index names and the repository lacks; how many there were.

    Raises:
        GitError: a file is another one by now, so that its blob is lost; it is named.
    """
    count = 0
    for oid, mode, name in _gone(run):
        if not _is_made(run, oid, mode, os.path.join(os.fsencode(work_tree), name), name):
            raise GitError(
                f"a clean-up took the recorded content, and the file has changed since: "
                f"{os.fsdecode(name)!a}",
                hint="git fsck",
            )
        count += 1
    return count


def _gone(run: Run) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Blob, mode and path of the entries without an object; each blob once."""
    named: dict[bytes, tuple[bytes, bytes]] = {}
    for row in run("ls-files", "-s", "-z").split(b"\0")[:-1]:
        head, _, name = row.partition(b"\t")
        mode, oid, _ = head.split(b" ")
        if mode != _GITLINK:
            named.setdefault(oid, (mode, name))
    asked = b"".join(oid + b"\n" for oid in named)
    for line in run("cat-file", "--batch-check", input=asked).splitlines():
        oid, _, answer = line.partition(b" ")
        if answer == b"missing":
            yield (oid, *named[oid])


def _is_made(run: Run, oid: bytes, mode: bytes, path: bytes, name: bytes) -> bool:
    shown = os.fsdecode(name)
    try:
        if mode == _SYMLINK:
            return run("hash-object", "-w", "--stdin", input=os.readlink(path)).strip() == oid
        if os.path.islink(path) or not os.path.isfile(path):
            return False
        # As it lies there first: what was committed with CRLF stays so, which only an index knows.
        options = (("--no-filters",), ())
        return any(run("hash-object", "-w", *some, "--", shown).strip() == oid for some in options)
    except (OSError, GitError):
        return False
