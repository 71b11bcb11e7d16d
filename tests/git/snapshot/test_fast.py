from __future__ import annotations

import contextlib
import mmap
import os
import resource
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.snapshot.fast import FastEngine
from git_fabro.git.snapshot.model import Rules, Snapshot, UncoveredError
from git_fabro.git.snapshot.reference import ReferenceEngine, seed_index
from git_fabro.git.snapshot.rounds import FEW_FILES, ROUND
from tests.conftest import GitRepo


class Engines:
    """Fast engines of one test, closed at its end."""

    def __init__(self) -> None:
        self._made: list[FastEngine] = []

    def __call__(
        self, repo: GitRepo, rules: Rules | None = None, few_files: int = FEW_FILES
    ) -> FastEngine:
        """An engine with a private index that begins as the user's."""
        found = open_repository(repo.path)
        index = found.git_dir / "private.index"
        seed_index(found, index)
        set_index_to = ReferenceEngine(found, index, rules or Rules()).set_index_to
        engine = FastEngine(
            found,
            open_objects(found),
            index,
            rules or Rules(),
            set_index_to=set_index_to,
            few_files=few_files,
        )
        self._made.append(engine)
        return engine

    def close(self) -> None:
        for engine in self._made:
            engine.close()


@pytest.fixture
def fast() -> Iterator[Engines]:
    made = Engines()
    yield made
    made.close()


def gits_tree(repo: GitRepo, tracked: str = "HEAD") -> str:
    """What git records with an index that knows nothing but a tree: every file is read."""
    index = repo.path.parent / "oracle.index"
    index.unlink(missing_ok=True)
    variables = os.environ | {"GIT_INDEX_FILE": str(index)}
    for args in (["read-tree", tracked], ["add", "-A"], ["write-tree"]):
        done = subprocess.run(["git", *args], cwd=repo.path, env=variables, capture_output=True)
        assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def names(repo: GitRepo, snapshot: Snapshot) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", snapshot.tree).splitlines()


def stats(repo: GitRepo) -> dict[str, tuple[int, int, int, int]]:
    """What a snapshot must leave as it is: all but the objects."""
    found = {}
    for folder, _, files in os.walk(repo.path):
        for name in files:
            path = os.path.join(folder, name)
            if f"{os.sep}objects{os.sep}" not in path and not name.startswith("private.index"):
                one = os.lstat(path)
                found[path] = (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
    return found


def test_a_snapshot_touches_nothing_but_objects(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1", "b/c": "2", ".gitignore": "*.log\n"})
    repo.write({"a": "changed", "new": "n", "x.log": "ignored"})
    repo.git("add", "new")
    engine, before = fast(repo), stats(repo)

    engine.record()
    repo.write({"b/c": "3"})
    between = stats(repo)
    tree = engine.record().tree

    assert {**before, **between} == {**stats(repo)} | before | between
    assert stats(repo) == between
    assert tree == gits_tree(repo)


def test_a_repository_without_a_commit_or_an_index_is_recorded(
    repo: GitRepo, fast: Engines
) -> None:
    repo.write({"a": "1", "b/c": "2"})

    assert names(repo, fast(repo).record()) == ["a", "b/c"]


def test_a_work_tree_without_a_file_is_the_empty_tree(repo: GitRepo, fast: Engines) -> None:
    (repo.path / "empty/inside").mkdir(parents=True)

    assert fast(repo).record().tree == repo.git("hash-object", "-t", "tree", "/dev/null")


def test_a_file_swapped_in_with_its_times_is_seen_wt24(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "old", "b": "x"})
    engine, outside = fast(repo), repo.path.parent
    for round_ in range(20):
        texts = [f"{side}{round_:03}" for side in ("L", "R")]
        for text in texts:
            (outside / text).write_text(text)
            os.utime(outside / text, (10**9, 10**9))

        for text in texts:
            shutil.copy2(outside / text, repo.path / "a")
            tree = engine.record().tree

            assert repo.git("show", f"{tree}:a") == text


def test_an_edit_in_the_tick_of_a_snapshot_is_seen_wt12(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "000"})
    engine = fast(repo)
    for round_ in range(50):
        text = f"{round_:03}"
        (repo.path / "a").write_text(text)
        tree = engine.record().tree

        assert repo.git("show", f"{tree}:a") == text


def test_an_edit_right_after_the_users_add_is_seen_wt23(repo: GitRepo, fast: Engines) -> None:
    for round_ in range(20):
        repo.write({"a": f"first {round_:03}"})
        repo.git("add", "a")
        repo.write({"a": f"other {round_:03}"})
        (repo.path / ".git/private.index").unlink(missing_ok=True)

        tree = fast(repo).record().tree

        assert repo.git("show", f"{tree}:a") == f"other {round_:03}"


def test_a_change_below_folders_without_files_of_their_own_is_in_every_tree_above(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a/b/c/d": "1", "x": "1"})
    engine = fast(repo)
    engine.record()
    repo.write({"a/b/c/d": "2"})

    assert engine.record().tree == gits_tree(repo)


def test_what_the_index_tracks_is_recorded_though_ignored_wt21(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"dist/a": "1", "keep.log": "1"})
    repo.write({".gitignore": "dist/\n*.log\n", "dist/a": "2", "dist/b": "no", "c.log": "no"})

    snapshot = fast(repo).record()

    assert names(repo, snapshot) == [".gitignore", "dist/a", "keep.log"]
    assert repo.git("show", f"{snapshot.tree}:dist/a") == "2"


def test_an_ignored_folder_is_not_entered(repo: GitRepo, fast: Engines) -> None:
    repo.commit({".gitignore": "node_modules/\n", "a": "1"})
    inside = repo.path / "node_modules/deep"
    inside.mkdir(parents=True)
    (inside / ".git").write_text("a repository, which would be git's")

    assert names(repo, fast(repo).record()) == [".gitignore", "a"]


def test_excluded_globs_keep_only_untracked_names_out_wt21(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"out/tracked": "1"})
    repo.write({"out/tracked": "2", "out/new": "n", "b": "b"})

    snapshot = fast(repo, Rules(excludes=("out/**",))).record()

    assert names(repo, snapshot) == ["b", "out/tracked"]


def test_a_file_above_the_limit_is_told_of_and_left_as_it_was(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"grows": "1"})
    repo.write({"grows": "x" * 11, "new": "y" * 11})
    engine = fast(repo, Rules(largest_bytes=10))

    first, again = engine.record(), engine.record()
    repo.write({"new": "small"})
    second = engine.record()

    assert sorted(one.path for one in first.notices) == [b"grows", b"new"]
    assert {one.code for one in first.notices} == {"file_excluded"}
    assert again.notices == ()
    assert names(repo, first) == ["grows"]
    assert repo.git("show", f"{first.tree}:grows") == "1"
    assert names(repo, second) == ["grows", "new"]


def test_rules_that_changed_while_nobody_looked_count_at_once(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1", "d/b": "2"})
    (repo.path / ".git/info/exclude").write_text("*.log\n")
    repo.write({"x.log": "ignored", "d/y.log": "ignored"})
    first = fast(repo)
    first.settle(first.record().tree)
    first.close()
    (repo.path / ".git/info/exclude").unlink()

    assert names(repo, fast(repo).record()) == ["a", "d/b", "d/y.log", "x.log"]


def test_an_index_lock_that_is_held_for_a_moment_is_waited_for(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1"})
    engine = fast(repo)
    repo.write({"a": "2"})
    tree = engine.record().tree
    lock = repo.path / ".git/private.index.lock"
    lock.touch()
    timer = threading.Timer(0.2, lock.unlink)
    timer.start()

    engine.settle(tree)

    timer.join()
    variables = os.environ | {"GIT_INDEX_FILE": str(repo.path / ".git/private.index")}
    done = subprocess.run(["git", "write-tree"], cwd=repo.path, env=variables, capture_output=True)
    assert done.stdout.decode().strip() == tree


def test_a_pipe_is_no_file_and_does_not_hold_anything_up(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1"})
    os.mkfifo(repo.path / "pipe")

    assert names(repo, fast(repo).record()) == ["a"]


def test_a_pipe_in_place_of_a_tracked_file_is_told_of_and_left_out(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1", "b": "2"})
    engine = fast(repo)
    engine.record()
    (repo.path / "a").unlink()
    os.mkfifo(repo.path / "a")

    snapshot = engine.record()
    again = ReferenceEngine(
        open_repository(repo.path), repo.path / ".git/private.index", Rules()
    ).record()

    assert names(repo, snapshot) == ["b"]
    assert [(one.code, one.path) for one in snapshot.notices] == [("file_excluded", b"a")]
    assert (again.tree, again.notices) == (snapshot.tree, snapshot.notices)


def test_a_damaged_object_is_written_anew_ob3(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1"})
    engine = fast(repo)
    repo.write({"b": "content"})
    blob = repo.git("hash-object", "-w", "b")
    path = repo.path / ".git/objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"")

    tree = engine.record().tree

    assert repo.git("show", f"{tree}:b") == "content"
    repo.fsck()


def test_a_blob_that_only_an_index_named_is_made_again_after_a_prune(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1"})
    engine = fast(repo)
    repo.write({"b": "staged by a node"})
    variables = os.environ | {"GIT_INDEX_FILE": str(repo.path / ".git/private.index")}
    subprocess.run(["git", "add", "b"], cwd=repo.path, env=variables, check=True)
    os.utime(repo.path / ".git/private.index", (2**31, 2**31))
    tree = engine.record().tree
    repo.git("prune", "--expire=now")
    assert "missing" in repo.git("cat-file", "--batch-check", stdin=b"%s:b" % tree.encode())

    made = engine.look_again(Oid(repo.git("rev-parse", "HEAD^{tree}")), tree)

    assert made >= 1
    assert repo.git("show", f"{tree}:b") == "staged by a node"


_ODD: dict[str, Callable[[GitRepo], object]] = {
    "'.gitattributes' sets text": lambda repo: repo.write({".gitattributes": "* text=auto\n"}),
    "'d/.gitattributes' sets filter": lambda repo: repo.write({"d/.gitattributes": "*.x filter=l"}),
    "a repository inside: 'd/.git'": lambda repo: repo.git("init", "-q", "d"),
    "core.filemode is false": lambda repo: repo.git("config", "core.fileMode", "false"),
    "core.autocrlf is input": lambda repo: repo.git("config", "core.autocrlf", "input"),
    "core.ignorecase is true": lambda repo: repo.git("config", "core.ignoreCase", "true"),
    "core.sparsecheckout is true": lambda repo: repo.git("config", "core.sparseCheckout", "true"),
    "a split index": lambda repo: repo.git("update-index", "--split-index"),
    "refs/replace is in use": lambda repo: repo.git(
        "replace", repo.git("hash-object", "-w", "a"), repo.git("hash-object", "-w", "d/b")
    ),
    "paths in the index marked assume-unchanged, skip-worktree or intent-to-add": (
        lambda repo: repo.git("update-index", "--assume-unchanged", "a")
    ),
    "a name that git refuses: 'd/GIT~1'": lambda repo: repo.write({"d/GIT~1": ""}),
    "a symbolic link, or very large: '.gitignore'": (
        lambda repo: (repo.path / ".gitignore").symlink_to("a")
    ),
}


@pytest.mark.parametrize("reason", list(_ODD))
def test_what_only_git_records_rightly_is_refused_with_its_reason(
    repo: GitRepo, fast: Engines, reason: str
) -> None:
    repo.commit({"a": "1", "d/b": "2"})
    _ODD[reason](repo)
    before = repo.git("count-objects")

    with pytest.raises(UncoveredError) as caught:
        fast(repo).record()

    assert caught.value.reason.startswith(reason)
    assert repo.git("count-objects") == before


def test_attributes_that_convert_nothing_are_no_hindrance(repo: GitRepo, fast: Engines) -> None:
    repo.commit({".gitattributes": "*.png binary -text\n*.c diff=cpp\n", "a": "1\r\n"})
    repo.write({"b": "2\r\n"})

    assert fast(repo).record().tree == gits_tree(repo)


def test_a_disk_that_refuses_an_object_is_an_error_and_no_older_tree(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1"})
    engine = fast(repo)
    engine.record()
    (repo.path / "big").write_bytes(os.urandom(200_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(GitError, match="cannot write object"):
            engine.record()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert engine.record().tree == gits_tree(repo)
    assert not list((repo.path / ".git/objects").glob("tmp_*"))


def test_a_process_with_too_many_open_files_takes_no_snapshot(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1", "b/c": "2"})
    engine = fast(repo)
    engine.record()
    repo.write({"b/c": "3"})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as held:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        try:
            with contextlib.suppress(OSError):
                for _ in range(64):
                    held.enter_context(open(os.devnull))
            with pytest.raises(GitError, match="Too many open files"):
                engine.record()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert engine.record().tree == gits_tree(repo)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("odd", ["a", "d"])
def test_what_cannot_be_read_is_never_left_out_silently(fast: Engines, odd: str) -> None:
    with tempfile.TemporaryDirectory() as outside:
        os.chmod(outside, 0o777)
        repo = GitRepo(Path(outside) / "repo")
        os.seteuid(65534)
        try:
            repo.path.mkdir()
            repo.git("init", "-q")
            repo.commit({"a": "1", "d/b": "2"})
            engine = fast(repo)
            repo.write({odd if odd == "a" else "d/b": "changed"})
            (repo.path / odd).chmod(0)
            with pytest.raises(GitError, match=r"cannot (be )?read"):
                engine.record()
            (repo.path / odd).chmod(0o755 if odd == "d" else 0o644)
            assert engine.record().tree == gits_tree(repo)
        finally:
            os.seteuid(0)


def test_a_file_that_a_folder_replaces_in_mid_scan_gives_a_tree_that_was_there(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({f"d{n}/f{m}": "1" for n in range(20) for m in range(5)})
    path, done = repo.path / "d3/swaps", threading.Event()
    engine = fast(repo)
    possible = {engine.record().tree}
    path.write_text("a file")
    possible.add(engine.record().tree)
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("in a folder")
    possible.add(engine.record().tree)

    def swap() -> None:
        while not done.is_set():
            (path / "inside").unlink()
            path.rmdir()
            path.write_text("a file")
            path.unlink()
            path.mkdir()
            os.rename(_prepared(repo), path / "inside")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(150):
            with contextlib.suppress(GitError):
                seen.add(engine.record().tree)
    finally:
        done.set()
        thread.join()

    # Empty for a moment while it is being written: that was there as well.
    (path / "inside").unlink()
    path.rmdir()
    path.write_text("")
    possible.add(engine.record().tree)
    assert seen <= possible


def _prepared(repo: GitRepo) -> Path:
    made = repo.path.parent / "prepared"
    made.write_text("in a folder")
    return made


def test_a_file_that_never_stands_still_is_recorded_and_told_of(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1"})
    engine = fast(repo)
    (repo.path / "busy").write_bytes(b"x" * 4_000_000)
    grow = subprocess.Popen(["sh", "-c", "while :; do printf y; done >>busy"], cwd=repo.path)
    try:
        notices = (one for _ in range(1000) for one in engine.record().notices)
        said = next(notices, None)
    finally:
        grow.kill()
        grow.wait()

    assert said is not None
    assert (said.code, said.path) == ("file_changing", b"busy")
    assert engine.record().tree == gits_tree(repo)


def test_the_index_brought_up_holds_the_snapshot_and_shows_no_change(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"a": "1", "b/c": "2", "gone": "3", "x": "1"})
    engine = fast(repo)
    repo.write({"a": "2", "b/new": "n", "x.sh": "run"})
    (repo.path / "x.sh").chmod(0o755)
    (repo.path / "gone").unlink()
    (repo.path / "x").unlink()
    repo.write({"x/y": "a folder now"})

    tree = engine.record().tree
    engine.settle(tree)

    index = repo.path / ".git/private.index"
    shutil.copy2(index, repo.path / ".git/index")
    assert repo.git("write-tree") == tree
    assert repo.git("diff-files") == ""
    assert repo.git("status", "--porcelain", "--untracked-files=all").count("\n?? ") == 0


def test_what_another_program_stages_is_tracked_from_then_on(repo: GitRepo, fast: Engines) -> None:
    repo.commit({".gitignore": "*.log\n", "a": "1", "b.log/x": "1"})
    engine = fast(repo)
    engine.record()
    repo.write({"forced.log": "1"})
    variables = os.environ | {"GIT_INDEX_FILE": str(repo.path / ".git/private.index")}
    subprocess.run(["git", "add", "-f", "forced.log"], cwd=repo.path, env=variables, check=True)

    staged = engine.record()
    subprocess.run(
        ["git", "rm", "-q", "--cached", "forced.log"], cwd=repo.path, env=variables, check=True
    )
    unstaged = engine.record()

    assert "forced.log" in names(repo, staged)
    assert "forced.log" not in names(repo, unstaged)


def test_a_journal_tells_of_everything_from_names_to_modes(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1", "b/c": "2", "b/d/e": "3", "moves/x/y": "4"})
    os.link(repo.path / "a", repo.path.parent / "outside")
    engine = fast(repo, few_files=-1)
    for _ in range(2):
        before = engine.record()
    changes: list[Callable[[], object]] = [
        lambda: repo.write({"a": "2"}),
        lambda: repo.write({"new/deep/er": "n"}),
        lambda: repo.write({"new/deep/er2": "n"}),
        lambda: (repo.path / "a").chmod(0o755),
        lambda: (repo.path / "moves").rename(repo.path / "b/moved"),
        lambda: repo.write({"b/moved/x/y": "5"}),
        lambda: shutil.rmtree(repo.path / "b/d"),
        (repo.path / "b/c").unlink,
        lambda: (repo.path / "b/c").symlink_to("moved"),
        lambda: repo.write({".gitignore": "new\n", "new/other": "tracked are only the two"}),
        lambda: repo.write({".gitignore": ""}),
        lambda: (repo.path.parent / "outside").write_text("through the other name"),
    ]

    for change in changes:
        change()
        taken = engine.record()

        assert taken.notices == ()
        gits = gits_tree(repo, tracked=before.tree)
        assert taken.tree == gits, repo.git("diff-tree", "-r", taken.tree, gits)
        before = taken


def test_a_journal_that_overflows_is_begun_anew(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"a": "1"})
    engine = fast(repo, few_files=-1)
    for _ in range(2):
        engine.record()
    # Two names in turn, as the kernel folds equal events that follow each other.
    for number in range(20_000):
        os.utime(repo.path / "a") if number % 2 else (repo.path / "b").touch()
    repo.write({"c": "after the overflow"})

    assert engine.record().tree == gits_tree(repo)
    repo.write({"d": "told again"})
    assert engine.record().tree == gits_tree(repo)


def test_a_change_that_the_system_hides_is_found_by_the_next_full_scan(
    repo: GitRepo, fast: Engines
) -> None:
    repo.commit({"mapped": "old text"})
    engine = fast(repo, few_files=-1)
    with open(repo.path / "mapped", "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    for _ in range(3):
        engine.record()
    memory[:3] = b"new"
    memory.flush()

    snapshots = [engine.record() for _ in range(ROUND + 1)]
    memory.close()

    codes = [one.code for snapshot in snapshots for one in snapshot.notices]
    assert codes == ["journal_missed"]
    assert snapshots[-1].tree == gits_tree(repo)


def test_the_proof_at_the_end_looks_at_every_file(repo: GitRepo, fast: Engines) -> None:
    repo.commit({"mapped": "old text"})
    engine = fast(repo, few_files=-1)
    with open(repo.path / "mapped", "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    for _ in range(3):
        engine.record()
    assert engine.prove() == ()
    memory[:3] = b"new"
    memory.flush()

    missed = engine.prove()
    memory.close()

    assert [one.code for one in missed] == ["journal_missed"]
