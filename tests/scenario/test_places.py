"""Where a run may begin: in every state of a repository, and nothing of the user's changes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import GitRepo

#: One node that reads what is there, one that adds to it.
WORKFLOW = """
digraph W {
    node [shape=parallelogram]
    start [shape=Mdiamond]; exit [shape=Msquare]
    read  [script="ls > seen"]
    write [script="echo made > made"]
    start -> read -> write -> exit
}
"""
PROGRAM = [sys.executable, "-m", "git_fabro"]


def fabro(
    folder: Path, *args: str, status: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The real program, and that it ended as it must."""
    done = subprocess.run(
        [*PROGRAM, *args],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def run_of(repo: GitRepo) -> str:
    """The branch of the only run."""
    return repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads/fabro/run")


def files(repo: GitRepo, commit: str) -> list[str]:
    return os.fsdecode(repo.git_bytes("ls-tree", "-r", "-z", "--name-only", commit)).split("\0")[
        :-1
    ]


def belongings(repo: GitRepo) -> dict[str, object]:
    """What is the user's: index bytes, HEAD, branches, stash, configuration, status."""
    git_dir = repo.path / repo.git("rev-parse", "--git-dir")
    common = repo.path / repo.git("rev-parse", "--git-common-dir")
    index = git_dir / "index"
    return {
        "index": index.read_bytes() if index.exists() else None,
        "HEAD": (git_dir / "HEAD").read_text(),
        "branches": [
            line
            for line in repo.git("for-each-ref", "refs/heads", "refs/stash").splitlines()
            if "/fabro/" not in line
        ],
        "config": (common / "config").read_bytes(),
        "status": repo.git("--no-optional-locks", "status", "--porcelain=v2"),
    }


def dirty(repo: GitRepo) -> GitRepo:
    repo.write({"base": "staged\n"})
    repo.git("add", "base")
    repo.write({"base": "not staged\n", "untracked": "u\n"})
    return repo


def stashed(repo: GitRepo) -> GitRepo:
    repo.write({"untracked": "u\n"})
    repo.git("stash", "-q", "-u")
    return dirty(repo)


def detached(repo: GitRepo) -> GitRepo:
    repo.git("checkout", "-q", "--detach")
    return repo


def linked(repo: GitRepo) -> GitRepo:
    path = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", "-b", "side", str(path))
    return dirty(GitRepo(path))


def _conflict(repo: GitRepo, *how: str) -> GitRepo:
    repo.git("checkout", "-q", "-b", "other")
    repo.commit({"base": "theirs\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"base": "ours\n"})
    repo.git(*how, "other", ok=(1,))
    assert repo.git("ls-files", "-u")
    return repo


def merging(repo: GitRepo) -> GitRepo:
    return _conflict(repo, "merge")


def rebasing(repo: GitRepo) -> GitRepo:
    return _conflict(repo, "rebase")


def picking(repo: GitRepo) -> GitRepo:
    return _conflict(repo, "cherry-pick")


def hooked(repo: GitRepo) -> GitRepo:
    hooks = repo.path.parent / "hooks"
    hooks.mkdir()
    for name in (
        "pre-commit",
        "commit-msg",
        "post-checkout",
        "reference-transaction",
        "post-commit",
    ):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\necho {name} >> '{repo.path.parent}/hooks-that-ran'\nexit 1\n")
        hook.chmod(0o755)
    repo.git("config", "core.hooksPath", str(hooks))
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", "false")
    return repo


def sparse(repo: GitRepo) -> GitRepo:
    repo.commit({"a/f": "1\n", "b/f": "1\n"})
    repo.git("sparse-checkout", "set", "--sparse-index", "a")
    return repo


def with_submodule(repo: GitRepo) -> GitRepo:
    other = GitRepo(repo.path.parent / "other")
    other.path.mkdir()
    other.git("init", "-q", "-b", "main")
    other.commit({"inner": "1\n"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.path), "sub")
    repo.git("commit", "-q", "-m", "sub")
    repo.write({"sub/inner": "changed\n"})
    return repo


STATES = [dirty, stashed, detached, linked, merging, rebasing, picking, hooked, sparse]


@pytest.mark.parametrize("dirty_as", ["head", "carry"])
@pytest.mark.parametrize("state", [*STATES, with_submodule])
def test_a_run_changes_nothing_of_the_users(
    repo: GitRepo, state: Callable[[GitRepo], GitRepo], dirty_as: str
) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    here = state(repo)
    before = belongings(here)

    fabro(here.path, "run", "--dirty", dirty_as, "w.fabro")

    assert belongings(here) == before
    assert {"base", "made", "seen", "w.fabro"} <= set(files(repo, run_of(repo)))
    assert not (repo.path.parent / "hooks-that-ran").exists()
    repo.fsck()


def test_a_dirty_tree_is_carried_as_the_base_of_the_run(repo: GitRepo) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    dirty(repo)

    fabro(repo.path, "run", "--dirty", "carry", "w.fabro")

    run = run_of(repo)
    assert repo.git("show", f"{run}:base") == "not staged"
    assert files(repo, f"{run}~2") == ["base", "untracked", "w.fabro"]
    assert repo.git("rev-parse", f"{run}~3") == repo.git("rev-parse", "main")


def test_committed_head_is_the_default_and_a_dirty_tree_is_said(repo: GitRepo) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    dirty(repo)

    done = fabro(repo.path, "run", "-q", "w.fabro")

    assert repo.git("show", f"{run_of(repo)}:base") == "base"
    assert "uncommitted changes are not in the run" in done.stderr


@pytest.mark.parametrize("state", [dirty, detached, linked, sparse, hooked])
def test_an_in_place_run_leaves_index_and_head_to_the_user(
    repo: GitRepo, state: Callable[[GitRepo], GitRepo]
) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    here = state(repo)
    before = belongings(here)

    fabro(here.path, "run", "--in-place", "w.fabro")

    after = belongings(here)
    assert {**after, "status": None} == {**before, "status": None}
    assert (here.path / "made").read_text() == "made\n"
    assert {"made", "seen"} <= set(files(repo, run_of(repo)))


@pytest.mark.parametrize("state", [merging, rebasing])
def test_in_place_is_refused_in_the_middle_of_something(
    repo: GitRepo, state: Callable[[GitRepo], GitRepo]
) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    state(repo)
    before = belongings(repo)

    done = fabro(repo.path, "run", "--in-place", "w.fabro", status=128)

    assert "in progress" in done.stderr
    assert belongings(repo) == before
    assert run_of(repo) == ""


def test_a_merge_can_be_finished_after_a_run_beside_it(repo: GitRepo) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    merging(repo)

    fabro(repo.path, "run", "w.fabro")

    repo.write({"base": "both\n"})
    repo.git("add", "base")
    repo.git("commit", "-q", "--no-edit")
    assert len(repo.git("rev-list", "--parents", "-1", "HEAD").split()) == 3


def test_a_bare_repository_runs_in_a_work_tree_of_its_own(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    bare = GitRepo(tmp_path / "bare.git")
    repo.git("clone", "-q", "--bare", ".", str(bare.path))

    fabro(bare.path, "run", str(repo.path / "w.fabro"))

    assert files(bare, run_of(bare)) == ["base", "made", "seen", "w.fabro"]
    refused = fabro(bare.path, "run", "--in-place", str(repo.path / "w.fabro"), status=128)
    assert "a bare repository has no work tree to run in" in refused.stderr


def test_a_subfolder_is_as_good_as_the_top(repo: GitRepo) -> None:
    repo.commit({"base": "base\n", "deep/down/f": "1\n", "w.fabro": WORKFLOW})

    fabro(repo.path / "deep" / "down", "run", "../../w.fabro")

    assert files(repo, run_of(repo)) == ["base", "deep/down/f", "made", "seen", "w.fabro"]


def test_git_dir_and_work_tree_in_the_environment_are_followed(
    repo: GitRepo, tmp_path: Path
) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    variables = {"GIT_DIR": str(repo.path / ".git"), "GIT_WORK_TREE": str(repo.path)}

    fabro(elsewhere, "run", str(repo.path / "w.fabro"), env=variables)

    assert files(repo, run_of(repo)) == ["base", "made", "seen", "w.fabro"]


@pytest.mark.parametrize(
    "how", [["--depth", "1"], ["--filter=blob:none"]], ids=["shallow", "partial"]
)
def test_a_clone_that_has_not_all_is_enough(repo: GitRepo, tmp_path: Path, how: list[str]) -> None:
    repo.commit({"base": "base\n"})
    repo.commit({"w.fabro": WORKFLOW})
    repo.git("config", "uploadpack.allowFilter", "true")
    clone = GitRepo(tmp_path / "clone")
    repo.git("clone", "-q", *how, f"file://{repo.path}", str(clone.path))
    before = belongings(clone)

    fabro(clone.path, "run", "w.fabro")

    assert belongings(clone) == before
    assert files(clone, run_of(clone)) == ["base", "made", "seen", "w.fabro"]


def test_no_identity_is_no_obstacle(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.commit({"base": "base\n", "w.fabro": WORKFLOW})
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"):
        monkeypatch.delenv(f"GIT_{name}")
    repo.git("config", "user.useConfigOnly", "true")

    fabro(repo.path, "run", "w.fabro")

    by = repo.git("log", "-1", "--format=%an <%ae>|%cn <%ce>", run_of(repo))
    assert by == "Fabro <noreply@fabro.sh>|Fabro <noreply@fabro.sh>"


def test_a_folder_without_a_repository_has_a_journal_only(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "w.fabro").write_text(WORKFLOW)

    done = fabro(folder, "run", "w.fabro")

    assert "not a git repository: the run has no checkpoints, only its journal" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["made", "seen", "w.fabro"]
    assert " success " in fabro(folder, "list", "-a").stdout
