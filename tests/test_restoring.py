"""A restore that died between two files is completed; what a person changed since then stays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_fabro import homes, operations, reading, restoring
from git_fabro.doors import Doors
from git_fabro.errors import ConflictError
from git_fabro.git import worktree
from git_fabro.restoring import Restore
from git_fabro.rundir import RunDirectory
from tests.conftest import GitRepo
from tests.scenario.test_places import fabro

BUILDS = """
digraph Builds {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    one [script="echo one > a.txt; echo one > b.txt; echo one > c.txt; mkdir d; echo one > d/e"]
    two [script="echo two, and longer > a.txt; echo two > b.txt; echo two > c.txt; echo > new.txt"]
    bad [script="exit 3"]
    start -> one -> two -> bad
    bad -> exit [condition="outcome=success"]
}
"""


@dataclass(frozen=True)
class Torn:
    """A work tree whose refs were rewound to @1 while its files are those of @2."""

    doors: Doors
    top: Path
    restore: Restore

    def die(self) -> None:
        """Leaves the plan where a process that was killed leaves it."""
        view = worktree.at_work_tree(self.doors.repository, self.top)
        with (
            pytest.raises(KeyboardInterrupt),
            restoring.begun(self.doors.repository, view, self.restore),
        ):
            raise KeyboardInterrupt

    @property
    def plans(self) -> list[Path]:
        return list((self.doors.repository.common_dir / "fabro/restore").iterdir())


@pytest.fixture
def torn(repo: GitRepo) -> Torn:
    repo.commit({"w.fabro": BUILDS})
    fabro(repo.path, "run", "-q", "w.fabro", status=1)
    doors = Doors.open(repo.path)
    (run,) = reading.runs(doors)
    home = homes.home(doors.repository, repo.path, dict(os.environ))
    top = RunDirectory.of(home, run).worktree
    fabro(repo.path, "rewind", run, "@1")
    entry = next(operations.entries(doors.objects, doors.refs))
    change = entry.operation.work_tree
    assert change is not None
    assert change.before is not None
    assert change.after is not None
    GitRepo(top).git("checkout", "-q", "--detach", change.before)
    (top / "mine.txt").write_text("mine\n")
    restore = Restore(
        operation=entry.operation.id, run=run, path=top, before=change.before, after=change.after
    )
    return Torn(doors, top, restore)


def files(top: Path) -> dict[str, str]:
    found = sorted(path for path in top.rglob("*") if path.is_file() and path.name != ".git")
    return {str(path.relative_to(top)): path.read_text() for path in found}


def test_files_old_half_written_and_gone_become_those_of_the_checkpoint(torn: Torn) -> None:
    (torn.top / "a.txt").write_text("on")  # git died over it
    (torn.top / "b.txt").unlink()  # git removes a file before it writes it
    torn.die()

    (done,) = restoring.complete(torn.doors)

    assert restoring.told(done) == [
        f"completed what was begun by: rewind {torn.restore.run} @1",
    ]
    whole = {"a.txt": "one\n", "b.txt": "one\n", "c.txt": "one\n", "d/e": "one\n"}
    assert files(torn.top) == {**whole, "mine.txt": "mine\n", "w.fabro": BUILDS}
    git = GitRepo(torn.top)
    assert git.git("symbolic-ref", "HEAD").strip() == f"refs/heads/fabro/run/{torn.restore.run}"
    assert git.git("status", "--porcelain") == "?? mine.txt"
    assert torn.plans == []
    assert restoring.complete(torn.doors) == ()


def test_what_a_person_changed_since_stays_and_is_named(torn: Torn) -> None:
    (torn.top / "b.txt").write_text("mine since\n")
    torn.die()

    (done,) = restoring.complete(torn.doors)

    assert restoring.told(done)[1:] == ["kept, as it was changed since: b.txt"]
    assert (torn.top / "b.txt").read_text() == "mine since\n"
    assert GitRepo(torn.top).git("status", "--porcelain") == " M b.txt\n?? mine.txt"


def test_a_plan_that_is_in_no_operation_changes_nothing(torn: Torn) -> None:
    object.__setattr__(torn.restore, "operation", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    torn.die()
    before = files(torn.top)

    assert restoring.complete(torn.doors) == ()
    assert files(torn.top) == before
    assert torn.plans == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"operation": "x", "run_id": "../x"}'])
def test_a_plan_that_is_torn_itself_was_written_before_all_else(torn: Torn, text: str) -> None:
    torn.die()
    torn.plans[0].write_text(text)
    before = files(torn.top)

    assert restoring.complete(torn.doors) == ()
    assert files(torn.top) == before


def test_while_one_process_restores_another_waits_for_its_end(torn: Torn) -> None:
    view = worktree.at_work_tree(torn.doors.repository, torn.top)
    taken = pytest.raises(ConflictError, match="another process is restoring this work tree")
    with restoring.begun(torn.doors.repository, view, torn.restore), taken:
        restoring.complete(torn.doors)
    assert torn.plans == []


@pytest.mark.parametrize("command", ["rewind", "undo", "redo", "fork", "resume"])
def test_each_command_that_moves_a_run_completes_it_first_and_says_so(
    torn: Torn, repo: GitRepo, command: str
) -> None:
    torn.die()
    run = torn.restore.run
    words = {"rewind": [run, "@1"], "fork": [run], "resume": ["-q", run]}.get(command, [])

    said = fabro(repo.path, command, *words, status=command in ("redo", "resume")).stderr

    assert f"completed what was begun by: rewind {run} @1" in said
    assert torn.plans == []
