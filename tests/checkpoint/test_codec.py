"""Records and states survive their JSON; whatever else comes in is refused with a RecordError."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_fabro.checkpoint import codec
from git_fabro.errors import FabroError, RecordError
from git_fabro.workflow import engine
from git_fabro.workflow.records import Record, Unknown
from git_fabro.workflow.state import Line, RunState

AT = "2026-03-01T10:00:11.011Z"

NODE_FINISHED = (
    b'{"at":"2026-03-01T10:00:11.011Z","data":{"attempts":2,"counted":null,"draw":null,'
    b'"duration_ms":7114,"handler":"agent","next":{"edge":0,"loop_restart":false,"node":"split"},'
    b'"outcome":{"context_updates":{"last_stage":"plan","response.plan":"blob://sha256/5d41"},'
    b'"files_touched":["a.py"],"status":"success","usage":{"input_tokens":912,"output_tokens":40}},'
    b'"reason":"weight","unhandled":[]},"kind":"node.finished","origin":"external",'
    b'"position":{"attempt":2,"node":"plan","visit":1},"seq":11}\n'
)
ATTEMPT_FAILED = (
    b'{"at":"2026-03-01T10:00:09.009Z","data":{"delay_ms":182,"draw":0.91,"duration_ms":812,'
    b'"outcome":{"failure":{"failure_class":"transient_infra","message":"exit status 75"},'
    b'"status":"fail","usage":null},"retry_at":"2026-03-01T10:00:09.191Z"},'
    b'"kind":"node.attempt_failed","origin":"external",'
    b'"position":{"attempt":1,"node":"plan","visit":1},"seq":9}\n'
)
QUESTION = (
    b'{"at":"2026-03-01T10:00:19.019Z","data":{"ask":1,"deadline":null,"default":null,'
    b'"freeform":false,"options":[{"key":"Y","label":"Yes","target":"ship"},'
    b'{"key":"N","label":"No","target":"stop"}],"question":"review@1","sensitive":false,'
    b'"text":"Ship?"},"kind":"question.asked","origin":"core",'
    b'"position":{"attempt":1,"branch":"split@1/api","node":"review","visit":1},"seq":19}\n'
)
FORKED = (
    b'{"at":"2026-03-01T10:00:12.012Z","data":{"authority":"local","changes":{"goal":"ship v2"},'
    b'"contract":1,"from":{"git_commit_sha":"c0de","ordinal":1,'
    b'"run":"01JKXYZ0000000000000000000","seq":11},"run_id":"01JKY30000000000000000000"},'
    b'"kind":"run.forked","origin":"external","seq":12}\n'
)


def record(data: bytes) -> Record:
    (found,) = codec.records_from(data)
    return found


@pytest.mark.parametrize("line", [NODE_FINISHED, ATTEMPT_FAILED, QUESTION, FORKED])
def test_a_canonical_line_is_written_again_byte_for_byte(line: bytes) -> None:
    assert codec.record_line(record(line)) == line


def test_an_unknown_kind_is_kept_and_changes_only_the_number() -> None:
    line = (
        b'{"at":"2026-03-01T10:00:11.011Z","data":{"x":[1,1.0,true]},"kind":"moon.phase",'
        b'"origin":"external","seq":4}\n'
    )

    found = record(line)

    assert isinstance(found.event, Unknown)
    assert codec.record_line(found) == line
    assert engine.evolve(RunState(seq=3), found) == RunState(seq=4)


def test_an_unknown_key_is_kept_in_what_is_written_again() -> None:
    line = NODE_FINISHED.replace(b'"attempts":2', b'"attempts":2,"colour":"red"').replace(
        b'"attempts":2,"colour":"red","counted":null', b'"attempts":2,"colour":"red","counted":null'
    )

    assert b'"colour":"red"' in codec.record_line(record(line))


def test_a_missing_key_takes_its_default() -> None:
    line = NODE_FINISHED.replace(b'"draw":null,', b"").replace(b',"unhandled":[]', b"")

    assert record(line).event == record(NODE_FINISHED).event


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"{}\n", "records.jsonl: seq or at is wrong", id="empty"),
        pytest.param(b"[]\n", "records.jsonl: not an object", id="array"),
        pytest.param(NODE_FINISHED[:-1], "records.jsonl: the last line has no end", id="torn"),
        pytest.param(
            NODE_FINISHED + NODE_FINISHED, "records.jsonl: record 11 follows 11", id="twice"
        ),
        pytest.param(
            FORKED.replace(b'"contract":1', b'"contract":2'),
            "records.jsonl: record 12 (run.forked): written by contract 2, this program reads 1",
            id="later contract",
        ),
        pytest.param(
            QUESTION.replace(b'"ask":1', b'"ask":true'),
            "records.jsonl: record 19 (question.asked).ask: not of type int",
            id="true is no number",
        ),
        pytest.param(
            b'{"seq":1,"seq":2}\n',
            "records.jsonl: a key stands twice in one object",
            id="key twice",
        ),
        pytest.param(b'{"seq":NaN}\n', "records.jsonl: NaN is no JSON", id="not a number"),
    ],
)
def test_what_does_not_parse_is_named(data: bytes, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        codec.records_from(data)

    assert caught.value.message.startswith(message)


def test_lines_end_at_line_feeds_only() -> None:
    text = "a\u2028b\u0085c\x0bd\x0ce"
    event = Unknown(kind="x", origin="core", data={"text": text})
    line = codec.record_line(Record(seq=1, at=AT, event=event))

    assert record(line).event == event


def test_a_lone_surrogate_is_replaced_before_encoding() -> None:
    assert codec.canonical({"a": "x\ud800y"}) == '{"a":"x\N{REPLACEMENT CHARACTER}y"}'.encode()


@pytest.mark.parametrize(
    "text", ["1e999", "-1e999", '"\\ud800"', '"\\uDFFF x"', '{"\\udc00\\ud800":1}', "[1E400]"]
)
def test_what_canonical_json_cannot_hold_is_refused_where_it_is_ours(text: str) -> None:
    with pytest.raises(RecordError):
        codec.parse_json(text.encode(), "x")

    assert codec.parse_json(text.encode(), "x", is_ours=False) == json.loads(text)


@pytest.mark.parametrize("text", ['"\\ud83d\\ude00"', '"\\\\ud800"', "1e308", "1e-999", "[0.5]"])
def test_what_looks_like_it_is_read(text: str) -> None:
    assert codec.parse_json(text.encode(), "x") == json.loads(text)


def test_deep_nesting_is_refused_before_the_parser_recurses() -> None:
    with pytest.raises(RecordError, match="nested more than 200 deep"):
        codec.parse_json(b"[" * 100_000, "x")


def test_brackets_inside_strings_are_not_nesting() -> None:
    assert codec.parse_json(json.dumps({"a": "[" * 5000}).encode(), "x") == {"a": "[" * 5000}


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@given(JSON)
def test_any_json_value_is_read_back_as_it_was(value: Any) -> None:
    assert codec.canonical(codec.parse_json(codec.canonical(value), "x")) == codec.canonical(value)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    for read in (codec.records_from, lambda d: codec.parse_json(d, "x")):
        try:
            read(data)
        except FabroError:
            continue


@settings(max_examples=300)
@given(JSON, st.sampled_from([NODE_FINISHED, ATTEMPT_FAILED, QUESTION, FORKED]), st.data())
def test_a_record_with_any_value_anywhere_is_a_record_or_an_error(
    value: Any, line: bytes, data: st.DataObject
) -> None:
    document = json.loads(line)
    where: Any = document if data.draw(st.booleans()) else document["data"]
    where[data.draw(st.sampled_from(sorted(where)))] = value

    try:
        found = codec.record_from_json(document)
    except FabroError:
        return
    codec.record_line(found)


@given(JSON, st.data())
def test_a_state_with_any_value_anywhere_is_a_state_or_an_error(
    value: Any, data: st.DataObject
) -> None:
    document: Any = codec.state_to_json(RunState(seq=1))
    where = document if data.draw(st.booleans()) else document["pending"]
    where[data.draw(st.sampled_from(sorted(where)))] = value

    try:
        codec.state_from_json(document)
    except FabroError:
        return


def test_a_writer_of_states_gives_the_bytes_of_each_state_by_itself() -> None:
    """Names are added, taken back, begun anew, and hold what JSON and UTF-8 make something of."""
    writer = codec.StateWriter()
    names = ["start", 'a"b', "\N{SNOWMAN}", "\ud800", "z"]
    paths = [names[:count] for count in (0, 1, 2, 5, 5, 3, 4)] + [["other"], ["z", "z"], []]

    for seq, path in enumerate(paths):
        state = RunState(seq=seq, line=Line(completed_nodes=tuple(path)))

        assert writer.document(state) == codec.document(codec.state_to_json(state))
        assert writer.document(state, git_commit_sha="c0de") == codec.document(
            codec.state_to_json(state, git_commit_sha="c0de")
        )


def test_a_newer_schema_is_refused_by_its_number() -> None:
    with pytest.raises(RecordError, match=r"schema 2 is newer than 1"):
        codec.state_from_json({"schema": 2})
