"""From what is typed to a checkpoint: ordinals, visits, nodes, ids, nodes in fan-outs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Entry, resolve
from git_fabro.errors import NotFoundError, RequestError

SNAPSHOT = "01JKXYZ3F9QW8T2R5V7M1N0P4S"
HINT = "git fabro log 01JK"


def _entry(ordinal: int, node: str | None, visit: int = 1) -> Entry:
    meta = Oid(f"{ordinal:x}" * 4 + "b" * 36)
    return Entry(
        ordinal=ordinal,
        kind="node" if node else "commit",
        node=node,
        visit=visit if node else None,
        status="success" if node else None,
        run_commit=Oid(f"{ordinal:x}" * 4 + "a" * 36),
        meta_commit=meta,
        named_meta_commit=meta,
        link="ok",
    )


def _snapshot(name: str) -> Entry:
    return Entry(
        ordinal=None,
        kind="snapshot",
        node=None,
        visit=None,
        status=None,
        run_commit=Oid("d" * 40),
        meta_commit=None,
        named_meta_commit=None,
        link="none",
        checkpoint_id=name,
    )


TIMELINE = [
    _entry(1, "plan"),
    _entry(2, "split"),
    _snapshot(SNAPSHOT),
    _entry(3, "plan", 2),
    _entry(4, None),
    _entry(5, "a@b"),
    _entry(6, "cafe"),
]


def _named(target: str, entries: Sequence[Entry] = TIMELINE) -> tuple[str, str]:
    inside = {"api": "split", "lint": "gone"}
    found = resolve(target, reversed(entries), lambda: inside, hint=HINT)
    return found.entry.name, found.said


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("@1", "@1"),
        ("@+2", "@2"),
        ("@-1", "@6"),
        ("@-6", "@1"),
        ("plan", "@3"),
        ("plan@1", "@1"),
        ("plan@+2", "@3"),
        ("a@b", "@5"),
        ("a@b@1", "@5"),
        ("4444", "@4"),
        ("4" * 4 + "b" * 36, "@4"),
        ("3333a", "@3"),
        ("cafe", "@6"),
        ("01jkxyz", SNAPSHOT),
        (SNAPSHOT, SNAPSHOT),
    ],
)
def test_a_target_is_one_checkpoint(target: str, name: str) -> None:
    assert _named(target) == (name, "")


def test_a_node_inside_a_fan_out_is_its_parallel_node() -> None:
    assert _named("api") == ("@2", "node 'api' is inside parallel 'split'")
    assert _named("api@1") == ("@2", "node 'api' is inside parallel 'split'")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("@x", "invalid ordinal: @x"),
        ("@", "invalid ordinal: @"),
        ("@ 1", "invalid ordinal: @ 1"),
        ("@1_0", "invalid ordinal: @1_0"),
        ("@١", "invalid ordinal: @١"),
        ("@--1", "invalid ordinal: @--1"),
        ("@1\nfatal: x", "invalid ordinal: @1 fatal: x"),
        ("@-0", "ordinal must be >= 1 (max @6)"),
        ("plan@0", "visit number must be >= 1"),
    ],
)
def test_what_is_no_target_is_refused(target: str, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        _named(target)

    assert (caught.value.message, caught.value.hint) == (message, HINT)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("@7", "ordinal @7 out of range (max @6)"),
        ("@-7", "ordinal @-7 out of range (max @6)"),
        ("plan@3", "no visit 3 found for node 'plan' (there is plan@1, plan@2)"),
        ("plna", "no checkpoint found for node 'plna'; did you mean 'plan'?"),
        ("node@", "no checkpoint found for node 'node@'"),
        ("9999", "no checkpoint found for node '9999'"),
        ("x\ny", "no checkpoint found for node 'x y'"),
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
        _named(target)

    assert (caught.value.message, caught.value.hint) == (message, HINT)


def test_a_beginning_of_several_is_refused() -> None:
    twice = [*TIMELINE, _entry(68, None), _snapshot("01JKXYZ3F9QW8T2R5V7M1N0P5S")]

    with pytest.raises(RequestError, match=r"ambiguous object id: 4444 \(@4, @68\)"):
        _named("4444", twice)
    with pytest.raises(RequestError, match=r"ambiguous object id: 01JKXY \(01JK.*4S, 01JK.*5S\)"):
        _named("01JKXY", twice)


def test_many_visits_are_named_by_the_first_and_the_last() -> None:
    entries = [_entry(number, "plan", number) for number in range(1, 13)]

    with pytest.raises(NotFoundError, match=r"\(there is plan@1, \.\.\., plan@12\)"):
        _named("plan@13", entries)


def test_of_one_visit_made_twice_the_first_counts() -> None:
    entries = [_entry(1, "plan"), _entry(2, "plan")]

    assert (_named("plan@1", entries), _named("plan", entries)) == (("@1", ""), ("@2", ""))


def test_an_empty_timeline_has_no_ordinals() -> None:
    with pytest.raises(NotFoundError, match=r"ordinal @1 out of range \(max @0\)"):
        _named("@1", [])


@pytest.mark.parametrize("target", ["@-1", "cafe", "@6"])
def test_no_more_of_a_timeline_is_read_than_it_takes(target: str) -> None:
    def entries() -> Iterator[Entry]:
        yield TIMELINE[-1]
        raise AssertionError("more was asked for")

    assert resolve(target, entries(), dict, hint=HINT).entry.ordinal == 6


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"run_commit": None}, "no run commit"),
        ({"link": "missing", "meta_commit": None}, "no metadata: 1111bbbbbbbb is absent"),
        ({"link": "foreign", "meta_commit": None}, "no metadata: 1111bbbbbbbb is another run's"),
        ({"link": "none", "meta_commit": None}, "no metadata: no trailer"),
        ({"kind": "commit", "link": "none", "meta_commit": None}, "no metadata"),
        ({"kind": "snapshot", "link": "none", "meta_commit": None}, ""),
    ],
)
def test_a_link_that_is_not_good_says_why(changes: dict[str, object], why: str) -> None:
    plain = TIMELINE[0]._asdict()

    assert Entry(**{**plain, **changes}).why == why
