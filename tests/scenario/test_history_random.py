"""Random histories: whatever was in a work tree can be had again, and the last step taken back."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.doors import Doors
from git_fabro.git.encoding import object_name
from git_fabro.jobs.history import fork, plan, rewind, undo
from tests.conftest import GitRepo
from tests.scenario.test_history_killed import Scene

SEQUENCES, SEQUENCES_IN_A_LONG_RUN = 40, 300
_STEPS = 5
_NAMES = ["plan.txt", "out/x", "out/new", "mine.txt", "base/deep/er", "w.fabro", "x.log"]


class Player(Scene):
    """A scene to which random things are done; it remembers every content it ever saw."""

    def __init__(self, repo: GitRepo, chance: random.Random) -> None:
        super().__init__(repo)
        self.chance = chance
        self.seen: set[Oid] = set()
        self.number = 0

    def state(self) -> tuple[str, dict[str, str]]:
        return self.refs(), self.files()

    def contents(self) -> set[Oid]:
        """What is in the work tree and not ignored: a step that is done must never lose it."""
        listed = GitRepo(self.top).git("ls-files", "-co", "--exclude-standard", "-z")
        paths = [self.top / name for name in filter(None, set(listed.split("\0")))]
        return {object_name("blob", path.read_bytes(), "sha1") for path in paths if path.is_file()}

    def edit(self) -> None:
        path = self.top / self.chance.choice(_NAMES)
        self.number += 1
        what = self.chance.choice(["write", "write", "remove", "stage"])
        if what == "write" and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"by hand {self.number}\n")
        elif what == "remove" and path.is_file():
            path.unlink()
        elif what == "stage":
            GitRepo(self.top).git("add", "-A")

    def rewind(self) -> bool:
        doors = Doors.open(self.repo.path)
        ordinal = self.chance.randint(1, len(self.checkpoints(self.run)))
        target = self.target(doors, ordinal)
        place = self.place(doors, self.directory)
        contents = self.contents()
        rewind.rewind(place, plan.plan(place, target))
        self.seen |= contents
        return True

    def fork(self) -> None:
        doors = Doors.open(self.repo.path)
        target = self.target(doors)
        fork.fork(self.place(doors, self.directory), self.home, target, fork.Changes())

    def back(self) -> bool:
        return self._walk(undo.undo)

    def forth(self) -> bool:
        return self._walk(undo.redo)

    def _walk(self, step: object) -> bool:
        assert callable(step)
        contents = self.contents()
        try:
            step(Doors.open(self.repo.path), self.home, dict(os.environ))
        except undo.NothingError:
            # Nothing was overwritten, and so nothing was kept: the next edit may do that.
            return False
        self.seen |= contents
        return True


def check_last_step(player: Player, what: str) -> None:
    """Does one step; taking it back gives refs, index and files exactly, and so does going on."""
    before = player.state()
    steps = {"rewind": player.rewind, "undo": player.back, "redo": player.forth}
    if not steps[what]():
        assert player.state() == before
        return
    after = player.state()

    assert player.forth() if what == "undo" else player.back()
    assert player.state() == before
    assert player.back() if what == "undo" else player.forth()
    assert player.state() == after


def test_random_histories_lose_nothing(
    repo: GitRepo, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    long = request.config.getoption("--long")
    chance = random.Random(20261201)
    player = Player(repo, chance)
    sequences = SEQUENCES_IN_A_LONG_RUN if long else SEQUENCES
    steps = 0

    for _ in range(sequences):
        for _ in range(_STEPS):
            what = chance.choice(["edit", "edit", "edit", "rewind", "undo", "redo", "fork"])
            steps += 1
            if what == "edit":
                player.edit()
            elif what == "fork":
                before = player.files()
                player.fork()
                assert player.files() == before
            else:
                check_last_step(player, what)
        player.check_links()
    repo.git("gc", "-q", "--prune=now")
    asked = "".join(f"{oid}\n" for oid in player.seen).encode()
    answers = repo.git("cat-file", "--batch-check", stdin=asked)

    lost = answers.count(" missing")
    print(f"sequences {sequences}, steps {steps}, contents {len(player.seen)}, lost {lost}")
    assert lost == 0
    assert len(player.seen) > sequences / 2
