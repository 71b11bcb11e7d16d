"""What every test stands on: an environment with nothing of this machine, a fresh repository."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

#: The clock of a test repository: 2024-01-01T00:00:00Z. Fixed, so that object ids are stable.
WHEN = 1_704_067_200


@dataclass(frozen=True, slots=True)
class GitRepo:
    """A repository and the folder it lies in; ``git`` is the oracle of the tests."""

    path: Path

    def git(self, *args: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,)) -> str:
        """What git prints, without the last newline; undecodable bytes as surrogates."""
        return os.fsdecode(self.git_bytes(*args, stdin=stdin, ok=ok)).removesuffix("\n")

    def git_bytes(self, *args: str, stdin: bytes = b"", ok: tuple[int, ...] = (0,)) -> bytes:
        done = subprocess.run(["git", *args], cwd=self.path, input=stdin, capture_output=True)
        assert done.returncode in ok, (args, done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Files in the work tree, their folders made."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "work") -> str:
        """A commit of everything in the work tree, with these files written first; its full id."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def fsck(self) -> None:
        """Fail unless git finds every object well-formed and connected."""
        self.git("fsck", "--strict", "--full", "--no-dangling", "--no-progress")


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_RUNTIME_DIR": str(home / "runtime"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        "GIT_AUTHOR_NAME": "A. Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.com",
        "GIT_AUTHOR_DATE": f"{WHEN} +0000",
        "GIT_COMMITTER_NAME": "A. Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.com",
        "GIT_COMMITTER_DATE": f"{WHEN} +0000",
        "GIT_EDITOR": "false",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }


@pytest.fixture(autouse=True)
def hermetic(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No configuration, hook variable or home of this machine reaches a test.

    A test that has a folder of its own (tmp_path) has its home below it; one without (values only)
    has a home that does not exist, so that it stays cheap.
    """
    home = Path("/nonexistent")
    if "tmp_path" in request.fixturenames:
        home = Path(request.getfixturevalue("tmp_path")) / ".home"
        home.mkdir()
    for name in [name for name in os.environ if name.startswith(("GIT_", "FABRO_"))]:
        monkeypatch.delenv(name)
    for name, value in _environment(home).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    """An empty repository with branch main, in tmp_path/repo."""
    path = tmp_path / "repo"
    path.mkdir()
    made = GitRepo(path)
    made.git("init", "-q", "-b", "main")
    return made


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="the long tests at their full size")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick tests first: whole runs after values and doors, the campaigns last of all."""
    items.sort(key=lambda item: _length(item.path))


def _length(path: Path) -> int:
    if path.name in ("test_crash.py", "test_kill.py", "test_two_drivers.py"):
        return 2
    return 1 if path.parent.name == "scenario" else 0
