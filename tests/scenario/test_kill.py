"""The real program, killed at random instants and resumed until its run ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_fabro import reading
from git_fabro.checkpoint.model import RunId
from git_fabro.workflow.state import ENDED
from tests.conftest import GitRepo
from tests.scenario.test_crash import (
    RAN,
    World,
    check_fold,
    check_links,
    finished_visits,
    story,
    view,
)

#: A loop, a retry, a fan-out, a value over the limit: all that a run can be in the middle of.
ALL = """
digraph All {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    try   [max_retries=1, script="test $FABRO_ATTEMPT = 2 && echo tried > tried.txt && RAN"]
    big   [script="yes 0123456789 | head -c 120000; echo big > big.txt; RAN"]
    split [shape=component]; join [shape=tripleoctagon, merge=all]
    a  [script="echo a > a.txt; RAN"]; a2 [script="echo a2 >> a.txt; RAN"]
    b  [script="mkdir -p b; echo b > b/b.txt; RAN"]
    test  [script="RAN; test -e fixed.txt"]
    fix   [script="echo fixed > fixed.txt; RAN"]
    start -> try -> big -> split
    split -> a -> a2 -> join
    split -> b -> join
    join -> test
    test -> exit [condition="outcome=success"]
    test -> fix
    fix -> test
}
"""
KILLS, KILLS_IN_A_LONG_RUN = 200, 1000
_PROGRAM = [sys.executable, "-m", "git_fabro"]


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[World]:
    def make() -> Iterator[World]:
        number = 0
        while True:
            number += 1
            path = tmp_path / f"world-{number}"
            path.mkdir()
            made = GitRepo(path)
            made.git("init", "-q", "-b", "main")
            made.commit({"w.fabro": ALL.replace("RAN", RAN), "README": "hello\n"})
            yield World(made, tmp_path / f"world-{number}.ran")

    return make()


def start(world: World, *args: str) -> subprocess.Popen[bytes]:
    with (world.ran.parent / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [*_PROGRAM, *args],
            cwd=world.repo.path,
            env={**os.environ, "RAN_FILE": str(world.ran)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def time_of_a_clean_run(world: World) -> float:
    began = time.monotonic()
    assert start(world, "run", "w.fabro").wait() == 0
    return time.monotonic() - began


def killed_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process was killed; False if it had ended by itself."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


@pytest.mark.timeout(1500)
def test_a_run_killed_at_random_instants_is_resumed_until_it_ends(
    worlds: Iterator[World], pytestconfig: pytest.Config
) -> None:
    chance = random.Random(20261130)
    goal = KILLS_IN_A_LONG_RUN if pytestconfig.getoption("--long") else KILLS
    clean = next(worlds)
    length_s = time_of_a_clean_run(clean)
    (run,) = reading.runs(clean.doors())
    wanted = story(clean, run)
    kills = resumes = again = runs = 0

    while kills < goal:
        world = next(worlds)
        runs += 1
        settled: dict[str, int] = {}
        process = start(world, "run", "w.fabro")
        while killed_after(process, chance.uniform(0.05, length_s)):
            kills += 1
            found = world.only_run()
            if found is None:
                assert world.executions() == []
                process = start(world, "run", "w.fabro")
                continue
            if view(world, found).state.status in ENDED:
                break
            again += note_finished(world, found, settled)
            process = start(world, "resume", found)
            resumes += 1
        found = world.only_run()
        assert found is not None
        ran = world.executions()
        assert {visit: ran.count(visit) for visit in settled} == settled
        check_end(world, found, wanted)

    print(f"runs {runs}, kills {kills}, resumes {resumes}, nodes run again {again}, lost 0")


def note_finished(world: World, run: RunId, settled: dict[str, int]) -> int:
    """Notes how often each finished visit has run: it may never run again. Gives the other ones."""
    finished, ran = finished_visits(world, run), world.executions()
    assert set(finished) <= set(ran), f"{run}: recorded, and never ran"
    for visit in finished:
        settled.setdefault(visit, ran.count(visit))
    return len(set(ran) - set(finished))


def check_end(world: World, run: RunId, wanted: list[str]) -> None:
    assert story(world, run) == wanted
    check_links(world, run)
    check_fold(world, run)
    world.repo.fsck()
