from __future__ import annotations

import os

import pytest

from git_fabro.errors import GitError
from git_fabro.git.discover import open_repository
from git_fabro.git.program import LOCAL_VARIABLES, Git, find_git
from tests.conftest import GitRepo


def git() -> Git:
    found = find_git()
    assert found is not None
    return found


def test_no_git_on_the_path_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    assert find_git() is None


def test_a_failure_carries_what_ran_and_what_it_said(repo: GitRepo) -> None:
    with pytest.raises(GitError) as caught:
        git().run(["rev-parse", "--verify", "nothing"], cwd=repo.path)

    assert caught.value.message == "git rev-parse failed: Needed a single revision"
    assert caught.value.argv == ("git", "rev-parse", "--verify", "nothing")
    assert "Needed a single revision" in caught.value.stderr
    assert caught.value.hint == f"git -C {repo.path} rev-parse --verify nothing"


def test_a_status_that_is_expected_is_no_failure(repo: GitRepo) -> None:
    assert git().run(["config", "fabro.absent"], cwd=repo.path, ok=(0, 1)) == b""


def test_a_program_that_cannot_be_started_is_a_git_error() -> None:
    with pytest.raises(GitError):
        Git("/nonexistent/git", {}).run(["version"])


def test_a_call_that_takes_too_long_is_a_git_error(repo: GitRepo) -> None:
    repo.git("config", "alias.wait", "!sleep 60")

    with pytest.raises(GitError, match="timed out"):
        git().run(["wait"], cwd=repo.path, timeout_s=0.05)


def test_no_variable_of_another_repository_reaches_git_hk9(
    repo: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = set(repo.git("rev-parse", "--local-env-vars").splitlines())
    for name in LOCAL_VARIABLES:
        monkeypatch.setenv(name, "/nonexistent")

    environment = git().environment()

    configuration = {"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}
    assert known - LOCAL_VARIABLES <= configuration
    assert {name for name in LOCAL_VARIABLES if name in environment} == {"GIT_NO_REPLACE_OBJECTS"}


def test_messages_are_in_english_cp13(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")

    assert git().environment()["LC_ALL"] == "C"
    with pytest.raises(GitError, match="Needed a single revision"):
        git().run(["rev-parse", "--verify", "nothing"], cwd=repo.path)


def test_our_calls_run_no_hook_sign_nothing_and_say_whose_they_are(repo: GitRepo) -> None:
    hook = repo.path / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", "false")

    git().run(["commit", "-q", "--allow-empty", "-m", "x"], cwd=repo.path)

    assert not (repo.path / "hooked").exists()
    assert git().environment()["GIT_FABRO_HOOK"] == "1"
    assert git().environment()["GIT_TERMINAL_PROMPT"] == "0"


def test_a_configured_hook_is_switched_off_hk7(repo: GitRepo) -> None:
    repo.git("config", "hook.Linter.command", "false")
    repo.git("config", "hook.Linter.event", "post-commit")

    found = open_repository(repo.path)

    assert found.git is not None
    assert "hook.Linter.enabled=false" in found.git.argv(["version"])


def test_a_child_is_not_in_the_terminals_group(repo: GitRepo) -> None:
    repo.git("config", "alias.group", "!ps -o pgid= -p $$")

    group = int(git().run(["group"], cwd=repo.path))

    assert group != os.getpgrp()
