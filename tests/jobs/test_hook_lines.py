"""What hooks are told: by git's lines, by its command line, by a hook manager."""

from __future__ import annotations

import pytest

from git_fabro.errors import RecordError, RequestError
from git_fabro.git.discover import open_repository
from git_fabro.jobs.hooks import caller, post_rewrite, pre_push
from git_fabro.jobs.hooks.pre_push import Pushing
from tests.conftest import GitRepo

A, B, ZERO = "a" * 40, "b" * 40, "0" * 40


def test_a_line_of_pre_push_is_read_from_its_end() -> None:
    lines = [
        f"refs/heads/x {A} refs/heads/x {ZERO}\n".encode(),
        f"(delete) {ZERO} refs/heads/y {B}\n".encode(),
        f"HEAD@{{1 day ago}} {A} refs/heads/\udcff {B}\n".encode(errors="surrogateescape"),
    ]

    assert list(pre_push.parse(lines)) == [
        Pushing(A, "refs/heads/x", ZERO),
        Pushing(ZERO, "refs/heads/y", B),
        Pushing(A, "refs/heads/\udcff", B),
    ]


def test_what_is_no_line_of_a_hook_is_refused() -> None:
    with pytest.raises(RequestError, match="not a line of pre-push"):
        list(pre_push.parse([b"one two\n"]))
    with pytest.raises(RecordError, match="not an object name"):
        list(post_rewrite.parse([b"one two\n"]))


def test_a_line_of_post_rewrite_may_say_more() -> None:
    assert list(post_rewrite.parse([f"{A} {B}\n".encode(), f"{B} {A} more\n".encode()])) == [
        (A, B),
        (B, A),
    ]


def test_pre_commit_tells_of_one_ref_by_its_variables() -> None:
    told = {
        "PRE_COMMIT_REMOTE_NAME": "origin",
        "PRE_COMMIT_REMOTE_URL": "ssh://host/x",
        "PRE_COMMIT_REMOTE_BRANCH": "refs/heads/x",
        "PRE_COMMIT_TO_REF": A,
    }

    assert pre_push.from_pre_commit(told) == (
        ["origin", "ssh://host/x"],
        (Pushing(A, "refs/heads/x", ZERO),),
    )
    assert pre_push.from_pre_commit({}) is None


@pytest.mark.parametrize(
    ("words", "is_dry"),
    [
        ("git push -n origin x", True),
        ("git push origin x --dry-run", True),
        ("git push --dry origin", True),
        ("git -C there -c a=b push -fn origin", True),
        ("/usr/libexec/git-core/git-push -n", True),
        ("git p origin", True),
        ("git push --dry-run --no-dry-run origin", False),
        ("git push -o -n origin", False),
        ("git push -on origin", False),
        ("git push origin -- -n", False),
        ("git push --no-verify --signed origin", False),
        ("git push --delete origin x", False),
    ],
)
def test_a_dry_run_is_read_off_a_command_line(repo: GitRepo, words: str, is_dry: bool) -> None:
    repo.git("config", "alias.p", "push --dry-run")

    found = caller.push_words(words.split(), open_repository(repo.path))

    assert found is not None
    assert caller.says_dry_run(found) == is_dry


@pytest.mark.parametrize("words", ["", "sh -c x", "git fabro hook pre-push", "git fetch -n", "git"])
def test_what_is_no_push_is_none(repo: GitRepo, words: str) -> None:
    assert caller.push_words(words.split(), open_repository(repo.path)) is None
