"""The kinds of records: their names, origins and fields are a format, which must not drift."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, get_args

import pytest

from git_fabro.checkpoint import codec
from git_fabro.workflow import records
from git_fabro.workflow.records import Known, Record, RunNotice, Unknown
from git_fabro.workflow.state import EVENT_CONTRACT, FAIL, Failure, Option, Outcome
from tests.workflow.graphs import at

WHEN = "2026-03-01T10:00:01.001Z"
KINDS = {kind.kind: kind for kind in get_args(Known)}
CORE = {
    *("run.started", "run.finished", "parallel.started", "parallel.finished"),
    *("branch.finished", "question.asked"),
}
#: A value for each type of a field that has no default.
VALUES: dict[str, Any] = {
    "str": "text",
    "int": 7,
    "float": 1.25,
    "str | None": None,
    "int | None": None,
    "Mapping[str, Json]": {"k": [1, 1.0, True, None, "é\u2028"]},
    "tuple[BranchPlan, ...]": (
        records.BranchPlan(id="a"),
        records.BranchPlan(id="b", skipped=True),
    ),
    "Outcome": Outcome(
        status=FAIL,
        word="port",
        context_updates={"k": 1},
        preferred_label="go",
        suggested_next_ids=("a", "b"),
        failure=Failure("red", "structural", "a|structural|red"),
        notes="n",
        files_touched=("f",),
        usage={"tokens": 5},
    ),
}


def example(kind: type) -> Any:
    """A record's event with a value in each field that needs one."""
    given = {
        field.name: VALUES[str(field.type)]
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }
    return kind(**given)


def test_the_kinds_are_those_of_the_format() -> None:
    assert sorted(KINDS) == [
        "artifact.collected",
        "branch.finished",
        "checkpoint",
        "git.identity",
        "lease.released",
        "lease.taken",
        "node.attempt_failed",
        "node.finished",
        "node.started",
        "parallel.finished",
        "parallel.started",
        "question.answered",
        "question.asked",
        "question.cancelled",
        "question.expired",
        "question.refused",
        "run.applied",
        "run.branch",
        "run.created",
        "run.diff",
        "run.finished",
        "run.forked",
        "run.notice",
        "run.paused",
        "run.resumed",
        "run.rewound",
        "run.started",
        "run.stopped",
        "run.unpaused",
    ]


def test_what_follows_from_earlier_records_is_of_core_origin() -> None:
    assert {name for name, kind in KINDS.items() if kind.origin == "core"} == CORE


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_record_comes_back_as_it_was_written(name: str) -> None:
    written = Record(
        seq=3,
        at=WHEN,
        event=example(KINDS[name]),
        position=at("split", 2, 3, "split@2/api"),
        extra={"later": {"k": 1}},
    )

    [read] = codec.records_from(codec.record_line(written))

    assert read == written
    assert codec.record_line(read) == codec.record_line(written)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_field_is_written(name: str) -> None:
    event = example(KINDS[name])

    data = codec.record_to_json(Record(seq=1, at=WHEN, event=event))["data"]

    assert set(data) == {field.name.removesuffix("_") for field in fields(event)}


def test_a_line_has_exactly_the_keys_of_the_envelope() -> None:
    notice = RunNotice(level="info", code="hook", message="m")
    plain = codec.record_to_json(Record(seq=1, at=WHEN, event=notice))
    placed = codec.record_to_json(Record(seq=1, at=WHEN, event=notice, position=at("a")))

    assert set(plain) == {"at", "data", "kind", "origin", "seq"}
    assert placed["position"] == {"attempt": 1, "node": "a", "visit": 1}


def test_a_kind_of_a_later_version_is_kept_whole() -> None:
    line = (
        b'{"at":"2026-03-01T10:00:01.001Z","data":{"a":1},"kind":"run.sang",'
        b'"origin":"core","seq":1}\n'
    )

    [read] = codec.records_from(line)

    assert read.event == Unknown(kind="run.sang", origin="core", data={"a": 1})
    assert codec.record_line(read) == line


def test_questions_keep_their_options() -> None:
    asked = records.QuestionAsked(
        question="q@1", ask=1, text="?", options=(Option(key="Y", label="Yes", target="y"),)
    )

    [read] = codec.records_from(codec.record_line(Record(seq=1, at=WHEN, event=asked)))

    assert read.event == asked


def test_the_contract_is_written_where_a_writer_begins() -> None:
    written = {
        name
        for name, kind in KINDS.items()
        for field in fields(kind)
        if field.name == "contract" and field.default == EVENT_CONTRACT == 1
    }

    assert written == {"run.created", "run.forked", "lease.taken"}
