"""Names of files, nodes and messages that would command a terminal: printed, they are harmless."""

from __future__ import annotations

import os
import subprocess
import unicodedata
from pathlib import Path

import pytest

from tests.conftest import GitRepo
from tests.scenario.test_places import PROGRAM, run_of

#: Clears a screen, sets a title, reverses what follows, forges a line and a row of a table.
EVIL = "a\x1b[2J\x1b]0;t\x07\u202eb\u2066c\rd\x9b31m"
LINES = EVIL + "\nfatal: forged\n@9 forged"
WORKFLOW = """digraph "G" {
  start [shape=Mdiamond]; exit [shape=Msquare]
  one [label="%s", script="echo 1 >one; cat name | xargs -0 touch; cat name"]
  two [label="%s", script="echo 2 >one; cat name >&2; exit 1"]
  start -> one -> two -> exit
}
"""


def typed(folder: Path, *args: str) -> tuple[int, bytes]:
    done = subprocess.run(
        [*PROGRAM, *args], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


def commands(text: str) -> set[str]:
    """The characters of a text that do something instead of being seen."""
    odd = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs")}
    return odd - {"\n", "\t"}


@pytest.fixture
def folder(repo: GitRepo) -> Path:
    """A repository where everything a stranger can name, is named so; a run that failed."""
    (repo.path / "name").write_text(LINES + "\0")
    repo.commit({"w.fabro": WORKFLOW % (EVIL, EVIL), "name": LINES + "\0"})
    status, said = typed(repo.path, "run", "w.fabro", "--goal", LINES, "--label", "who=" + EVIL)
    assert status == 1, said
    assert not commands(said.decode())
    run = run_of(repo)
    repo.git("worktree", "prune")
    [path] = [
        Path(line.removeprefix("worktree "))
        for line in repo.git("worktree", "list", "--porcelain").splitlines()
        if line.endswith("/worktree")
    ]
    (path / LINES.replace("d", "by hand")).write_text(EVIL)
    tree = GitRepo(path)
    tree.git("add", "-A")
    author = f"--author={EVIL.translate({0x1B: None, 0x07: None, 0x0D: None})} <a@b>"
    tree.git("commit", "-qm", LINES, author)
    (path / "untracked\x1b[2J\u202e").write_text(EVIL)
    assert run in tree.git("symbolic-ref", "HEAD")
    return path


LOOKING = [
    ["list", "-a"],
    ["log"],
    ["log", "--stat"],
    ["log", "--patch"],
    ["log", "--graph"],
    ["log", "--oneline"],
    ["show"],
    ["show", "@1"],
    ["show", "two"],
    ["diff"],
    ["diff", "--stat"],
    ["diff", "--name-only"],
    ["diff", "@1", "@2", "--context"],
    ["events", "--pretty"],
    ["graph", "w.fabro"],
    ["rewind", "--list"],
    ["rewind", "-n", "@1"],
    ["rewind", "@1"],
    ["rewind", "@1", "-y"],
    ["fork", "@1"],
    ["op", "log"],
]
REFUSED = [
    ["show", EVIL],
    ["show", LINES, "@1"],
    ["rewind", EVIL + "@1"],
    [EVIL],
]


@pytest.mark.parametrize("words", LOOKING + REFUSED, ids=lambda words: ascii(" ".join(words)))
def test_a_hostile_name_prints_harmlessly(folder: Path, words: list[str]) -> None:
    status, said = typed(folder, *words)

    text = said.decode()
    assert said != b""
    assert "Traceback" not in text
    assert commands(text) == set()
    assert not [line for line in text.splitlines() if line.startswith(("fatal: forged", "@9"))]
    assert (status in (128, 129)) == (words in REFUSED), text


@pytest.mark.parametrize(
    "words",
    [["list", "-a"], ["log"], ["show"], ["show", "@1"], ["diff"], ["rewind", "-n", "@1"]],
    ids=" ".join,
)
def test_json_has_hostile_names_escaped(folder: Path, words: list[str]) -> None:
    status, said = typed(folder, *words, "--json")

    assert status == 0
    assert commands(said.decode()) == set()


def test_operations_on_hostile_names_are_told_harmlessly(folder: Path) -> None:
    before = sorted(os.listdir(os.fsencode(folder)))

    for words in (["rewind", "@1", "-y"], ["undo"], ["redo"], ["undo"], ["op", "log"]):
        status, said = typed(folder, *words)
        assert (status, commands(said.decode())) == (0, set()), said
    for operation in [row.split()[0].decode() for row in said.splitlines()[1:]]:
        status, said = typed(folder, "op", "show", operation)
        assert (status, commands(said.decode())) == (0, set()), said

    assert sorted(os.listdir(os.fsencode(folder))) == before
