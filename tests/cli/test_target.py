"""From what is typed to a checkpoint: ordinals, visits, nodes, object ids, nodes in fan-outs."""

from __future__ import annotations

import pytest

from git_fabro.checkpoint.message import CheckpointTrailers
from git_fabro.checkpoint.model import Oid
from git_fabro.cli.target import resolve
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.jobs.look import Found


def _found(ordinal: int, node: str | None, visit: int = 1) -> Found:
    commit, meta = Oid(f"{ordinal:x}" * 4 + "a" * 36), Oid(f"{ordinal:x}" * 4 + "b" * 36)
    said = CheckpointTrailers(
        run="01JK",
        node=node or "",
        status="success",
        completed=ordinal + 1,
        checkpoint=meta,
        visit=visit,
        ordinal=ordinal,
        branch=None,
    )
    return Found(
        ordinal=ordinal,
        run_commit=commit,
        said=said if node else None,
        meta_commit=meta,
        named_meta_commit=meta,
        link="ok",
    )


TIMELINE = [
    _found(1, "plan"),
    _found(2, "split"),
    _found(3, "plan", 2),
    _found(4, None),
    _found(5, "a@b"),
    _found(6, "cafe"),
]


def _ordinal(target: str) -> tuple[int, str | None]:
    found, said = resolve(target, TIMELINE, lambda: {"api": "split", "lint": "gone"}, "01JK")
    return found.ordinal, said


@pytest.mark.parametrize(
    ("target", "ordinal"),
    [
        ("@1", 1),
        ("@+2", 2),
        ("@-1", 6),
        ("@-6", 1),
        ("plan", 3),
        ("plan@1", 1),
        ("plan@+2", 3),
        ("a@b", 5),
        ("a@b@1", 5),
        ("4444", 4),
        ("4" * 4 + "b" * 36, 4),
        ("3333a", 3),
        ("cafe", 6),
    ],
)
def test_a_target_is_one_checkpoint(target: str, ordinal: int) -> None:
    assert _ordinal(target) == (ordinal, None)


def test_a_node_inside_a_fan_out_is_its_parallel_node() -> None:
    assert _ordinal("api") == (2, "node 'api' is inside parallel 'split'")
    assert _ordinal("api@1") == (2, "node 'api' is inside parallel 'split'")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("@x", "invalid ordinal: @x"),
        ("@", "invalid ordinal: @"),
        ("@ 1", "invalid ordinal: @ 1"),
        ("@1_0", "invalid ordinal: @1_0"),
        ("@١", "invalid ordinal: @١"),
        ("@--1", "invalid ordinal: @--1"),
        ("@-0", "ordinal must be >= 1 (max @6)"),
        ("plan@0", "visit number must be >= 1"),
    ],
)
def test_what_is_no_target_is_refused(target: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        _ordinal(target)

    assert caught.value.message == message
    assert caught.value.hint == "git log --first-parent fabro/run/01JK"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("@7", "ordinal @7 out of range (max @6)"),
        ("@-7", "ordinal @-7 out of range (max @6)"),
        ("plan@3", "no visit 3 found for node 'plan' (there is plan@1, plan@2)"),
        ("plna", "no checkpoint found for node 'plna'; did you mean 'plan'?"),
        ("node@", "no checkpoint found for node 'node@'"),
        ("x\x1b[2J", "no checkpoint found for node 'x\\x1b[2J'"),
        ("9999", "no checkpoint found for node '9999'"),
        ("lint", "node 'lint' is inside parallel 'gone'; no checkpoint found for 'gone'"),
        (
            "api@2",
            (
                "node 'api' is inside parallel 'split'; no visit 2 found for 'split' "
                "(there is split@1)"
            ),
        ),
    ],
)
def test_what_is_not_there_is_named_with_what_is(target: str, message: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        _ordinal(target)

    assert caught.value.message == message


def test_a_beginning_of_several_is_refused() -> None:
    twice = [
        TIMELINE[3],
        Found(
            ordinal=7,
            run_commit=Oid("4444" + "c" * 36),
            said=None,
            meta_commit=None,
            named_meta_commit=None,
            link="none",
        ),
    ]

    with pytest.raises(RequestError, match=r"ambiguous object id: 4444 \(@4, @7\)"):
        resolve("4444", twice, dict, "01JK")


def test_an_empty_timeline_has_no_ordinals() -> None:
    with pytest.raises(NotFoundError, match=r"ordinal @1 out of range \(max @0\)"):
        resolve("@1", [], dict, "01JK")
