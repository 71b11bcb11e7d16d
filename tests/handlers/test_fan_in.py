"""Joins: which branch is kept, how the ranking is made, and what a conflict says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.handlers import fan_in
from git_fabro.handlers.call import Call, Result
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.state import Json
from tests.handlers.calls import Notices, a_call, a_node, a_settings
from tests.workflow.graphs import graph_of


class Files:
    """Stands where a driver does: remembers which heads were taken, and knows of conflicts."""

    def __init__(self, *conflicts: str, base: str | None = "ba5e") -> None:
        self.conflicts, self.base = conflicts, base
        self.taken: list[str] = []

    def tip(self, branch: str | None) -> Oid | None:
        return Oid(self.base) if self.base else None

    def resolve(self, value: Json) -> Json:
        return value

    def take_trees(self, base: Oid, heads: Sequence[Oid], call: Call) -> tuple[str, ...]:
        self.taken += heads
        return self.conflicts


def one(id: str, status: str = "success", **more: Json) -> dict[str, Json]:
    return {"id": id, "status": status, "head_sha": f"head-{id}", **more}


def join(folder: Path, results: Any, files: Any, **changes: Any) -> Result:
    call = a_call(folder, context={"parallel.results": results}, **changes)
    return fan_in.run(call, files)


@pytest.mark.parametrize(
    ("results", "best"),
    [
        pytest.param([one("b"), one("a")], "a", id="the smallest id"),
        pytest.param([one("a", score=1), one("b", score=2)], "b", id="the highest score"),
        pytest.param([one("a", score=-1), one("b")], "b", id="no score is 0"),
        pytest.param([one("a", score=9), one("b", score="10.5")], "b", id="a score as text"),
        pytest.param([one("a"), one("b", score="nan")], "a", id="no number is 0"),
        pytest.param([one("b", score="many"), one("a")], "a", id="a word is 0"),
        pytest.param(
            [one("a", "partial_success", score=99), one("b")], "b", id="the status before the score"
        ),
        pytest.param(
            [one("a", "fail", score=99), one("b", "skipped"), one("c", "partial_success")],
            "c",
            id="only good ones",
        ),
    ],
)
def test_the_winner(tmp_path: Path, results: list[Json], best: str) -> None:
    files = Files()

    result = join(tmp_path, results, files, node=a_node("j", "fan_in"))

    updates = result.outcome.context_updates
    assert updates["parallel.fan_in.best_id"] == best
    assert updates["parallel.fan_in.best_head_sha"] == f"head-{best}"
    assert (files.taken, result.merged) == ([f"head-{best}"], (f"head-{best}",))


def test_all_good_branches_are_merged_in_file_order(tmp_path: Path) -> None:
    files = Files()
    results = [one("z"), one("f", "fail"), one("a", "partial_success"), one("k", "skipped")]

    result = join(tmp_path, results, files, node=a_node("j", "fan_in", merge="all"))

    assert (result.outcome.status, files.taken) == ("success", ["head-z", "head-a"])
    assert result.outcome.context_updates == {"parallel.fan_in.best_outcome": "partial_success"}


def test_a_conflict_fails_and_merges_nothing(tmp_path: Path) -> None:
    files = Files("a", "b/c")

    result = join(tmp_path, [one("a"), one("b")], files, node=a_node("j", "fan_in", merge="all"))

    assert (result.outcome.status, result.merged) == ("fail", ())
    assert result.outcome.context_updates == {"parallel.fan_in.conflicts": ["a", "b/c"]}


@pytest.mark.parametrize("merge", ["winner", "all"])
def test_without_a_good_branch_the_join_fails(tmp_path: Path, merge: str) -> None:
    files = Files()

    result = join(tmp_path, [one("a", "fail")], files, node=a_node("j", "fan_in", merge=merge))

    assert result.outcome.failure is not None
    assert (result.outcome.failure.message, files.taken) == ("no branch succeeded", [])


@pytest.mark.parametrize("results", [None, [], "text"])
def test_a_join_without_results_fails(tmp_path: Path, results: Json) -> None:
    result = join(tmp_path, results, Files(), node=a_node("j", "fan_in"))

    assert result.outcome.failure is not None
    assert result.outcome.failure.message == "there are no parallel results to join"


def test_without_git_no_file_is_touched(tmp_path: Path) -> None:
    files = Files(base=None)

    result = join(tmp_path, [one("a")], files, node=a_node("j", "fan_in"))

    assert (result.outcome.status, files.taken) == ("success", [])


@pytest.mark.parametrize(
    ("parallel", "joined", "taken"),
    [
        ("", "", ["head-b"]),
        ("merge=all", "", ["head-a", "head-b"]),
        ("merge=all", "merge=winner", ["head-b"]),
        ("", "merge=all", ["head-a", "head-b"]),
    ],
)
def test_how_is_said_at_the_join_else_at_the_fan_out(
    tmp_path: Path, parallel: str, joined: str, taken: list[str]
) -> None:
    graph = graph_of(
        f"s [shape=component, {parallel}]; a; b; j [shape=tripleoctagon, {joined}]; "
        "start -> s; s -> a -> j; s -> b -> j; j -> exit"
    )
    files = Files()

    join(
        tmp_path,
        [one("a"), one("b", score=1)],
        files,
        node=graph.nodes[NodeId("j")],
        graph=graph,
    )

    assert files.taken == taken


@pytest.mark.parametrize(
    ("said", "best", "codes"),
    [
        ('{"best_id": "a"}', "a", []),
        ('so: {"best_id": "a"}, no: {"best_id": "b"}', "b", []),
        ('{"best_id": "nope"}', "b", ["best_id_unknown"]),
        ("I cannot decide", "b", ["best_id_unknown"]),
    ],
)
def test_an_agent_may_name_the_winner(
    tmp_path: Path, said: str, best: str, codes: list[str]
) -> None:
    notices = Notices()
    node = a_node("j", "fan_in", prompt="which?")

    result = join(
        tmp_path,
        [one("a"), one("b", score=5)],
        Files(),
        node=node,
        text="which?",
        settings=a_settings(command=("sh", "-c", f"cat > /dev/null; echo '{said}'")),
        notice=notices,
    )

    assert (result.outcome.context_updates["parallel.fan_in.best_id"], notices.codes) == (
        best,
        codes,
    )
