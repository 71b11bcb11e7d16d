"""Command lines as a person types them, and what they print, with ids and times made stable."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_fabro.cli import start
from tests.conftest import GitRepo

_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_STABLE = (
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "<oid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "<time>"),
    (re.compile(r"\b(?:\d+ms|\d+\.\d+s|\d+m\d\ds)\b"), "<spent>"),
    (re.compile(r'("duration_ms": )\d+'), r"\1<spent>"),
)
_DEADLINE_S = 30.0

#: Two commands, both good.
TWO = """\
digraph Two {
    goal="ship it"
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan  [shape=parallelogram, script="echo planned | tee plan.txt"]
    build [shape=parallelogram, script="echo built | tee build.txt"]
    start -> plan -> build -> exit
}
"""
#: A question with two answers, of which one leads to a failure.
ASKS = """\
digraph Asks {
    goal="ask first"
    start  [shape=Mdiamond]; exit [shape=Msquare]
    review [shape=hexagon, label="Ship it?"]
    ship   [shape=parallelogram, script="echo shipped > shipped.txt"]
    hold   [shape=parallelogram, script="exit 3"]
    start -> review
    review -> ship [label="[Y] Yes"]
    review -> hold [label="[N] No"]
    ship -> exit
    hold -> exit
}
"""
#: Waits, after its first node, until a file named "go" is in the folder $GATE.
HELD = """\
digraph Held {
    start [shape=Mdiamond]; exit [shape=Msquare]
    first [shape=parallelogram, script="echo first"]
    held  [shape=parallelogram, script="while ! test -e $GATE/go; do sleep 0.05; done; echo held"]
    last  [shape=parallelogram, script="echo last"]
    start -> first -> held -> last -> exit
}
"""


@dataclass(frozen=True, slots=True)
class Typed:
    """What came of a command line: status, standard output, standard error."""

    status: int
    out: str
    err: str


def stable(text: str) -> str:
    """Text in which run ids, object names, times and durations are words; runs by order."""
    ids = list(dict.fromkeys(_ULID.findall(text)))
    for number, run in enumerate(ids):
        text = text.replace(run, "<run>" if len(ids) == 1 else f"<run {number + 1}>")
    for pattern, word in _STABLE:
        text = pattern.sub(word, text)
    return text


@dataclass(frozen=True, slots=True)
class Shell:
    """A prompt in a folder. Calling it runs a command in this process."""

    folder: Path
    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def __call__(self, *argv: str) -> Typed:
        """``git fabro ARGV``, its output made stable."""
        typed = self.exactly(*argv)
        return Typed(typed.status, stable(typed.out), stable(typed.err))

    def exactly(self, *argv: str) -> Typed:
        """``git fabro ARGV``, its output as it is."""
        self.captured.readouterr()
        self.patch.chdir(self.folder)
        status = start.main(list(argv))
        printed = self.captured.readouterr()
        return Typed(status, printed.out, printed.err)

    def apart(self, *argv: str) -> Typed:
        """``git fabro ARGV`` in a process of its own, its output made stable."""
        driver = process(self.folder, *argv)
        out, err = driver.communicate()
        return Typed(driver.returncode, stable(out), stable(err))

    def at(self, folder: Path) -> Shell:
        """The same prompt in another folder."""
        return Shell(folder, self.patch, self.captured)

    def run_id(self) -> str:
        """The id of the newest run."""
        return self.exactly("list", "-a", "-q").out.split("\n")[0]


@pytest.fixture
def shell(
    repo: GitRepo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A prompt in a repository with one commit and the workflows above."""
    flows = {"two": TWO, "asks": ASKS, "held": HELD}
    repo.commit({f"fabro/workflows/{name}/workflow.fabro": text for name, text in flows.items()})
    return Shell(repo.path, monkeypatch, capsys)


@pytest.fixture
def outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A prompt in a folder that belongs to no repository."""
    folder = tmp_path / "outside"
    folder.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return Shell(folder, monkeypatch, capsys)


def program(*argv: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "git_fabro", *argv]


def process(
    folder: Path, *argv: str, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """``git fabro ARGV`` in a process of its own, its output in pipes."""
    return subprocess.Popen(
        program(*argv),
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(is_true: Callable[[], bool], what: str) -> None:
    """Returns once something is true; fails if that takes too long."""
    deadline = time.monotonic() + _DEADLINE_S
    while not is_true():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
