from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from git_fabro.git.discover import open_repository
from git_fabro.git.snapshot.choose import rules_of
from git_fabro.git.snapshot.model import Rules
from git_fabro.git.snapshot.reference import ReferenceEngine, seed_index
from tests.conftest import GitRepo


def own(repo: GitRepo, rules: Rules | None = None) -> ReferenceEngine:
    """An engine on the work tree's own index, as in a run's linked work tree."""
    found = open_repository(repo.path)
    return ReferenceEngine(found, found.git_dir / "index", rules or Rules())


def private(repo: GitRepo, rules: Rules | None = None) -> ReferenceEngine:
    """An engine on a private index, as in an in-place run."""
    found = open_repository(repo.path)
    index = repo.path.parent / "run" / "index"
    seed_index(found, index)
    return ReferenceEngine(found, index, rules or Rules())


def gits_tree(repo: GitRepo) -> str:
    """What git records with an index that knows nothing but HEAD: every file is read."""
    index = repo.path.parent / "oracle-index"
    index.unlink(missing_ok=True)
    env = {**os.environ, "GIT_INDEX_FILE": str(index)}
    for args in (["read-tree", "HEAD"], ["add", "-A"], ["write-tree"]):
        done = subprocess.run(["git", *args], cwd=repo.path, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def names(repo: GitRepo, tree: str) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", tree).splitlines()


def test_every_kind_of_change_is_recorded_as_git_does(repo: GitRepo) -> None:
    repo.write({".gitignore": "*.log\n", "a": "1", "dir/b": "2", "gone": "3", "tofile/x": "4"})
    repo.write({"todir": "5", "exec": "6", "lnk": "7", "kept.log": "8", "é\t\n": "9"})
    repo.git("add", "-A", "-f")
    repo.git("commit", "-q", "-m", "base")
    engine = own(repo)
    (repo.path / "gone").unlink()
    shutil.rmtree(repo.path / "tofile")
    (repo.path / "todir").unlink()
    (repo.path / "lnk").unlink()
    (repo.path / "lnk").symlink_to("7")
    (repo.path / "dirlink").symlink_to("dir")
    (repo.path / "exec").chmod(0o755)
    repo.write({"tofile": "file", "todir/x": "below", "new/deep/er": "n", "no.log": "ignored"})
    repo.write({"kept.log": "tracked though ignored", os.fsdecode(b"bad\xff"): "bytes"})

    snapshot = engine.record()

    assert snapshot.tree == gits_tree(repo)
    assert snapshot.notices == ()
    assert "no.log" not in names(repo, snapshot.tree)
    repo.fsck()


def test_a_snapshot_with_no_change_is_the_tree_of_head(repo: GitRepo) -> None:
    repo.commit({"a": "1", "b/c": "2"})

    assert own(repo).record().tree == repo.git("rev-parse", "HEAD^{tree}")


def test_a_repository_without_a_commit_is_recorded(repo: GitRepo) -> None:
    repo.write({"a": "1"})

    assert names(repo, own(repo).record().tree) == ["a"]


def test_a_work_tree_without_a_file_is_the_empty_tree(repo: GitRepo) -> None:
    assert own(repo).record().tree == repo.git("hash-object", "-t", "tree", "/dev/null")


def test_a_sha256_repository_is_recorded_ob4(tmp_path: Path) -> None:
    path = tmp_path / "repo"
    path.mkdir()
    repo = GitRepo(path)
    repo.git("init", "-q", "-b", "main", "--object-format=sha256")
    repo.commit({"a": "1"})
    engine = own(repo)
    repo.write({"a": "2", "b": "3"})

    assert engine.record().tree == gits_tree(repo)
    repo.write({"a": "4"})
    assert engine.record().tree == gits_tree(repo)
    repo.fsck()


def test_the_users_index_keeps_every_byte_wt10_wt11(repo: GitRepo) -> None:
    repo.commit({"a": "1", "b": "2"})
    repo.write({"a": "staged"})
    repo.git("add", "a")
    repo.write({"a": "unstaged", "new": "n"})
    index = repo.path / ".git/index"
    before, status = index.read_bytes(), repo.git("status", "--porcelain")

    snapshot = private(repo).record()

    assert index.read_bytes() == before
    assert repo.git("show", f"{snapshot.tree}:a") == "unstaged"
    assert repo.git("status", "--porcelain") == status


def test_a_seed_is_as_old_as_the_users_index_wt23(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    os.utime(repo.path / ".git/index", (10**9, 10**9))

    private(repo)

    assert (repo.path.parent / "run/index").stat().st_mtime == 10**9


def test_a_same_size_edit_after_the_users_add_is_seen_wt23(repo: GitRepo) -> None:
    for round_ in range(8):
        shutil.rmtree(repo.path.parent / "run", ignore_errors=True)
        repo.write({"a": f"one{round_}"})
        repo.git("add", "a")
        repo.write({"a": f"two{round_}"})

        tree = private(repo).record().tree

        assert repo.git("show", f"{tree}:a") == f"two{round_}"


@pytest.mark.parametrize("kind", ["own", "private"])
@pytest.mark.parametrize("by_others", ["nothing", "status", "add"])
def test_a_file_swapped_in_with_its_times_is_seen_wt24(
    repo: GitRepo, kind: str, by_others: str
) -> None:
    repo.commit({"a": "old", "b": "x"})
    engine = own(repo) if kind == "own" else private(repo)
    outside = repo.path.parent
    for round_ in range(20):
        texts = [f"{side}{round_:03}" for side in ("L", "R")]
        for text in texts:
            (outside / text).write_text(text)
            os.utime(outside / text, (10**9, 10**9))

        for text in texts:
            shutil.copy2(outside / text, repo.path / "a")
            if by_others != "nothing":
                repo.git(*{"status": ["status"], "add": ["add", "b"]}[by_others])
            tree = engine.record().tree

            assert repo.git("show", f"{tree}:a") == text


def test_files_swapped_in_between_two_engines_are_seen_wt24(repo: GitRepo) -> None:
    repo.commit({"a": "old"})
    for name in ("1", "2"):
        (repo.path.parent / name).write_text(name)
        os.utime(repo.path.parent / name, (10**9, 10**9))

    for name in ("1", "2"):
        shutil.copy2(repo.path.parent / name, repo.path / "a")
        tree = own(repo).record().tree

        assert repo.git("show", f"{tree}:a") == name


def test_an_edit_in_the_tick_of_a_snapshot_is_seen_without_ctime_wt12(repo: GitRepo) -> None:
    repo.commit({"a": "000"})
    repo.git("config", "core.trustctime", "false")
    engine = own(repo)
    for round_ in range(50):
        text = f"{round_:03}"
        (repo.path / "a").write_text(text)
        tree = engine.record().tree

        assert repo.git("show", f"{tree}:a") == text


def test_excluded_globs_keep_only_untracked_names_out_wt21(repo: GitRepo) -> None:
    repo.commit({"dist/tracked": "1", "src/a": "1"})
    engine = own(repo, Rules(excludes=("dist/**", "**/*.tmp", "top/*.x")))
    repo.write({"dist/tracked": "edited", "dist/new": "n", "src/a": "2", "src/deep/b.tmp": "t"})
    repo.write({"top/a.x": "out", "top/deep/a.x": "in", "src/new": "n"})

    tree = engine.record().tree

    assert names(repo, tree) == ["dist/tracked", "src/a", "src/new", "top/deep/a.x"]
    assert repo.git("show", f"{tree}:dist/tracked") == "edited"
    (repo.path / "dist/tracked").unlink()
    assert "dist/tracked" not in names(repo, engine.record().tree)


def test_folders_and_files_that_change_places_are_recorded_name_by_name_wt4(repo: GitRepo) -> None:
    repo.commit({"d/a": "1", "f": "2"})
    engine = own(repo, Rules(excludes=("nothing",)))
    shutil.rmtree(repo.path / "d")
    (repo.path / "f").unlink()
    repo.write({"d": "file", "f/x": "below"})
    (repo.path / "l").symlink_to("f")

    assert engine.record().tree == gits_tree(repo)


def nested(repo: GitRepo, name: str, *, committed: bool) -> None:
    inner = GitRepo(repo.path / name)
    inner.path.mkdir(parents=True)
    inner.git("init", "-q")
    inner.write({"secret": "theirs"})
    if committed:
        inner.commit({"b": "2"})


@pytest.mark.parametrize("excludes", [(), ("nothing",)], ids=["add -A", "by name"])
def test_a_nested_repository_is_a_gitlink_or_left_out_wt1(
    repo: GitRepo, excludes: tuple[str, ...]
) -> None:
    repo.commit({"a": "1"})
    nested(repo, "sub/with", committed=True)
    nested(repo, "without", committed=False)
    repo.write({"sub/beside": "1"})
    engine = own(repo, Rules(excludes=excludes))

    first, second = engine.record(), engine.record()

    listed = repo.git("ls-tree", "-r", "--format=%(objectmode) %(path)", first.tree).splitlines()
    assert listed == ["100644 a", "100644 sub/beside", "160000 sub/with"]
    assert {(notice.code, notice.path) for notice in first.notices} == {
        ("nested_repository", b"sub/with"),
        ("nested_repository", b"without"),
    }
    assert second.tree == first.tree
    assert second.notices == ()
    assert repo.git("-C", "without", "ls-files", "-o") == "secret"


def test_a_nested_repository_with_a_commit_alone_is_told_of(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    engine = own(repo)
    nested(repo, "sub", committed=True)

    assert [notice.path for notice in engine.record().notices] == [b"sub"]


@pytest.mark.parametrize("tracked", [True, False])
def test_a_file_above_the_limit_is_not_recorded(repo: GitRepo, tracked: bool) -> None:
    repo.commit({"big [*]": "small"} if tracked else {"a": "1"})
    repo.git("config", "fabro.maxFileSize", "1k")
    engine = own(repo, rules_of(open_repository(repo.path)))
    repo.write({"big [*]": "x" * 1025, "fits": "x" * 1024})

    snapshot = engine.record()

    assert [(notice.code, notice.path) for notice in snapshot.notices] == [
        ("file_excluded", b"big [*]")
    ]
    assert "fits" in names(repo, snapshot.tree)
    if tracked:
        assert repo.git("show", f"{snapshot.tree}:big [*]") == "small"
    else:
        assert "big [*]" not in names(repo, snapshot.tree)


@pytest.mark.parametrize(
    "settings",
    [
        ["update-index", "--split-index"],
        ["update-index", "--untracked-cache"],
        ["update-index", "--index-version", "4"],
        ["config", "feature.manyFiles", "true"],
        ["update-index", "--assume-unchanged", "a"],
        ["update-index", "--skip-worktree", "a"],
        ["update-index", "--chmod=+x", "a"],
        ["config", "core.fileMode", "false"],
        ["config", "core.autocrlf", "true"],
    ],
    ids=lambda args: args[1] + (args[2] if args[0] == "config" else ""),
)
@pytest.mark.parametrize("kind", ["own", "private"])
def test_an_index_of_any_kind_is_recorded_as_git_does_wt5_wt9(
    repo: GitRepo, settings: list[str], kind: str
) -> None:
    repo.commit({"a": "1", "b": "2", "c/d": "3"})
    repo.git(*settings)
    engine = own(repo) if kind == "own" else private(repo)
    copy = repo.path.parent / "copy"
    for text in ("x\r\n", "y"):
        repo.write({"a": text, "b": text, "new": text})
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(repo.path, copy, symlinks=True)
        oracle = GitRepo(copy)
        oracle.git("add", "-A")

        assert engine.record().tree == oracle.git("write-tree")


def test_what_is_staged_only_for_later_is_recorded_wt5(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    repo.write({"later": "n"})
    repo.git("add", "-N", "later")

    assert names(repo, own(repo).record().tree) == ["a", "later"]


def test_a_sparse_checkout_keeps_what_is_not_there(repo: GitRepo) -> None:
    repo.commit({"in/a": "1", "out/b": "2"})
    repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    engine = own(repo)
    repo.write({"in/a": "changed", "elsewhere/c": "new"})

    tree = engine.record().tree

    assert names(repo, tree) == ["elsewhere/c", "in/a", "out/b"]


def test_unmerged_files_are_recorded_as_they_stand(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"a": "2"})
    repo.git("checkout", "-q", "main")
    repo.commit({"a": "3"})
    repo.git("merge", "side", ok=(1,))

    tree = private(repo).record().tree

    assert "<<<<<<<" in repo.git("show", f"{tree}:a")
    assert repo.git("ls-files", "-u") != ""


def test_the_index_set_to_a_tree_keeps_its_stat_data(repo: GitRepo) -> None:
    repo.commit({f"f{number}": str(number) for number in range(5)})
    other = repo.git("rev-parse", "HEAD^{tree}")
    for path in repo.path.glob("f*"):
        os.utime(path, (10**9, 10**9))
    repo.write({"f1": "changed", "new": "n"})
    engine = own(repo)
    engine.record()

    engine.set_index_to(other)

    assert repo.git("write-tree") == other
    assert repo.git("diff-files", "--name-only") != "f0"
    assert repo.git("status", "--porcelain").splitlines() == [" M f1", "?? new"]


def test_an_index_lock_that_is_held_for_a_moment_is_waited_for(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    engine = own(repo)
    lock = repo.path / ".git/index.lock"
    lock.touch()
    release = threading.Timer(0.05, lock.unlink)
    release.start()
    repo.write({"a": "2"})

    tree = engine.record().tree

    release.join()
    assert repo.git("show", f"{tree}:a") == "2"


def test_no_hook_filter_prompt_or_signature_is_in_the_way(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    for name in ("post-index-change", "pre-commit"):
        hook = repo.path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\ntouch hooked\nexit 1\n")
        hook.chmod(0o755)
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", "false")
    repo.write({"a": "2"})

    tree = own(repo).record().tree

    assert names(repo, tree) == ["a"]


def test_a_checkpoint_beside_a_loop_of_git_add_loses_no_add_wt11(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    engine = private(repo)
    for number in range(20):
        repo.write({f"n{number}": "x"})
        adding = subprocess.Popen(["git", "add", f"n{number}"], cwd=repo.path)
        engine.record()
        assert adding.wait() == 0

    assert len(repo.git("ls-files").splitlines()) == 21


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_objects_are_on_the_disk_before_a_ref_names_them_ob5(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    repo.git("config", "fabro.durable", "true")
    repo.write({"a": "2", "b/c": "3"})
    found = open_repository(repo.path)
    assert found.git is not None
    log = repo.path.parent / "log"
    traced = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(log)]

    subprocess.run(
        [*traced, *found.git.argv(["add", "-A"])],
        cwd=repo.path,
        env=found.git.environment(),
        check=True,
    )

    assert log.read_text().count("fsync(") >= 2
