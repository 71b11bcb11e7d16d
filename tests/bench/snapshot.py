"""What a snapshot costs beside ``git add -A && git commit``, by size of work tree and change.

One side after the other in one work tree: both see the same files, changed anew for each. Ours is
the tree, the commit and the ref; git keeps its index, ours is private. ``full`` looks at all files,
``journal`` at what the system told of. What a checkpoint adds afterwards, outside the snapshot, has
rows of its own: ``index``, the run's index brought up.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, zero
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.refs import Refs
from git_fabro.git.snapshot.choose import rules_of
from git_fabro.git.snapshot.fast import FastEngine
from git_fabro.git.snapshot.reference import ReferenceEngine, seed_index
from git_fabro.git.snapshot.rounds import FEW_FILES
from tests.bench.pairs import Row, compare, timed

SIZES = (1_000, 10_000, 100_000)
CHANGES = (1, 10, 100)
_IN_A_FOLDER = 100
_REF = "refs/fabro/checkpoint/bench"
_WHO = Identity("A. Tester", "tester@example.com")
_text = itertools.count(1_000_000)


def measure(pairs: int) -> list[Row]:
    """The rows of every size, each size in a process of its own, for its memory."""
    rows: list[Row] = []
    for size in SIZES:
        argv = [sys.executable, "-m", "tests.bench.snapshot", str(size), str(pairs)]
        done = subprocess.run(argv, env=_environment(), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        rows += json.loads(done.stdout)
    return rows


class Side:
    """Our side: an engine, the commit of its tree, one ref."""

    def __init__(self, top: Path, name: str, *, few_files: int) -> None:
        repo = open_repository(top)
        index = top / ".git" / f"{name}.index"
        seed_index(repo, index)
        behind = ReferenceEngine(repo, index, rules_of(repo))
        self._objects = open_objects(repo)
        self._refs = Refs(repo, self._objects)
        self._ref = f"{_REF}/{name}"
        self._tip: Oid | None = None
        self.tree = Oid("")
        self.engine = FastEngine(
            repo,
            self._objects,
            index,
            rules_of(repo),
            set_index_to=behind.set_index_to,
            few_files=few_files,
        )

    def snapshot(self) -> None:
        self.tree = self.engine.record().tree
        parents = (self._tip,) if self._tip else ()
        commit = Commit(
            tree=self.tree,
            parents=parents,
            author=_WHO,
            committer=_WHO,
            when=int(time.time()),
            message="snapshot\n",
        )
        oid = self._objects.write_commit(commit)
        self._refs.move((Move(self._ref, self._tip or zero(oid), oid),), message="bench")
        self._objects.look_again()
        self._tip = oid

    def settle(self) -> None:
        self.engine.settle(self.tree)

    def close(self) -> None:
        self.engine.close()
        self._refs.close()
        self._objects.close()


def _measure_size(top: Path, size: int, pairs: int) -> list[Row]:
    files = _make(top, size)
    rows: list[Row] = []
    for name, few_files in (("full", sys.maxsize), ("journal", FEW_FILES)):
        side = Side(top, name, few_files=few_files)
        rows.append({"name": f"first@{size} {name}", "unit": "ms", "value": timed(side.snapshot)})
        side.snapshot()
        for count in CHANGES:
            change = _changer(files, count)
            row = compare(
                f"snapshot@{size}/{count} {name}",
                side.snapshot,
                lambda: _git(top, "commit"),
                before=change,
                peer="git add -A && git commit",
                pairs=pairs,
            )
            side.snapshot()
            if side.tree != _git(top, "rev-parse", "HEAD^{tree}"):
                raise SystemExit(f"not git's tree: {row['name']}")
            rows.append(row)
        change()
        side.snapshot()
        brought_up = timed(side.settle)
        rows.append({"name": f"index@{size}/100 {name}", "unit": "ms", "value": brought_up})
        side.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*rows, {"name": f"memory@{size}", "unit": "MB at most", "value": peak}]


def _make(top: Path, size: int) -> list[Path]:
    files = []
    for number in range(size):
        folder = number // _IN_A_FOLDER
        path = top / f"d{folder // 20:03}" / f"e{folder % 20:02}" / f"file{number % _IN_A_FOLDER}"
        if number % _IN_A_FOLDER == 0:
            path.parent.mkdir(parents=True)
        path.write_text(f"{number}\n" * 20)
        files.append(path)
    _git(top, "init")
    _git(top, "commit")
    return files


def _changer(files: Sequence[Path], count: int) -> Callable[[], None]:
    """Changes the same files each time, to a text that was never there."""
    chosen = random.Random(count).sample(list(files), count)

    def change() -> None:
        for path in chosen:
            path.write_text(f"{next(_text)}\n" * 20)

    return change


def _git(top: Path, what: str, *args: str) -> str:
    shell = {"commit": "git add -A && git commit -qm work", "init": "git init -q"}
    argv = ["sh", "-c", shell[what]] if what in shell else ["git", what, *args]
    return subprocess.run(argv, cwd=top, check=True, capture_output=True, text=True).stdout.strip()


def _environment() -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "gc.auto",
        "GIT_CONFIG_VALUE_0": "0",
        "GIT_AUTHOR_NAME": _WHO.name,
        "GIT_AUTHOR_EMAIL": _WHO.email,
        "GIT_COMMITTER_NAME": _WHO.name,
        "GIT_COMMITTER_EMAIL": _WHO.email,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(json.dumps(_measure_size(Path(made), int(sys.argv[1]), int(sys.argv[2]))))
