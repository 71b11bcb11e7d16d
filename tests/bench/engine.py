"""What a node costs: 200 of ``true`` in a repository of 1,000 files, beside git doing as much."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.pairs import Row, compare, timed

NODES, FILES = 200, 1000
LOOP = (
    f"i=0; while [ $i -lt {NODES} ]; do"
    " true; git add -A; git commit -qm $i --allow-empty; i=$((i+1)); done"
)
_PROGRAM = [sys.executable, "-m", "git_fabro"]
_STATEMENTS = (
    "node [shape=parallelogram, script=true]; start [shape=Mdiamond]; exit [shape=Msquare]"
)


def measure(pairs: int) -> list[Row]:
    """Milliseconds a node, and the time until the first node has begun."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environment = _environment(home)
        ours, theirs = (_repository(home / name, environment) for name in ("ours", "theirs"))
        rows = [
            compare(
                f"engine@{FILES}/{NODES}",
                lambda: _run([*_PROGRAM, "run", "-q", "w.fabro"], ours, environment),
                lambda: _run(["sh", "-c", LOOP], theirs, environment),
                peer="a shell loop of true; git add -A; git commit",
                pairs=pairs,
                parts=NODES,
            )
        ]
        for peer in ([sys.executable, "-c", "pass"], ["git", "status"]):
            rows.append(_first_node(ours, environment, peer, pairs))
    return rows


def _first_node(repository: Path, environment: dict[str, str], peer: list[str], pairs: int) -> Row:
    """From the start of the program until a node's process runs; a run of one node."""
    mark = repository.parent / "mark"
    workflow = f'digraph {{ {_STATEMENTS}; n [script="touch {mark}"]; start -> n -> exit }}'
    (repository.parent / "first.fabro").write_text(workflow)

    measured: list[tuple[float, float]] = []
    for _ in range(max(pairs, 1)):
        began = time.time()
        argv = [*_PROGRAM, "run", "-q", str(repository.parent / "first.fabro")]
        _run(argv, repository, environment)
        ours = (mark.stat().st_mtime - began) * 1000
        measured.append((ours, timed(lambda: _run(peer, repository, environment))))
    middle = sorted(measured, key=lambda pair: pair[0] / pair[1])
    ratios = [one / other for one, other in middle]
    return {
        "name": "first node",
        "ratio": ratios[len(ratios) // 2],
        "ratio_min": ratios[0],
        "ratio_max": ratios[-1],
        "ours_ms": middle[len(middle) // 2][0],
        "peer_ms": middle[len(middle) // 2][1],
        "peer": " ".join(["python" if one == sys.executable else one for one in peer]),
        "pairs": len(measured),
    }


def _environment(home: Path) -> dict[str, str]:
    kept = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    return kept | {
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A. Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.com",
        "GIT_COMMITTER_NAME": "A. Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.com",
    }


def _repository(path: Path, environment: dict[str, str]) -> Path:
    path.mkdir()
    for number in range(FILES):
        file = path / f"d{number % 20}" / f"f{number}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"file {number}\n")
    names = [f"n{number}" for number in range(NODES)]
    chain = " -> ".join(["start", *names, "exit"])
    (path / "w.fabro").write_text(f"digraph {{ {_STATEMENTS}; {'; '.join(names)}; {chain} }}")
    for args in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "base"]):
        _run(["git", *args], path, environment)
    return path


def _run(argv: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{argv}: {done.stderr}")
