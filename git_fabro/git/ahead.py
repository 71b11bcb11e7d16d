"""Many objects read at once by one git process, before they are asked for one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git.program import Git


def read(git: Git, git_dir: Path, names: Sequence[str]) -> dict[Oid, tuple[str, bytes]]:
    """Kind and bytes of the objects that these names mean, by object name.

    What is absent is left out, and all of it where git fails: whoever asks for an object then is
    told why it cannot be had.

    Args:
        git: The git program.
        git_dir: The repository.
        names: As git reads them: ``<commit>``, ``<commit>^{tree}``, ``<commit>:run.json``.
    """
    asked = "".join(f"{name}\n" for name in names).encode()
    try:
        answer = git.run(["cat-file", "--batch", "--buffer"], git_dir=git_dir, input=asked)
    except GitError:
        return {}
    return {oid: (kind, data) for oid, kind, data in _objects(answer)}


def _objects(answer: bytes) -> Iterator[tuple[Oid, str, bytes]]:
    """Source: git-cat-file(1), "BATCH OUTPUT"."""
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        words = answer[at:end].split(b" ")
        at = end + 1
        # Else the name and why there is nothing: missing, ambiguous, ...
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            yield Oid(words[0].decode("ascii")), words[1].decode("ascii"), answer[at : at + size]
            at += size + 1
