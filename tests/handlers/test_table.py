"""The table of kinds: one's own handlers, and what a dry run takes as a success."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from git_fabro.errors import RequestError
from git_fabro.handlers import table
from git_fabro.handlers.call import Call, Result
from git_fabro.workflow.state import Outcome
from tests.handlers.calls import a_call, a_node

NOBODY: Any = None


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kinds that a test registers are gone after it."""
    before = table.own_kinds()
    yield
    for kind in table.own_kinds() - before:
        table._OWN.pop(kind)


def shout(call: Call) -> Result:
    return Result(Outcome(status="success", notes=call.node.id.upper()))


@pytest.mark.usefixtures("own")
def test_a_kind_of_ones_own_is_run(tmp_path: Path) -> None:
    table.register("acme.shout", shout)

    result = table.run_node(a_call(tmp_path, node=a_node("a", "acme.shout")), NOBODY)

    assert "acme.shout" in table.own_kinds()
    assert result.outcome.notes == "A"


@pytest.mark.parametrize("kind", ["start", "command", "human", "parallel", "manager", "", "a b"])
def test_a_name_that_is_taken_or_no_word_is_refused(kind: str) -> None:
    with pytest.raises(RequestError, match="node kind is"):
        table.register(kind, shout)


def test_a_kind_that_nobody_registered_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no handler for nodes of kind acme-lost: a"):
        table.run_node(a_call(tmp_path, node=a_node("a", "acme-lost")), NOBODY)


SAID = "[simulated] a"


@pytest.mark.parametrize(
    ("kind", "updates"),
    [
        ("agent", {"last_stage": "a", "last_response": SAID, "response.a": SAID}),
        ("prompt", {"last_stage": "a", "last_response": SAID, "response.a": SAID}),
        ("command", {"command.output": SAID, "command.stderr": ""}),
        ("wait", {}),
        ("start", {}),
        ("exit", {}),
        ("conditional", {}),
        ("fan_in", {}),
    ],
)
def test_a_dry_run_takes_a_node_as_success(
    tmp_path: Path, kind: str, updates: dict[str, str]
) -> None:
    node = a_node("a", kind, prompt="think", script="exit 1", duration=600.0)

    result = table.simulate(a_call(tmp_path, node=node), NOBODY)

    assert result == Result(Outcome(status="success", context_updates=updates))
