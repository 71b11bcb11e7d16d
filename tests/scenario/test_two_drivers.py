"""Many processes try to resume one run: one advances it, the others are told and change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import GitRepo

_PROGRAM = [sys.executable, "-m", "git_fabro"]
PROCESSES, ROUNDS = 8, 20

#: Each round one node; it waits until all the others have had their answer.
WORKFLOW = """
digraph Rounds {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    step [script="echo $FABRO_VISIT >> steps.txt
                  while ! test -e $GATE/$FABRO_VISIT; do sleep 0.02; done"]
    ask  [shape=hexagon, label="Again?"]
    start -> step -> ask
    ask -> step [label="[A] Again"]
    ask -> exit [label="[E] End"]
}
"""


def program(repo: GitRepo, gate: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_PROGRAM, *args],
        cwd=repo.path,
        env={**os.environ, "GATE": str(gate)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refs(repo: GitRepo) -> str:
    return repo.git("for-each-ref", "--format=%(refname) %(objectname)")


@pytest.mark.timeout(900)
def test_of_eight_processes_one_advances_and_seven_are_told(repo: GitRepo, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "1").touch()
    repo.commit({"w.fabro": WORKFLOW})
    first = program(repo, gate, "run", "w.fabro")
    assert (first.communicate()[0] is not None, first.returncode) == (True, 3)
    run = repo.git("for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/fabro/run")

    for number in range(2, ROUNDS + 2):
        answered = program(repo, gate, "answer", run, f"ask@{number - 1}", "again")
        _, said = answered.communicate()
        assert answered.returncode == 0, said
        before = repo.git("rev-list", "--count", f"fabro/run/{run}")

        racing = [program(repo, gate, "resume", run) for _ in range(PROCESSES)]
        losers = _wait_for_all_but_one(racing)
        seen = refs(repo)
        (gate / str(number)).touch()
        (winner,) = [one for one in racing if one not in losers]
        winner.communicate()

        assert winner.returncode == 3
        for loser in losers:
            _, said = loser.communicate()
            assert loser.returncode == 128
            assert said.startswith(("fatal: run is being driven", "fatal: run was taken")), said
            assert f"hint: git fabro attach {run}" in said or "hint: git fabro resume" in said
        assert refs(repo) != seen
        after = repo.git("rev-list", "--count", f"fabro/run/{run}")
        assert int(after) == int(before) + 2
        steps = repo.git("show", f"fabro/run/{run}:steps.txt").split()
        assert steps == [str(step) for step in range(1, number + 1)]

    repo.fsck()
    print(f"rounds {ROUNDS}, processes {PROCESSES}, advanced by exactly one each time")


def _wait_for_all_but_one(
    racing: list[subprocess.Popen[str]],
) -> list[subprocess.Popen[str]]:
    """The processes that ended, once only one still runs: the node waits for the gate's file."""
    while len(ended := [one for one in racing if one.poll() is not None]) < len(racing) - 1:
        time.sleep(0.01)
    return ended
