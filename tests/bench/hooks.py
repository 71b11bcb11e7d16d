"""What our hooks add to a commit and to a push, beside the same without hooks.

A commit on an ordinary branch, a push of an ordinary branch to a bare repository beside it, and a
commit by hand on the branch of a run. Two repositories that are alike but for the hooks, in turn.
A third has a hook that only exits: what git and sh take for any hook, however little it does.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.pairs import Row, compare

_WHEN = 1_704_067_200
_PROGRAM = (sys.executable, "-m", "git_fabro")
_WORKFLOW = """digraph Two { start [shape=Mdiamond]; exit [shape=Msquare]
plan [shape=parallelogram, script="echo planned > plan.txt"]
build [shape=parallelogram, script="echo built > build.txt"]
start -> plan -> build -> exit }
"""


def measure(pairs: int) -> list[Row]:
    """Ratios, and the milliseconds that a hook adds: the median of the differences."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ |= _environment(home)
        ours, plain = _made(home / "ours"), _made(home / "plain")
        _call(ours, *_PROGRAM, "install")
        idle = _idle(_made(home / "idle"))
        rows = [
            *_row("commit with a hook that only exits", _commit(idle), _commit(plain), pairs),
            *_row("commit on an ordinary branch", _commit(ours), _commit(plain), pairs),
            *_row("push of an ordinary branch", _push(ours), _push(plain), pairs, before=2),
        ]
        for repo in (ours, plain):
            _git(repo, "switch", "-q", _git(repo, "branch", "--list", "fabro/run/*").strip())
        return [*rows, *_row("commit by hand on a run", _commit(ours), _commit(plain), pairs)]


def _row(
    name: str, ours: Callable[[], object], plain: Callable[[], object], pairs: int, before: int = 1
) -> list[Row]:
    """Both sides in turn; what was warmed up is not measured."""
    for _ in range(before):
        ours()
        plain()
    rows = [
        compare(f"hooks/{name}", ours, plain, peer="the same without hooks", pairs=1)
        for _ in range(max(pairs, 20))
    ]
    added = [row["ours_ms"] - row["peer_ms"] for row in rows]
    ratios = [row["ratio"] for row in rows]
    whole = {
        **rows[0],
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "ours_ms": statistics.median(row["ours_ms"] for row in rows),
        "peer_ms": statistics.median(row["peer_ms"] for row in rows),
        "pairs": len(rows),
    }
    extra = {"name": f"hooks/{name}, added", "value": statistics.median(added), "unit": "ms"}
    return [whole, extra]


def _made(folder: Path) -> Path:
    """A repository with a finished run and a remote."""
    repo, bare = folder / "repo", folder / "bare.git"
    repo.mkdir(parents=True)
    _git(repo, "init", "-q", "-b", "main")
    (repo / "two.fabro").write_text(_WORKFLOW)
    _git(repo, "add", "-A")
    _git(repo, "commit", "-q", "-m", "work")
    _git(repo, "clone", "-q", "--bare", ".", str(bare))
    _git(repo, "remote", "add", "origin", str(bare))
    _call(repo, *_PROGRAM, "run", "-q", "two.fabro")
    return repo


def _idle(repo: Path) -> Path:
    hook = repo / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    return repo


def _commit(repo: Path) -> Callable[[], object]:
    return lambda: _git(repo, "commit", "-q", "--allow-empty", "-m", "work")


def _push(repo: Path) -> Callable[[], object]:
    """Pushes of one branch that goes to and fro between two commits."""
    turn = iter(range(1_000_000))
    return lambda: _git(repo, "push", "-q", "-f", "origin", f"main~{next(turn) % 2}:refs/heads/x")


def _git(repo: Path, *args: str) -> str:
    return _call(repo, "git", *args)


def _call(repo: Path, *argv: str) -> str:
    done = subprocess.run(argv, cwd=repo, capture_output=True, text=True, check=True)
    return done.stdout


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A. Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.com",
        "GIT_AUTHOR_DATE": f"{_WHEN} +0000",
        "GIT_COMMITTER_NAME": "A. Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.com",
        "GIT_COMMITTER_DATE": f"{_WHEN} +0000",
    }
