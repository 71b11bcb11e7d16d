"""Fabro's branches: which commits are checkpoints, which generation, what order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from git_fabro.checkpoint.foreign import (
    MetaEntry,
    RunCommit,
    RunEntry,
    generation,
    interior,
    is_checkpoint,
    is_final,
    is_of_run,
    parse_run_commit,
    timeline,
)
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Link

RUN = "01KKQ2KT7BS1KVPN21GY9K0733"
META = "bde608d04fde92175777b366078ef016ed4f1f5e"
FOOTER = "⚒️ Generated with [Fabro](https://fabro.sh)\n"
BLOCK = f"Fabro-Run: {RUN}\nFabro-Completed: 4\nFabro-Checkpoint: {META}\n"


def _message(subject: str, block: str = BLOCK) -> str:
    return f"{subject}\n\n{block}\n{FOOTER}"


def test_a_checkpoint_says_what_it_is_in_the_paragraph_behind_its_subject() -> None:
    said = parse_run_commit(_message(f"fabro({RUN}): review (success)"), RUN)

    assert said == RunCommit(run=RUN, node="review", status="success", completed=4, named=Oid(META))


def test_the_older_names_are_read() -> None:
    message = _message(f"arc({RUN}): a (b) (fail)", BLOCK.replace("Fabro-", "Arc-"))

    said = parse_run_commit(message)

    assert said is not None
    assert (said.node, said.status, said.named) == ("a (b)", "fail", META)


def test_a_commit_that_counts_its_visit_is_ours() -> None:
    said = parse_run_commit(f"fabro({RUN}): plan (success)\n\n{BLOCK}Fabro-Visit: 3\n")

    assert said is not None
    assert said.is_ours


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(_message(f"fabro({RUN}): fork (parallel_base)"), id="parallel base"),
        pytest.param(f"fabro({RUN}): branch1 (success)\n", id="the winner of a fan-out"),
        pytest.param(_message("fabro(01OTHER): review (success)"), id="another run's subject"),
        pytest.param(_message(f"fabro({RUN}): some words"), id="a person's subject"),
        pytest.param(f"Squash\n\n* fabro({RUN}): review (success)\n\n{BLOCK}", id="a squash merge"),
        pytest.param(
            _message(f"fabro({RUN}): x (fail)", BLOCK.replace("ed: 4", "ed: 0")), id="nothing done"
        ),
        pytest.param(
            _message(f"fabro({RUN}): x (fail)", BLOCK.replace(f"Run: {RUN}", "Run: 01OTHER")),
            id="another run's block",
        ),
        pytest.param(f"fabro({RUN}): x (fail)\n\nwords\n\n{BLOCK}", id="a block further down"),
    ],
)
def test_other_commits_are_no_checkpoints(message: str) -> None:
    assert parse_run_commit(message, RUN) is None


def test_what_a_parallel_node_leaves_is_of_the_run() -> None:
    assert is_of_run(_message(f"fabro({RUN}): fork (parallel_base)"), RUN)
    assert is_of_run(f"fabro({RUN}): branch1 (success)\n", RUN)
    assert not is_of_run("Merge branch main\n", RUN)


def test_a_checkpoint_without_metadata_names_none() -> None:
    block = f"Fabro-Run: {RUN}\nFabro-Completed: 2\n"

    said = parse_run_commit(_message(f"fabro({RUN}): greet (success)", block), RUN)

    assert said is not None
    assert said.named is None


@pytest.mark.parametrize("message", [f"checkpoint\n{FOOTER}", f"checkpoint\n\n{FOOTER}"])
def test_metadata_is_told_by_its_first_bytes(message: str) -> None:
    assert is_checkpoint(message)
    assert not is_final(message)
    assert not is_checkpoint("initialize branch")
    assert is_final(f"finalize run\n{FOOTER}")


@pytest.mark.parametrize(
    ("names", "run_json", "expected"),
    [
        (["run.json", "graph.fabro"], {"spec": {}}, "G4"),
        (["run.json", "start.json"], {"config": {}}, "G2"),
        (["run.json", "start.json"], {"settings": {}}, "G2"),
        (["run.json", "checkpoint.json"], {"settings": {}}, "G3"),
        (["run.json", "manifest.json"], {"settings": {}}, "G3"),
        (["manifest.json", "graph.fabro"], None, "G1"),
        (["start.json", "sandbox.json"], None, "G2b"),
        (["checkpoint.json"], None, "G2b"),
        (["run.json", "start.json"], {"schema": 1, "settings": {}}, "ours"),
        ([], None, None),
        (["run.json"], {}, None),
        (["run.json"], [], None),
    ],
)
def test_a_generation_is_told_by_what_is_there(
    names: list[str], run_json: object, expected: str | None
) -> None:
    assert generation(names, run_json) == expected  # type: ignore[arg-type]


def _metas(*nodes: str) -> list[MetaEntry]:
    return [
        MetaEntry(meta=Oid(f"m{at}"), node=node, visit=1, status="success")
        for at, node in enumerate(nodes, start=1)
    ]


def _commits(*named: tuple[str, str | None, Link]) -> list[RunEntry]:
    return [
        RunEntry(
            Oid(f"c{at}"),
            RunCommit(
                run=RUN,
                node=node,
                status="failed",
                completed=at + 1,
                named=Oid(meta) if meta else None,
            ),
            link,
        )
        for at, (node, meta, link) in enumerate(named, start=1)
    ]


def _rows(metas: Sequence[MetaEntry], commits: Sequence[RunEntry]) -> list[tuple[object, ...]]:
    return [
        (one.ordinal, one.node, one.visit, one.run_commit, one.meta_commit, one.link)
        for one in timeline(metas, commits)
    ]


def test_linked_entries_are_the_fixed_points() -> None:
    metas = _metas("plan", "alone", "build")
    commits = _commits(
        ("plan", "m1", "ok"),
        ("only", None, "none"),
        ("build", "m3", "ok"),
        ("plan", "x", "missing"),
    )

    assert _rows(metas, commits) == [
        (1, "plan", 1, "c1", "m1", "ok"),
        (2, "alone", 1, None, "m2", "none"),
        (3, "only", 1, "c2", None, "none"),
        (4, "build", 1, "c3", "m3", "ok"),
        (5, "plan", 2, "c4", None, "missing"),
    ]


def test_of_two_commits_with_one_meta_commit_the_older_is_linked() -> None:
    rows = _rows(_metas("plan"), _commits(("plan", "m1", "ok"), ("plan", "m1", "ok")))

    assert rows == [(1, "plan", 1, "c1", "m1", "ok"), (2, "plan", 2, "c2", None, "none")]


def test_a_branch_in_another_order_than_the_metadata_keeps_all() -> None:
    commits = _commits(("b", "m2", "ok"), ("x", None, "none"), ("a", "m1", "ok"))

    assert [row[1] for row in _rows(_metas("a", "b"), commits)] == ["x", "a", "b"]


def test_either_branch_alone_is_a_timeline() -> None:
    assert [row[3:] for row in _rows(_metas("a"), [])] == [(None, "m1", "none")]
    assert [row[3:] for row in _rows([], _commits(("a", None, "none")))] == [("c1", None, "none")]


def test_what_is_reached_before_a_fan_in_is_inside() -> None:
    nodes = {
        "fork": {"shape": "component"},
        "inner": {"type": "parallel", "shape": "box"},
        "join": {"shape": "tripleoctagon"},
        "b": {"shape": "component", "type": "agent"},
    }
    edges = [("fork", "a"), ("fork", "inner"), ("inner", "b"), ("b", "join"), ("a", "join")]
    edges += [("join", "after"), ("a", "a")]

    found = interior(nodes, edges)

    assert found == {"a": "fork", "inner": "fork", "b": "fork"}
