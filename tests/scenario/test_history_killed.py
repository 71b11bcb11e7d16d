"""A rewind, an undo, a fork that dies after any single write: before or after, never between."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

import pytest

from git_fabro import homes, reading, restoring
from git_fabro.checkpoint.model import Oid
from git_fabro.doors import Doors
from git_fabro.git.encoding import object_name
from git_fabro.jobs.history import fork, plan, rewind, undo
from git_fabro.jobs.history.plan import Place, Target
from git_fabro.rundir import RunDirectory
from tests.conftest import GitRepo
from tests.fakes import Fuse, dying_directory, dying_doors
from tests.scenario.test_places import fabro

FAILS = """
digraph Fails {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan  [script="echo planned > plan.txt; echo noise > cache.log"]
    build [script="mkdir -p out; echo built > out/x; echo more >> plan.txt"]
    check [script="exit 3"]
    start -> plan -> build -> check
    check -> exit [condition="outcome=success"]
}
"""


class Scene:
    """A run that failed, with changes of a person in its work tree."""

    def __init__(self, repo: GitRepo) -> None:
        self.repo = repo
        repo.commit({"w.fabro": FAILS, ".gitignore": "*.log\n"})
        assert fabro(repo.path, "run", "-q", "w.fabro", status=1)
        doors = Doors.open(repo.path)
        (self.run,) = reading.runs(doors)
        self.home = homes.home(doors.repository, repo.path, dict(os.environ))
        self.top = self.directory.worktree
        (self.top / "plan.txt").write_text("staged by hand\n")
        GitRepo(self.top).git("add", "plan.txt")
        (self.top / "plan.txt").write_text("and not staged\n")
        (self.top / "mine.txt").write_text("nobody else knows this\n")

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory.of(self.home, self.run)

    def place(self, doors: Doors, directory: RunDirectory) -> Place:
        return Place(doors=doors, run=self.run, directory=directory, environment=dict(os.environ))

    def target(self, doors: Doors, ordinal: int = 1) -> Target:
        run_commit, meta_commit = self.checkpoints(self.run)[ordinal - 1]
        del doors
        return Target(ordinal=ordinal, run_commit=run_commit, meta_commit=meta_commit)

    def checkpoints(self, run: str) -> list[tuple[Oid, Oid]]:
        """Run commit and meta commit of each checkpoint, as git tells them."""
        form = "%H %(trailers:key=Fabro-Checkpoint,valueonly,separator=)"
        listed = self.repo.git("log", "--reverse", f"--format={form}", f"main..fabro/run/{run}")
        pairs = [row.split() for row in listed.splitlines()]
        chain = set(self.repo.git("rev-list", "--first-parent", f"fabro/meta/{run}").split())
        assert {meta for _, meta in pairs} <= chain
        return [(Oid(commit), Oid(meta)) for commit, meta in pairs]

    def refs(self) -> str:
        return self.repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")

    def files(self) -> dict[str, str]:
        found = {
            str(path.relative_to(self.top)): path.read_text()
            for path in sorted(self.top.rglob("*"))
            if path.is_file() and path.name != ".git"
        }
        return found | {"status": GitRepo(self.top).git("status", "--porcelain=v2")}

    def killed(self, work: Callable[[Place], object], writes: int | None) -> bool:
        """Whether the work was killed after so many writes."""
        child = os.fork()
        if child == 0:
            self._in_child(work, Fuse(writes, self.repo.path.parent / "fuse"))
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it failed by itself"
        return os.WIFSIGNALED(status)

    def _in_child(self, work: Callable[[Place], object], fuse: Fuse) -> None:
        status = 1
        try:
            sys.stdout = sys.stderr = (self.repo.path.parent / "child.log").open("a")
            doors = dying_doors(self.repo.path, fuse)
            work(self.place(doors, dying_directory(self.directory.path, fuse)))
            status = 0
        except BaseException:  # noqa: BLE001 - the process ends here, whatever it was
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def check_links(self) -> None:
        """Both refs are of one checkpoint, and git finds every object."""
        doors = Doors.open(self.repo.path)
        assert self.checkpoints(self.run)
        assert reading.course_of(doors, reading.tips_of(doors, self.run)).verdict == "on"
        self.repo.fsck()

    def completed(self) -> int:
        """How many restores were found begun, as the next command completes them."""
        return len(restoring.complete(Doors.open(self.repo.path)))

    def undo(self) -> None:
        undo.undo(Doors.open(self.repo.path), self.home, dict(os.environ))


def test_a_rewind_killed_after_any_write_is_done_or_not_and_undo_is_exact(repo: GitRepo) -> None:
    scene = Scene(repo)
    before = (scene.refs(), scene.files())
    doors = Doors.open(repo.path)
    place = scene.place(doors, scene.directory)
    rewind.rewind(place, plan.plan(place, scene.target(doors)))
    after = (scene.refs(), scene.files())
    scene.undo()
    assert (scene.refs(), scene.files()) == before
    kills = completed = 0

    def work(place: Place) -> None:
        rewind.rewind(place, plan.plan(place, scene.target(place.doors)))

    while scene.killed(work, kills + 1):
        kills += 1
        scene.check_links()
        completed += scene.completed()
        assert (scene.refs(), scene.files()) in (before, after)
        if scene.refs() != before[0]:
            scene.undo()
        assert (scene.refs(), scene.files()) == before

    print(f"writes {kills}, kills {kills}, completed {completed}, lost 0")
    assert kills > 5
    assert completed
    assert (scene.top / "plan.txt").read_text() == "planned\n"


def test_an_undo_killed_after_any_write_is_done_or_not(repo: GitRepo) -> None:
    scene = Scene(repo)
    before = (scene.refs(), scene.files())
    doors = Doors.open(repo.path)
    place = scene.place(doors, scene.directory)
    rewind.rewind(place, plan.plan(place, scene.target(doors)))
    after = (scene.refs(), scene.files())
    kills = completed = 0

    def work(place: Place) -> None:
        undo.undo(place.doors, scene.home, place.environment)

    while scene.killed(work, kills + 1):
        kills += 1
        scene.check_links()
        completed += scene.completed()
        assert (scene.refs(), scene.files()) in (before, after)
        if scene.refs() != after[0]:
            # What it had begun is undone, and so the rewind stands again.
            undo.redo(Doors.open(repo.path), scene.home, dict(os.environ))
        assert (scene.refs(), scene.files()) == after

    print(f"writes {kills}, kills {kills}, completed {completed}, lost 0")
    assert kills > 3
    assert completed
    assert scene.refs() == before[0]
    # One that died before its files were back left them for the next; nothing of them is lost.
    kept = object_name("blob", b"and not staged\n", "sha1")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("cat-file", "-t", kept) == "blob"


@pytest.mark.parametrize("resumes", [False, True])
def test_a_fork_killed_after_any_write_is_there_or_not(repo: GitRepo, resumes: bool) -> None:
    scene = Scene(repo)
    before, kills, forks = scene.refs(), 0, 0

    def work(place: Place) -> None:
        fork.fork(place, scene.home, scene.target(place.doors), fork.Changes())

    while scene.killed(work, kills + 1):
        kills += 1
        doors = Doors.open(repo.path)
        made = [run for run in reading.runs(doors) if run != scene.run]
        for run in made[forks:]:
            forks += 1
            assert len(scene.checkpoints(run)) == 1
            if resumes:
                fabro(repo.path, "resume", "-q", run, status=1)

    print(f"writes {kills}, kills {kills}, forks {forks}")
    assert kills > 3
    assert before in scene.refs() or all(line in scene.refs() for line in before.splitlines())
    repo.fsck()
