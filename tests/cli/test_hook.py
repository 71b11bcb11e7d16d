"""``git fabro hook``: what a hook manager calls."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo

#: What neither a hook may load: a commit or a push waits for it.
HEAVY = ("typer", "rich", "dulwich.porcelain", "dulwich.repo", "git_fabro.cli")


@pytest.mark.parametrize("name", ["post_commit", "post_rewrite", "pre_push"])
def test_a_hook_loads_no_command_line_and_no_porcelain(name: str) -> None:
    code = (
        f"import sys, json, git_fabro.jobs.hooks.{name}\n"
        "print(json.dumps([one for one in sys.modules]))"
    )

    printed = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)

    loaded = json.loads(printed.stdout)
    assert [one for one in loaded if one.startswith(HEAVY)] == []


def test_a_commit_by_hand_is_recorded(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")
    run = shell.run_id()
    repo.git("switch", "-q", f"fabro/run/{run}")
    commit = repo.commit({"mine": "1\n"})

    done = shell("hook", "post-commit")

    assert done == Typed(0, "", "")
    subject = repo.git("log", "-1", "--format=%s", f"fabro/meta/{run}")
    assert subject == f"commit {commit[:12]}"


@pytest.mark.parametrize("name", ["post-commit", "post-rewrite"])
def test_on_another_branch_there_is_nothing_to_do(shell: Shell, repo: GitRepo, name: str) -> None:
    shell("run", "-q", "two")
    before = repo.git("for-each-ref")

    assert shell("hook", name, "amend") == Typed(0, "", "")
    assert repo.git("for-each-ref") == before


def test_a_git_of_ours_calls_no_hook_hk12(
    shell: Shell, repo: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("run", "-q", "two")
    repo.git("switch", "-q", f"fabro/run/{shell.run_id()}")
    repo.commit({"mine": "1\n"})
    before = repo.git("for-each-ref")
    monkeypatch.setenv("GIT_FABRO_HOOK", "1")

    assert shell("hook", "post-commit") == Typed(0, "", "")
    assert repo.git("for-each-ref") == before


def test_a_hook_that_there_is_not_is_refused(shell: Shell) -> None:
    assert shell("hook", "post-comit") == Typed(
        128, "", "fatal: no such hook: post-comit\nhint: git fabro hook post-commit\n"
    )
    assert shell("hook").status == 129
