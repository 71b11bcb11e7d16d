from __future__ import annotations

import os
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError, NotFoundError
from git_fabro.git.discover import in_progress, open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.refs import Refs
from tests.conftest import GitRepo


@pytest.fixture(params=["git", "no git"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Called by a test when its repository stands: from then on git may be gone from PATH."""
    return str(request.param)


def gone(monkeypatch: pytest.MonkeyPatch, either_way: str) -> None:
    if either_way == "no git":
        monkeypatch.setenv("PATH", "/nonexistent")


def test_a_subfolder_belongs_to_its_repository_cp12(
    repo: GitRepo, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"deep/er/a": "1"})
    gone(monkeypatch, either_way)

    found = open_repository(repo.path / "deep/er")

    assert found.work_tree == found.top == repo.path
    assert found.git_dir == found.common_dir == repo.path / ".git"
    assert found.objects_dir == repo.path / ".git/objects"
    assert found.head == "refs/heads/main"
    assert found.object_format == "sha1"
    assert not found.is_bare
    assert (found.git is None) == (either_way == "no git")


def test_a_linked_work_tree_has_its_own_git_dir(
    repo: GitRepo, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"a": "1"})
    linked = repo.path.parent / "linked"
    repo.git("worktree", "add", "-q", "--detach", str(linked))
    gone(monkeypatch, either_way)

    found = open_repository(linked)

    assert found.work_tree == linked
    assert found.git_dir == repo.path / ".git/worktrees/linked"
    assert found.common_dir == repo.path / ".git"
    assert found.head is None


def test_a_bare_repository_has_no_work_tree(
    repo: GitRepo, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = repo.path.parent / "bare.git"
    repo.git("init", "-q", "--bare", "-b", "trunk", "--object-format=sha256", str(bare))
    gone(monkeypatch, either_way)

    found = open_repository(bare)

    assert found.is_bare
    assert found.work_tree is None
    assert found.top == found.common_dir == bare
    assert (found.head, found.object_format) == ("refs/heads/trunk", "sha256")


def test_the_environment_names_a_repository_cp12(
    repo: GitRepo, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"a": "1"})
    elsewhere = repo.path.parent / "elsewhere"
    elsewhere.mkdir()
    gone(monkeypatch, either_way)
    monkeypatch.setenv("GIT_DIR", str(repo.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(elsewhere))

    found = open_repository(elsewhere)

    assert (found.git_dir, found.work_tree) == (repo.path / ".git", elsewhere)


def test_no_repository_is_not_found(
    tmp_path: Path, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone(monkeypatch, either_way)

    with pytest.raises(NotFoundError, match="not a git repository"):
        open_repository(tmp_path)
    with pytest.raises(NotFoundError, match="not a folder"):
        open_repository(tmp_path / "absent")


def test_a_ceiling_ends_the_search_wt17(
    repo: GitRepo, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"deep/a": "1"})
    gone(monkeypatch, either_way)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repo.path))

    with pytest.raises(NotFoundError):
        open_repository(repo.path / "deep")


def test_configuration_is_what_git_says(
    repo: GitRepo, either_way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.git("config", "--global", "fabro.remote", "users")
    repo.git("config", "fabro.remote", "own")
    repo.git("config", "--add", "remote.Up.Stream.fetch", "one")
    repo.git("config", "--add", "remote.Up.Stream.fetch", "two words")
    repo.git("config", "fabro.durable", "yes")
    with (repo.path / ".git/config").open("a") as file:
        file.write("[fabro]\n\tsign\n")
    gone(monkeypatch, either_way)

    found = open_repository(repo.path)

    assert found.config("Fabro.Remote") == "own"
    assert found.config_all("fabro.remote") == ("users", "own")
    assert found.config_all("remote.Up.Stream.fetch") == ("one", "two words")
    assert found.config("remote.up.stream.fetch") is None
    assert found.config_bool("fabro.durable") is True
    assert found.config_bool("fabro.sign") is True
    assert found.config_bool("fabro.absent", default=True) is True


def test_configuration_of_the_command_line_counts_wt17_cp12(
    repo: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "fabro.one")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "counted")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'fabro.two'='given'")

    found = open_repository(repo.path)

    assert (found.config("fabro.one"), found.config("fabro.two")) == ("counted", "given")
    assert found.git is not None
    assert found.git.run(["config", "fabro.two"], cwd=repo.path) == b"given\n"


def test_settings_of_our_own_calls_are_not_the_users(repo: GitRepo) -> None:
    found = open_repository(repo.path)

    assert found.config("core.hooksPath") is None
    assert found.config("commit.gpgSign") is None


def test_a_work_tree_has_configuration_of_its_own_wt17(repo: GitRepo) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", "fabro.here", "only")

    assert open_repository(repo.path).config("fabro.here") == "only"


def test_a_folder_with_a_line_feed_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "two\nlines"
    path.mkdir()
    repo = GitRepo(path)
    repo.git("init", "-q")

    assert open_repository(path).work_tree == path


def test_a_repository_that_git_refuses_is_an_error_with_its_reason(repo: GitRepo) -> None:
    (repo.path / ".git/config").write_text("[core\n")

    with pytest.raises(GitError, match="bad config"):
        open_repository(repo.path)


def test_the_folder_of_git_itself_has_no_work_tree(repo: GitRepo) -> None:
    found = open_repository(repo.path / ".git")

    assert found.work_tree is None
    assert not found.is_bare


@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_an_operation_that_is_open_is_named(repo: GitRepo, operation: str) -> None:
    base = repo.commit({"a": "1"})
    repo.commit({"a": "2"})
    repo.git("checkout", "-q", "-b", "side", base)
    repo.commit({"a": "3"})
    assert in_progress(open_repository(repo.path)) is None

    args = {"bisect": ["start"], "revert": [base]}.get(operation, ["main"])
    repo.git(operation, *args, ok=(0, 1, 128))

    assert in_progress(open_repository(repo.path)) == operation


def test_looking_needs_no_git_program(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    tip = repo.commit({"dir/a": "content"})
    repo.git("gc", "-q")
    gone(monkeypatch, "no git")

    found = open_repository(repo.path)

    with open_objects(found) as objects, Refs(found, objects) as refs:
        assert refs.read("HEAD") == tip
        assert refs.list("refs/heads/") == {"refs/heads/main": tip}
        assert objects.blob_at(refs.list("refs/heads/")["refs/heads/main"], "dir/a") == b"content"


def test_objects_in_quarantine_are_seen_sv1(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.commit({"a": "1"})
    pushed = repo.path.parent / "quarantine"
    pushed.mkdir()
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(pushed))
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(repo.path / ".git/objects"))
    second = repo.commit({"a": "2"})

    with open_objects(open_repository(repo.path)) as objects:
        history = list(objects.history(Oid(second)))

    assert len(history) == 2
    assert not (repo.path / ".git/objects" / second[:2] / second[2:]).exists()
    assert os.listdir(pushed)
