"""Which runs were pruned, out of the tombstones of several repositories."""

from __future__ import annotations

import pytest

from git_fabro.branches import Source
from git_fabro.checkpoint.model import Oid
from git_fabro.tombstones import pruned
from tests.conftest import GitRepo

RUN = "01JKXYZ3F9QW0000000000000A"
EARLY, LATE = "01JKXYZ3F9QW0000000000000B", "01JKXYZ3F9QW0000000000000C"


def tip(repo: GitRepo, entries: dict[str, str]) -> Oid:
    """A commit with a file for each run."""
    lines = []
    for name, text in entries.items():
        blob = repo.git("hash-object", "-w", "--stdin", stdin=f"{text}\n".encode())
        lines.append(f"100644 blob {blob}\t{name}\n")
    tree = repo.git("mktree", stdin="".join(lines).encode())
    return Oid(repo.git("commit-tree", "-m", "pruned", tree))


@pytest.mark.parametrize(
    ("sides", "gone"),
    [
        ([], set()),
        ([{RUN: f"pruned {EARLY}"}], {RUN}),
        ([{RUN: f"kept {EARLY}"}], set()),
        ([{RUN: f"pruned {EARLY}"}, {RUN: f"kept {LATE}"}], set()),
        ([{RUN: f"kept {EARLY}"}, {RUN: f"pruned {LATE}"}], {RUN}),
        ([{RUN: f"pruned {LATE}"}, {RUN: f"kept {EARLY}"}], {RUN}),
        ([{RUN: "\x1b nonsense"}], set()),
    ],
)
def test_of_two_entries_the_later_counts(
    repo: GitRepo, sides: list[dict[str, str]], gone: set[str]
) -> None:
    tips = [tip(repo, side) for side in sides]

    assert pruned(Source.open(repo.path).objects, tips) == gone
