"""The driver dies after any single write of a run; resume brings the run to the same end."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from git_fabro import homes, reading
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import Doors
from git_fabro.jobs.run import begin, resume
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.records import NodeFinished
from git_fabro.workflow.state import ENDED, SUCCESS, RunState
from tests.conftest import GitRepo
from tests.fakes import Fuse, dying_directory, dying_doors

#: Loops, a retry, an artifact over the limit; each node says that it ran, outside the work tree.
LINE = """
digraph Line {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    try  [max_retries=1, script="test $FABRO_ATTEMPT = 2 && echo tried > tried.txt && RAN"]
    big  [script="yes 0123456789 | head -c 120000; echo big > big.txt; RAN"]
    test [script="test -e fixed.txt && RAN"]
    ask  [shape=diamond]
    fix  [script="echo fixed > fixed.txt; RAN"]
    start -> try -> big -> test -> ask
    ask -> exit [condition="outcome=success"]
    ask -> fix
    fix -> test
}
"""

#: Three branches, two nodes in one of them, all merged.
FAN = """
digraph Fan {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    split [shape=component, max_parallel=MAX]; join [shape=tripleoctagon, merge=all]
    a  [script="echo a > a.txt; RAN"]
    a2 [script="echo a2 >> a.txt; RAN"]
    b  [script="echo b > b.txt; RAN"]
    c  [script="mkdir c; echo c > c/c.txt; RAN"]
    end [script="cat a.txt b.txt c/c.txt > all.txt; RAN"]
    start -> split
    split -> a -> a2 -> join
    split -> b -> join
    split -> c -> join
    join -> end -> exit
}
"""
RAN = "echo $FABRO_NODE_ID@$FABRO_VISIT >> $RAN_FILE"


@dataclass(frozen=True, slots=True)
class World:
    """A repository with a workflow, and the file in which nodes say that they ran."""

    repo: GitRepo
    ran: Path

    def executions(self) -> list[str]:
        return self.ran.read_text().split() if self.ran.exists() else []

    def doors(self) -> Doors:
        return Doors.open(self.repo.path)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "RAN_FILE": str(self.ran)}

    def only_run(self) -> RunId | None:
        runs = reading.runs(self.doors())
        return runs[0] if runs else None

    def directory(self, run: RunId) -> RunDirectory:
        home = homes.home(self.doors().repository, self.repo.path, dict(os.environ))
        return RunDirectory.of(home, run)


@pytest.fixture
def world(repo: GitRepo, tmp_path: Path) -> Callable[[str, str], World]:
    def make(name: str, source: str) -> World:
        path = tmp_path / name
        path.mkdir()
        made = GitRepo(path)
        made.git("init", "-q", "-b", "main")
        made.commit({"w.fabro": source.replace("RAN", RAN), "README": "hello\n"})
        return World(made, tmp_path / f"{name}.ran")

    return make


def run_until_killed(world: World, writes: int | None, fuse_file: Path) -> bool:
    """Runs the workflow in a process of its own that dies after so many writes; whether it did."""
    child = os.fork()
    if child == 0:
        _in_child(world, Fuse(writes, fuse_file))
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the driver failed"
    return os.WIFSIGNALED(status)


def _in_child(world: World, fuse: Fuse) -> None:
    status = 1
    try:
        sys.stdout = sys.stderr = (world.ran.parent / "child.log").open("a")
        os.chdir(world.repo.path)
        request = begin.Request(
            workflow="w.fabro", folder=world.repo.path, environment=world.environment()
        )
        plan = begin.prepare(request, dying_doors(world.repo.path, fuse))
        plan = replace(plan, directory=dying_directory(plan.directory.path, fuse))
        begin.run(plan, on_record=lambda record: None, began=lambda run: None)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def view(world: World, run: RunId) -> reading.View:
    return reading.view(world.doors(), run, world.directory(run))


def finished_visits(world: World, run: RunId) -> list[str]:
    """The command visits whose end is on record: in the chain, or in a journal line that counts."""
    doors, seen = world.doors(), view(world, run)
    records = [*reading.records(doors, seen.course.meta), *(e.record for e in seen.counted)]
    return [
        str(record.position)
        for record in records
        if isinstance(record.event, NodeFinished) and record.event.handler == "command"
    ]


def go_on(world: World, run: RunId) -> RunState:
    request = resume.Request(run=run, folder=world.repo.path, environment=world.environment())
    return resume.resume(
        request, world.doors(), on_record=lambda record: None, began=lambda run: None
    )


def story(world: World, run: RunId) -> list[str]:
    """The timeline as plain git tells it: subjects without ids, ordinals, trees."""
    form = "%s|%(trailers:key=Fabro-Ordinal,valueonly,separator=)|%T"
    text = world.repo.git("log", "--first-parent", f"--format={form}", f"fabro/run/{run}", "^main")
    return [line.partition("): ")[2] for line in text.splitlines()]


def check_links(world: World, run: RunId) -> None:
    """Every run commit names a meta commit of the chain whose state is at that node."""
    chain = world.repo.git("rev-list", "--first-parent", f"fabro/meta/{run}").split()
    named = world.repo.git(
        "log",
        "--first-parent",
        "--format=%(trailers:key=Fabro-Checkpoint,valueonly,separator=)",
        f"fabro/run/{run}",
        "^main",
    ).split()
    assert [name for name in named if name not in chain] == []
    places = [chain.index(name) for name in named]
    assert places == sorted(places)


def check_fold(world: World, run: RunId) -> None:
    """The fold of all records equals the stored state, byte for byte, at every meta commit."""
    doors = world.doors()
    tip = reading.tips_of(doors, run).meta_tip
    assert tip is not None
    state = RunState()
    for meta in reading.chain(doors, tip):
        state = engine.replay(reading.records_at(doors, meta), state)
        stored = doors.objects.blob_at(meta, layout.CHECKPOINT_JSON)
        assert codec.document(codec.state_to_json(state)) == stored


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(LINE, id="line"),
        pytest.param(FAN.replace("MAX", "1"), id="fan-one-at-a-time"),
        pytest.param(FAN.replace("MAX", "3"), id="fan-at-once"),
    ],
)
def test_a_run_killed_after_any_write_resumes_to_the_same_end(
    world: Callable[[str, str], World],
    source: str,
    tmp_path: Path,
) -> None:
    clean = world("clean", source)
    assert not run_until_killed(clean, None, tmp_path / "writes")
    run = clean.only_run()
    assert run is not None
    wanted = story(clean, run)
    writes = int((tmp_path / "writes").read_text())
    killed = again = 0

    for last in range(1, writes + 1):
        broken = world(f"killed-{last}", source)
        if not run_until_killed(broken, last, tmp_path / "unused"):
            continue
        killed += 1
        run = broken.only_run()
        if run is None:
            assert broken.executions() == []
            continue
        finished, before = finished_visits(broken, run), broken.executions()
        state = view(broken, run).state
        if state.status not in ENDED:
            state = go_on(broken, run)

        assert state.status == SUCCESS
        assert story(broken, run) == wanted, f"killed after write {last}"
        repeated = broken.executions()[len(before) :]
        assert [visit for visit in repeated if visit in finished] == [], f"write {last}"
        again += len(set(repeated) & set(before))
        check_links(broken, run)
        check_fold(broken, run)
        broken.repo.fsck()

    assert killed > writes * 0.8
    print(f"writes {writes}, kills {killed}, nodes run again {again}, finished nodes lost 0")
