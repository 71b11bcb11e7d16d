"""The names that Python programs may use; a change here is a change for them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import git_fabro
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.handlers.call import Call, Result
from git_fabro.workflow.state import SUCCESS, Outcome
from tests.conftest import GitRepo

TWO = """digraph Two { goal="ship it"; start [shape=Mdiamond]; exit [shape=Msquare]
plan [script="echo planned > plan.txt"]; build [script="echo built > build.txt"]
start -> plan -> build -> exit }
"""
ASKS = """digraph Asks { start [shape=Mdiamond]; exit [shape=Msquare]
review [shape=hexagon, label="Ship it?"]; ship [script="echo shipped"]
start -> review; review -> ship [label="[Y] Yes"]; ship -> exit }
"""


def test_the_package_exports_these_names() -> None:
    assert sorted(git_fabro.__all__) == ["Repository", "Run", "handlers", "open"]
    assert all(hasattr(git_fabro, name) for name in git_fabro.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = git_fabro.nope  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        pytest.param(git_fabro.Repository, ["run", "runs", "start"], id="Repository"),
        pytest.param(
            git_fabro.Run, ["id", "records", "resume", "state", "status", "timeline"], id="Run"
        ),
    ],
)
def test_the_classes_have_these_members(owner: type, names: list[str]) -> None:
    assert [name for name in dir(owner) if not name.startswith("_")] == names


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (git_fabro.open, ["path"]),
        (git_fabro.Repository.run, ["self", "name"]),
        (
            git_fabro.Repository.start,
            [
                "self",
                "workflow",
                "goal",
                "inputs",
                "labels",
                "agent",
                "agent_command",
                "model",
                "provider",
                "auto_approve",
                "dry_run",
                "dirty",
                "in_place",
                "checkpoints",
                "max_parallel",
                "on_record",
            ],
        ),
        (
            git_fabro.Run.resume,
            ["self", "auto_approve", "trust", "take_over", "keep_changes", "on_record"],
        ),
        (git_fabro.handlers.register, ["kind", "handler"]),  # type: ignore[attr-defined]
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_the_functions_take_these_parameters(
    function: Callable[..., object], parameters: list[str]
) -> None:
    assert list(inspect.signature(function).parameters) == parameters
    assert function.__doc__


def test_the_import_loads_nothing_else() -> None:
    code = "import sys, git_fabro; print(*(m for m in sys.modules if m.startswith('git_fabro')))"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (printed.stdout, printed.stderr) == ("git_fabro\n", "")


def test_a_run_is_begun_and_read(repo: GitRepo) -> None:
    repo.commit({"two.fabro": TWO})
    heard: list[str] = []

    run = git_fabro.open(repo.path).start(
        str(repo.path / "two.fabro"), on_record=lambda record: heard.append(record.event.kind)
    )

    assert (run.status(), run.state().status) == (SUCCESS, SUCCESS)
    assert [record.event.kind for record in run.records()] == heard
    assert [(one.ordinal, one.node, one.visit, one.link) for one in run.timeline()] == [
        (1, "plan", 1, "ok"),
        (2, "build", 1, "ok"),
    ]
    tip = repo.git("rev-parse", f"fabro/run/{run.id}")
    assert run.timeline()[-1].run_commit == tip
    assert [one.files_changed for one in run.timeline()] == [1, 1]


def test_a_run_is_found_and_resumed(repo: GitRepo) -> None:
    repo.commit({"asks.fabro": ASKS})
    repository = git_fabro.open(repo.path)
    blocked = repository.start(str(repo.path / "asks.fabro"))

    found = repository.run(blocked.id[:20].lower())
    state = found.resume(auto_approve=True)

    assert blocked.id == found.id == repository.runs()[-1].id
    assert (state.status, found.status()) == (SUCCESS, SUCCESS)
    with pytest.raises(RequestError, match="the run has ended in success"):
        found.resume()


def test_what_is_not_there_is_an_error(repo: GitRepo, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no run found matching 'nope'"):
        git_fabro.open(repo.path).run("nope")
    with pytest.raises(NotFoundError, match="not a folder"):
        git_fabro.open(tmp_path / "nope")


def test_a_kind_of_ones_own_is_run(repo: GitRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    def greet(call: Call) -> Result:
        call.directory.joinpath("hello.txt").write_text(call.node.text("to"))
        return Result(Outcome(status=SUCCESS))

    git_fabro.handlers.register("greet", greet)  # type: ignore[attr-defined]
    repo.commit(
        {
            "own.fabro": "digraph { start [shape=Mdiamond]; exit [shape=Msquare]\n"
            'hi [type=greet, to="you"]; start -> hi -> exit }\n'
        }
    )

    run = git_fabro.open(repo.path).start(str(repo.path / "own.fabro"))

    assert run.status() == SUCCESS
    assert repo.git("show", f"fabro/run/{run.id}:hello.txt") == "you"
