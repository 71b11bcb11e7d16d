"""The journal: batches are whole or not there, and a reader never changes the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from git_fabro import journal
from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RecordError
from git_fabro.journal import Entry, JournalWriter
from git_fabro.workflow.records import Record, RunNotice

TIP, TREE = Oid("1" * 40), Oid("2" * 40)


def entry(seq: int, *, tree: Oid | None = None, merged: tuple[Oid, ...] = ()) -> Entry:
    said = RunNotice(level="info", code="x", message=f"number {seq}")
    record = Record(seq=seq, at="2026-03-01T10:00:11.011Z", event=said)
    return Entry(record=record, on=TIP, tree=tree, merged=merged)


def written(path: Path, *batches: tuple[Entry, ...]) -> Path:
    writer = JournalWriter(path)
    for batch in batches:
        writer.append(batch, sync=True)
    writer.close()
    return path


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.jsonl", (entry(1, tree=TREE, merged=(TIP,)),), (entry(2),))

    assert journal.read(path).entries == (entry(1, tree=TREE, merged=(TIP,)), entry(2))


def test_a_line_is_a_wrapped_record() -> None:
    assert journal.line(entry(1, tree=TREE)) == (
        b'{"on":"1111111111111111111111111111111111111111","record":'
        b'{"at":"2026-03-01T10:00:11.011Z","data":{"code":"x","details":{},"level":"info",'
        b'"message":"number 1"},"kind":"run.notice","origin":"external","seq":1},'
        b'"tree":"2222222222222222222222222222222222222222"}\n'
    )


def test_no_journal_is_an_empty_one(tmp_path: Path) -> None:
    assert journal.read(tmp_path / "none").entries == ()


@pytest.mark.parametrize("lost", [1, 10, 150])
def test_a_torn_batch_is_left_out_as_a_whole(tmp_path: Path, lost: int) -> None:
    path = written(tmp_path / "journal.jsonl", (entry(1),), (entry(2), entry(3)))
    data = path.read_bytes()
    path.write_bytes(data[:-lost])

    found = journal.read(path)

    assert found.entries == (entry(1),)
    assert found.good_bytes == len(journal.line(entry(1)))
    assert found.torn_bytes == len(data) - lost - found.good_bytes
    assert path.read_bytes() == data[:-lost]


def test_a_whole_line_that_does_not_parse_is_damage_that_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.jsonl", (entry(1),))
    path.write_bytes(path.read_bytes() + b"?\n")

    with pytest.raises(RecordError) as caught:
        journal.read(path)

    assert caught.value.message.startswith(
        f"the journal is damaged: {path}: journal.jsonl: not JSON"
    )
    assert str(path) in (caught.value.hint or "")


def test_an_emptied_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = JournalWriter(path)
    writer.append((entry(1),), sync=False)

    writer.cut(0)
    writer.append((entry(2),), sync=False)
    writer.close()

    assert journal.read(path).entries == (entry(2),)


def test_a_journal_that_is_set_aside_stays_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    writer = JournalWriter(path)
    writer.append((entry(1),), sync=False)

    writer.set_aside("journal.old.stale")
    writer.append((entry(2),), sync=False)
    writer.close()

    assert journal.read(path).entries == (entry(2),)
    assert journal.read(tmp_path / "journal.old.stale").entries == (entry(1),)
