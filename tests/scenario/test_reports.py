"""What broke for users of tools like this one, as runs of the real program; ids: the reports."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.conftest import GitRepo
from tests.scenario.test_places import (
    belongings,
    fabro,
    files,
    hooked,
    merging,
    run_of,
    with_submodule,
)


def workflow(*scripts: str) -> str:
    """A line of commands."""
    names = [f"n{number}" for number in range(1, len(scripts) + 1)]
    quoted = [script.replace("\\", "\\\\").replace('"', '\\"') for script in scripts]
    nodes = "\n".join(f'{n} [script="{s}"];' for n, s in zip(names, quoted, strict=True))
    return (
        "digraph W { node [shape=parallelogram]; s [shape=Mdiamond]; x [shape=Msquare];\n"
        f"{nodes}\n{' -> '.join(['s', *names, 'x'])} }}\n"
    )


def go(repo: GitRepo, *scripts: str, status: int = 0) -> str:
    """Runs a line of commands from a commit; the run branch."""
    repo.commit({"w.fabro": workflow(*scripts)})
    fabro(repo.path, "run", "w.fabro", status=status)
    return run_of(repo)


def meta(run: str) -> str:
    return run.replace("/run/", "/meta/")


def test_r01_what_a_shell_command_wrote_is_in_the_checkpoint(repo: GitRepo) -> None:
    repo.commit({"f": "1\n", "gone": "1\n"})

    run = go(repo, "sed -i s/1/2/ f; rm gone; mkdir d; echo 3 >d/g")

    assert repo.git("show", f"{run}:f") == "2"
    assert files(repo, run) == ["d/g", "f", "w.fabro"]


def test_r02_r13_r38_no_hook_and_no_signature_on_the_path_of_a_checkpoint(repo: GitRepo) -> None:
    repo.commit({"w.fabro": workflow("echo 1 >f", "echo 2 >f")})
    hooked(repo)

    fabro(repo.path, "run", "w.fabro")

    run = run_of(repo)
    assert [repo.git("show", f"{run}{back}:f") for back in ("~1", "")] == ["1", "2"]
    assert "gpgsig" not in repo.git("cat-file", "commit", run)
    assert not (repo.path.parent / "hooks-that-ran").exists()


def test_r03_the_stash_is_never_used(repo: GitRepo) -> None:
    repo.commit({"f": "1\n"})
    repo.write({"u": "u\n"})
    repo.git("stash", "-q", "-u")
    before = repo.git("stash", "list", "--format=%H")

    go(repo, "echo 2 >g")

    assert repo.git("stash", "list", "--format=%H") == before


def test_r04_a_file_above_the_limit_is_left_out_and_named(repo: GitRepo) -> None:
    repo.git("config", "fabro.maxFileSize", "1k")
    repo.commit({"w.fabro": workflow("head -c 5000 /dev/zero >big; echo 1 >f")})

    done = fabro(repo.path, "run", "w.fabro")

    assert files(repo, run_of(repo)) == ["f", "w.fabro"]
    assert "big" in done.stderr


def test_r05_unmerged_entries_survive_a_run_beside_them(repo: GitRepo) -> None:
    repo.commit({"base": "base\n", "w.fabro": workflow("echo 1 >f")})
    merging(repo)
    unmerged = repo.git("ls-files", "-u")

    fabro(repo.path, "run", "--dirty", "carry", "w.fabro")

    assert repo.git("ls-files", "-u") == unmerged
    assert (repo.path / ".git" / "MERGE_HEAD").exists()


def test_r06_a_submodule_is_a_gitlink_and_stays_alive(repo: GitRepo) -> None:
    repo.commit({"w.fabro": workflow("echo 1 >f")})
    with_submodule(repo)
    repo.git("config", "-f", ".git/config", "fabro.dirty", "carry")

    fabro(repo.path, "run", "w.fabro")

    assert repo.git("ls-tree", run_of(repo), "sub").startswith("160000 commit")
    assert repo.git("-C", "sub", "status", "--porcelain") == " M inner"


def test_r07_a_clone_made_in_mid_run_is_a_boundary_and_named(repo: GitRepo) -> None:
    repo.git("config", "fabro.keepWorktree", "always")
    repo.commit({"w.fabro": workflow("git clone -q . child; git init -q empty", "echo 1 >child/x")})

    done = fabro(repo.path, "run", "w.fabro")

    run = run_of(repo)
    assert files(repo, run) == ["child", "w.fabro"]
    assert repo.git("ls-tree", run, "child").startswith("160000 commit")
    assert "child" in done.stderr
    assert "empty" in done.stderr


def test_r08_no_commit_yet_is_a_root_commit_of_the_run_only(repo: GitRepo) -> None:
    repo.write({"w.fabro": workflow("echo 1 >f")})

    fabro(repo.path, "run", "w.fabro")

    run = run_of(repo)
    assert files(repo, run) == ["f"]
    assert files(repo, f"{run}~1") == []
    assert repo.git("rev-parse", "-q", "--verify", "HEAD", ok=(1,)) == ""
    assert repo.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert not (repo.path / ".git" / "index").exists()


def test_r09_a_sha256_repository_keeps_its_ids(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "sha256")
    repo.path.mkdir()
    repo.git("init", "-q", "-b", "main", "--object-format=sha256")

    run = go(repo, "echo 1 >f", "echo 2 >g")

    assert len(repo.git("rev-parse", run)) == 64
    assert files(repo, run) == ["f", "g", "w.fabro"]
    repo.git("show-ref")
    repo.fsck()


def test_r10_skipped_paths_of_a_sparse_checkout_are_not_deleted(repo: GitRepo) -> None:
    repo.commit({"a/f": "1\n", "b/f": "1\n"})
    repo.git("sparse-checkout", "set", "a")

    run = go(repo, "echo 2 >a/g")

    assert files(repo, run) == ["a/f", "a/g", "b/f", "w.fabro"]
    assert not (repo.path / "b").exists()


def test_r11_names_are_bytes(repo: GitRepo) -> None:
    names = ["café.txt", "t\tab", "n\nl", os.fsdecode(b"\xff"), '"q"', " x", "-n", "a\\b"]
    repo.commit(dict.fromkeys(names, "1\n"))

    run = go(repo, 'for n in *; do test "$n" = w.fabro || echo 2 >"./$n"; done')

    assert sorted(files(repo, run)) == sorted([*names, "w.fabro"])
    assert [repo.git("show", f"{run}:./{name}") for name in names] == ["2"] * len(names)


def test_r12_a_symlink_is_a_path_and_never_read_through(repo: GitRepo, tmp_path: Path) -> None:
    secret = tmp_path / "id"
    secret.write_text("private\n")

    run = go(repo, f"ln -s {shlex.quote(str(secret))} l; mkdir d; ln -s d ld")

    assert repo.git("ls-tree", run, "l").startswith("120000 blob")
    assert repo.git("cat-file", "-p", f"{run}:l") == str(secret)
    assert repo.git("cat-file", "-p", f"{run}:ld") == "d"


def test_r14_an_ignored_file_is_never_recorded(repo: GitRepo) -> None:
    repo.commit({".gitignore": ".env\n"})

    run = go(repo, "echo k=1 >.env; echo 1 >f", "echo k=2 >.env; echo 2 >f")

    for commit in (f"{run}~1", run):
        assert files(repo, commit) == [".gitignore", "f", "w.fabro"]


def test_r32_a_run_goes_on_in_another_clone_once_it_is_trusted(
    repo: GitRepo, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    run = go(repo, "echo 1 >f", f"test -e {shlex.quote(str(flag))}", "cat f >g", status=1)
    stored = repo.git("for-each-ref", "--format=%(objectname)", "refs/heads/fabro", "refs/notes")
    here = ["grep", "-l", str(repo.path), *stored.split()]
    assert repo.git(*here, ok=(1,)) == ""
    other = GitRepo(tmp_path / "other")
    repo.git("clone", "-q", ".", str(other.path))
    other.git("fetch", "-q", "origin", "refs/heads/fabro/*:refs/heads/fabro/*")
    other.git("fetch", "-q", "origin", "refs/fabro/*:refs/fabro/*")
    tip = other.git("rev-parse", run)
    flag.touch()

    refused = fabro(other.path, "resume", status=128)

    assert "not admitted here" in refused.stderr
    assert "cat f >g" in refused.stderr + refused.stdout
    assert other.git("rev-parse", run) == tip
    fabro(other.path, "resume", "--trust")
    assert files(other, run) == ["f", "g", "w.fabro"]
    other.git("merge-base", "--is-ancestor", tip, run)


def test_r50_one_note_for_each_run_commit(repo: GitRepo) -> None:
    run = go(repo, "echo 1 >f", "echo 2 >f")

    for commit in (f"{run}~1", run):
        note = repo.git("notes", "--ref=fabro", "show", commit)
        assert note.count("Fabro-Checkpoint: ") == 1
    repo.fsck()


def test_r57_what_a_run_recorded_survives_gc(repo: GitRepo) -> None:
    run = go(repo, "echo 1 >f", "echo 2 >f")
    listed = fabro(repo.path, "events", run).stdout

    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    repo.git("pack-refs", "--all")

    assert repo.git("show", f"{run}~1:f") == "1"
    assert fabro(repo.path, "events", run).stdout == listed
    repo.fsck()


def test_r63_output_is_masked_and_code_is_not(
    repo: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "a-value-nobody-may-see")

    run = go(
        repo,
        "K=AKIA; K=${K}IOSFODNN7EXAMPLE; echo $K; echo $K >f; git rev-parse HEAD; echo $MY_TOKEN",
    )

    printed = repo.git("show", f"{meta(run)}:nodes/n1/stdout.log").splitlines()
    assert printed == ["***", repo.git("rev-parse", f"{run}~1"), "***"]
    assert repo.git("show", f"{run}:f") == "AKIAIOSFODNN7EXAMPLE"
    for secret in ("AKIAIOSFODNN7EXAMPLE", "a-value-nobody-may-see"):
        assert repo.git("grep", secret, meta(run), ok=(1,)) == ""


def test_r16_a_node_that_commits_moves_the_run_branch_only(repo: GitRepo) -> None:
    commit = "git -c user.name=a -c user.email=a@example.com commit --allow-empty"
    repo.commit({"w.fabro": workflow(f"{commit} -qm mine", "echo 1 >f")})
    before = belongings(repo)

    fabro(repo.path, "run", "w.fabro")

    assert belongings(repo) == before
    assert repo.git("log", "--format=%s", "main") == "work"
    assert repo.git("log", "--format=%s", run_of(repo)).splitlines()[2:] == ["mine", "work"]
