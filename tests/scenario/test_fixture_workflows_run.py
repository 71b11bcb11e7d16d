"""The shared example workflows, run by the program: status, exit status, commits and tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from git_fabro import homes, reading
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import Doors
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.state import Line, RunState
from tests.conftest import GitRepo

FOLDER = Path(__file__).parents[3] / "shared/fixtures/workflows"
AGENT = FOLDER / "agents/scripted-agent"
GATE = "06-human-gate.fabro"
TOKEN = "tok-5f2c9a7e41d8b036"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the example workflows are not here")

#: Workflow, arguments, status, run commits, tree.
TABLE = [
    ("01-build-and-test.fabro", [], "success", 4, "6bc6a998060977c01313207d8bf720994af0ee52"),
    ("02-diamond.fabro", [], "success", 4, "58d81e28efa05d530ddf1dc6050c4e89613f02ae"),
    (
        "03-plan-implement-verify.fabro",
        ["AGENT"],
        "success",
        12,
        "d7bf865c387bb359f8ef8eef22ae5b5327b2fe5c",
    ),
    ("04-parallel-all.fabro", ["AGENT"], "success", 3, "58b04f6c39853fffcf1047e720df2bae7997abf0"),
    (
        "05-parallel-winner.fabro",
        ["AGENT"],
        "partial_success",
        3,
        "b542f5eaf522843f4f373455b0fc380b17c2ae12",
    ),
    (GATE, ["AGENT", "--auto-approve"], "success", 4, "2c7ad8c918267af51ac2f67b90be3b8734ea3b1f"),
    ("07-retries.fabro", [], "success", 4, "664df6cee0a5a023c8d4f6fafca2f103825c5339"),
    ("08-goal-gate.fabro", ["AGENT"], "success", 10, "1246685d928df2862be7170e9a57edf717c14469"),
    ("09-big-outputs.toml", ["AGENT"], "success", 4, "5587c6ab266aa22353de14863875864b9b2ca833"),
    ("10 odd files.dot", [], "success", 5, "63b2b8c8a5748910329a8905de7a8cac7e7bb9ee"),
]


@pytest.fixture
def base(repo: GitRepo) -> GitRepo:
    """The small project that all of them start from."""
    shutil.copytree(FOLDER / "base", repo.path, dirs_exist_ok=True, symlinks=True)
    repo.commit(message="base")
    assert repo.git("rev-parse", "main^{tree}") == "e1dd9c4a2ea6898e3be242a4db8ef3f6263bb3e6"
    return repo


def program(
    repo: GitRepo, *args: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "git_fabro", *args],
        cwd=repo.path,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )


def begin(
    repo: GitRepo, name: str, args: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[bytes]:
    given: list[str] = []
    for arg in args:
        given += ["--agent-command", str(AGENT)] if arg == "AGENT" else [arg]
    return program(repo, "run", str(FOLDER / name), *given, environment=environment)


def only_run(repo: GitRepo) -> RunId:
    [run] = reading.runs(Doors.open(repo.path))
    return run


def state_of(repo: GitRepo, run: RunId) -> Line:
    return _state(repo, run).line


def _state(repo: GitRepo, run: RunId) -> RunState:
    doors = Doors.open(repo.path)
    home = homes.home(doors.repository, repo.path, dict(os.environ))
    return reading.view(doors, run, RunDirectory.of(home, run)).state


def end_of(repo: GitRepo) -> tuple[str, int, str]:
    """Status, number of run commits, and tree, as the table has them."""
    run = only_run(repo)
    count = repo.git("rev-list", "--count", "--first-parent", f"main..fabro/run/{run}")
    tree = repo.git("rev-parse", f"fabro/run/{run}^{{tree}}")
    return _state(repo, run).status, int(count), tree


@pytest.mark.parametrize(
    ("name", "args", "status", "commits", "tree"),
    [pytest.param(*row, id=row[0].split(".")[0]) for row in TABLE],
)
def test_an_example_ends_as_its_table_says(
    base: GitRepo, name: str, args: list[str], status: str, commits: int, tree: str
) -> None:
    done = begin(base, name, args, DEMO_API_TOKEN=TOKEN)

    assert done.returncode == 0, done.stderr.decode()
    assert end_of(base) == (status, commits, tree)
    base.fsck()


def test_no_object_holds_the_token(base: GitRepo) -> None:
    begin(base, "09-big-outputs.toml", ["AGENT"], DEMO_API_TOKEN=TOKEN)

    objects = base.git_bytes("cat-file", "--batch-all-objects", "--batch")

    assert (TOKEN.encode() in objects, b"rows: 50000" in objects) == (False, True)


def test_big_values_are_artifacts_in_git(base: GitRepo) -> None:
    begin(base, "09-big-outputs.toml", ["AGENT"], DEMO_API_TOKEN=TOKEN)

    run = only_run(base)
    names = base.git("ls-tree", "--name-only", f"fabro/meta/{run}:artifacts").split()
    assert {"survey.table.json", "response.survey.json"} <= set(names)
    pointer = state_of(base, run).context_values["survey.table"]
    assert str(pointer).startswith("blob://sha256/")


def test_a_gate_is_answered_from_outside_until_its_deadline(base: GitRepo) -> None:
    first = begin(base, GATE, ["AGENT"])
    run = only_run(base)

    def answer(gate: str, text: str) -> int:
        return program(base, "answer", run, gate, text).returncode

    statuses = [first.returncode, answer("review@1", "Thank the reader.")]
    statuses += [program(base, "resume", run).returncode, answer("review@2", "approve")]
    context = state_of(base, run).context_values
    statuses += [program(base, "resume", run).returncode]
    refused = answer("publish@1", "perhaps")
    deadline = engine.moment(_state(base, run).deadlines["publish@1"])
    _wait_for(deadline.timestamp())
    statuses += [program(base, "resume", run).returncode]

    assert statuses == [3, 0, 3, 0, 3, 0]
    assert refused not in (0, 3)
    assert context["human.gate.text"] == "Thank the reader."
    assert context["human.gate.selected"] == "freeform"
    assert end_of(base) == ("success", 6, "b1c2a927fca57899dae2b4cd4471a4bf6212e1ca")
    assert state_of(base, run).completed_nodes == (
        "start",
        "draft",
        "review",
        "revise",
        "review",
        "publish",
        "hold",
    )


def _wait_for(moment: float) -> None:
    """Returns once the clock says so, by a process of its own that waits for it."""
    script = f'while [ "$(date +%s)" -le {int(moment)} ]; do sleep 0.1; done'
    subprocess.run(["sh", "-c", script], check=True)
