"""Both engines against git itself: random work trees, the same tree after every step."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.snapshot.choose import Engine, rules_of
from git_fabro.git.snapshot.fast import FastEngine
from git_fabro.git.snapshot.reference import ReferenceEngine, seed_index
from git_fabro.git.snapshot.rounds import FEW_FILES

_NAMES = [b"a", b"b", b"A", b"x.o", b"d", b"\xff\xfe", b"n\nl t", "é".encode(), "e\u0301".encode()]
_PATTERNS = [
    b"*.o",
    b"/a",
    b"d/",
    b"!x.o",
    b"b",
    b"!b",
    b"a/*",
    b"!a/b",
    b"**/A",
    b"[ab]",
    b"#",
    b"",
]
_ATTRIBUTES = [b"* -text", b"*.o binary", b"* text=auto", b"a filter=none", b"*.o ident", b"# text"]
_SETTINGS = ["core.fileMode=false", "core.autocrlf=input", "fabro.any=thing"]

_paths = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3).map(b"/".join)
_folders = st.lists(st.sampled_from(_NAMES), max_size=2).map(lambda some: b"/".join([b".", *some]))
_contents = st.sampled_from([b"", b"x\n", b"y\n", b"x\r\n", b"$Id$\n", b"\0\xff"])
_lines = st.lists(st.sampled_from(_PATTERNS), max_size=3)
_usual = st.one_of(
    st.tuples(st.just("write"), _paths, _contents),
    st.tuples(st.just("write"), _paths, _contents),
    st.tuples(st.just("swap"), _paths, _contents),
    st.tuples(st.just("remove"), _paths),
    st.tuples(st.just("rename"), _paths, _paths),
    st.tuples(st.just("link"), _paths, st.sampled_from(_NAMES)),
    st.tuples(st.just("hardlink"), _paths, _paths),
    st.tuples(st.just("mode"), _paths, st.sampled_from([0o644, 0o755, 0o600])),
    st.tuples(st.just("folder"), _paths),
    st.tuples(st.just("pipe"), _paths),
    st.tuples(st.just("touch"), _paths),
    st.tuples(st.just("ignore"), _folders, _lines),
    st.tuples(st.just("exclude"), _lines),
    st.tuples(st.just("stage"), _paths),
    st.tuples(st.just("unstage"), _paths),
    st.tuples(st.just("settle")),
    st.tuples(st.just("reopen")),
)
# What only git records. Seldom: from then on it is the engine.
_odd = st.one_of(
    st.tuples(st.just("attributes"), _folders, st.sampled_from(_ATTRIBUTES)),
    st.tuples(st.just("repository"), _paths, st.booleans()),
    st.tuples(st.just("config"), st.sampled_from(_SETTINGS)),
)
_STEPS = 20
_REFUSALS = ("does not have a commit checked out", "can only add regular files")


def _sequences(step: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(step, max_size=4), min_size=_STEPS, max_size=_STEPS)


@dataclass
class Scene:
    """A work tree, an engine of each kind with an index of its own, and git's own index."""

    path: Path
    few_files: int = FEW_FILES
    tree: Oid = Oid("")
    engines: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.path.mkdir()
        self.git("init", "-q")
        self.write(b"a", b"x\n")
        self.write(b"d/b/x.o", b"y\n")
        self.git("add", "-A")
        # A commit leaves the trees of its folders in the index.
        self.git("commit", "-qm", "base")
        found = open_repository(self.path)
        for name in ("git", "fast", "reference"):
            seed_index(found, self.index(name))
        rules = rules_of(found)
        self.reference = ReferenceEngine(found, self.index("reference"), rules)
        self.open()

    def index(self, name: str) -> Path:
        return self.path / ".git" / f"{name}.index"

    def git(self, *args: str, index: str = "") -> str:
        variables = {"GIT_INDEX_FILE": str(self.index(index))} if index else {}
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        if done.returncode:
            raise GitError(done.stderr.decode(errors="replace"), argv=args)
        return os.fsdecode(done.stdout).strip()

    def reopen(self) -> None:
        """A new process: what the former one knew is in its cache."""
        self.settle()
        self.now.close()
        self.open()

    def open(self) -> None:
        found, index = open_repository(self.path), self.index("fast")
        rules = rules_of(found)
        behind = ReferenceEngine(found, index, rules)
        fast = FastEngine(
            found,
            open_objects(found),
            index,
            rules,
            set_index_to=behind.set_index_to,
            few_files=self.few_files,
        )
        self.now = Engine(self.path, "auto", fast, behind)

    def do(self, what: str, *args: Any) -> None:
        """One operation; those that make no sense on what is there do nothing."""
        with contextlib.suppress(OSError, GitError, shutil.Error):
            getattr(self, what)(*args)

    def at(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.path), path)

    def make_room(self, path: bytes) -> bytes:
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        return self.at(path)

    def write(self, path: bytes, content: bytes) -> None:
        where = self.make_room(path)
        if stat.S_ISFIFO(os.lstat(where).st_mode if os.path.lexists(where) else 0):
            # It would wait for somebody who reads.
            os.unlink(where)
        Path(os.fsdecode(where)).write_bytes(content)

    def swap(self, path: bytes, content: bytes) -> None:
        """Another content with the old times, as unpackers write it (traps: WT24)."""
        before = os.lstat(self.at(path))
        self.write(path, content)
        os.utime(self.at(path), ns=(before.st_atime_ns, before.st_mtime_ns))

    def remove(self, path: bytes) -> None:
        where = self.at(path)
        (shutil.rmtree if os.path.isdir(where) and not os.path.islink(where) else os.unlink)(where)

    def rename(self, path: bytes, to: bytes) -> None:
        os.rename(self.at(path), self.make_room(to))

    def link(self, path: bytes, to: bytes) -> None:
        os.symlink(to, self.make_room(path))

    def hardlink(self, path: bytes, to: bytes) -> None:
        os.link(self.at(path), self.make_room(to), follow_symlinks=False)

    def mode(self, path: bytes, mode: int) -> None:
        os.chmod(self.at(path), mode if os.path.isfile(self.at(path)) else 0o755)

    def folder(self, path: bytes) -> None:
        os.makedirs(self.at(path))

    def pipe(self, path: bytes) -> None:
        os.mkfifo(self.make_room(path))

    def touch(self, path: bytes) -> None:
        os.utime(self.at(path))

    def ignore(self, folder: bytes, lines: list[bytes]) -> None:
        self.write(folder + b"/.gitignore", b"\n".join(lines))

    def exclude(self, lines: list[bytes]) -> None:
        self.write(b".git/info/exclude", b"\n".join(lines))

    def attributes(self, folder: bytes, line: bytes) -> None:
        self.write(folder + b"/.gitattributes", line)

    def repository(self, path: bytes, with_commit: bool) -> None:
        os.makedirs(self.at(path), exist_ok=True)
        inside = os.fsdecode(self.at(path))
        self.git("init", "-q", inside)
        if with_commit:
            self.git("-C", inside, "commit", "-q", "--allow-empty", "-m", "inside")

    def config(self, setting: str) -> None:
        self.git("config", *setting.split("="))

    def stage(self, path: bytes) -> None:
        for index in ("git", "fast", "reference"):
            self.git("add", "-f", "--", f":(literal){os.fsdecode(path)}", index=index)

    def unstage(self, path: bytes) -> None:
        for index in ("git", "fast", "reference"):
            name = f":(literal){os.fsdecode(path)}"
            self.git("rm", "-rq", "--cached", "--ignore-unmatch", "--", name, index=index)

    def settle(self) -> None:
        """The index was brought up to the snapshot; git finds no difference in it."""
        self.check()
        assert self.git("write-tree", index="fast") == self.tree
        assert self.git("diff", "--name-only", index="fast") == "" or self.now.reason != "fast"

    def check(self) -> None:
        """The same tree three times: both engines and git itself."""
        taken, named = self.now.record(), self.reference.record()
        self.tree = taken.tree
        # As after a checkpoint: what other programs find in the index is what was recorded.
        self.now.settle(taken.tree)
        self.engines[self.now.reason.partition(":")[0]] += 1
        assert taken.tree == named.tree, (self.now.reason, self.difference(taken.tree, named.tree))
        gits = self.gits_tree(taken.tree)
        assert taken.tree == gits, (self.now.reason, self.difference(taken.tree, gits))
        assert "journal_missed" not in [one.code for one in taken.notices]

    def gits_tree(self, ours: str) -> str:
        # An index as old as this makes git read every file.
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.index("git"), (1, 1))
        try:
            self.git("add", "-A", index="git")
        except GitError as exc:
            # Git then records nothing at all; our engines leave out what it cannot record.
            if not any(text in str(exc) for text in _REFUSALS):
                raise
            self.git("read-tree", ours, index="git")
        return self.git("write-tree", index="git")

    def difference(self, ours: str, theirs: str) -> str:
        return self.git("diff-tree", "-r", "--raw", ours, theirs)


def _play(path: Path, sequence: list[list[Any]], few_files: int) -> Counter[str]:
    scene = Scene(path, few_files)
    try:
        for operations in sequence:
            for what, *args in operations:
                scene.do(what, *args)
            scene.check()
    finally:
        scene.now.close()
        shutil.rmtree(path)
    return scene.engines


_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]


@pytest.mark.parametrize(
    ("share", "few_files", "step"),
    [(0.4, FEW_FILES, _usual), (0.4, -1, _usual), (0.2, -1, st.one_of(_usual, _usual, _odd))],
    ids=["full scans", "change journal", "what only git records"],
)
def test_every_step_of_a_random_work_tree_is_the_tree_that_git_records(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    share: float,
    few_files: int,
    step: st.SearchStrategy[Any],
) -> None:
    sequences = int((5_000 if request.config.getoption("--long") else 500) * share)
    engines: Counter[str] = Counter()

    # A sequence is printed as it was found: to make it smaller takes longer than all the others.
    @settings(
        max_examples=sequences,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=_QUIET,
    )
    @given(_sequences(step))
    def play(sequence: list[list[Any]]) -> None:
        engines.update(_play(tmp_path / "repo", sequence, few_files))

    play()

    print(f"sequences {sequences}, steps {sum(engines.values())}, by {dict(engines)}")
    assert engines["fast"] > 0


def test_rules_that_came_with_a_file_hold_for_it(tmp_path: Path) -> None:
    write = ("write", b"\xff\xfe/d/x.o", b"x\n")

    # The journal tells of the folder before it tells of the rules.
    engines = _play(
        tmp_path / "repo", [[("folder", b"\xff\xfe")], [], [write, ("ignore", b".", [b"*.o"])]], -1
    )

    assert engines == {"fast": 3}
