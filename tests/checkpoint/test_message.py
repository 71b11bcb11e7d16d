"""Commit messages: what is written is read back, by us and by git; nothing else is a link."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.checkpoint.message import (
    CheckpointTrailers,
    checkpoint_message,
    meta_message,
    parse_checkpoint_message,
    trailers_of,
    with_trailers,
)
from tests.conftest import GitRepo

RUN = "01JKXYZ0000000000000000000"
META = "a1b2c3d4" * 5
PLAN = CheckpointTrailers(
    run=RUN,
    node="plan",
    status="success",
    completed=2,
    checkpoint=META,
    visit=1,
    ordinal=1,
    branch=None,
)
MESSAGE = f"""fabro({RUN}): plan (success)

Fabro-Run: {RUN}
Fabro-Completed: 2
Fabro-Checkpoint: {META}
Fabro-Visit: 1
Fabro-Ordinal: 1
"""


def test_a_run_commit_reads_as_the_manual_says() -> None:
    assert checkpoint_message(PLAN) == MESSAGE
    assert parse_checkpoint_message(MESSAGE) == PLAN


def test_git_itself_sees_the_trailers(repo: GitRepo) -> None:
    shown = repo.git("interpret-trailers", "--parse", stdin=MESSAGE.encode())

    assert shown.splitlines() == MESSAGE.splitlines()[2:]


def test_a_meta_commit_names_a_commit_made_by_hand() -> None:
    text = meta_message("commit c0de", run=RUN, seq=7, status="running", commit="c0de", ordinal=3)

    assert trailers_of(text) == {
        "Fabro-Run": RUN,
        "Fabro-Seq": "7",
        "Fabro-Status": "running",
        "Fabro-Commit": "c0de",
        "Fabro-Ordinal": "3",
    }


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("", id="empty"),
        pytest.param("by hand\n", id="subject only"),
        pytest.param(f"fabro({RUN}): some words\n\nFabro-Checkpoint: {META}\n", id="no status"),
        pytest.param(f"words\n\nFabro-Checkpoint: {META}\n\nmore words\n", id="in mid text"),
        pytest.param(f"{MESSAGE}\nmore words\n", id="text behind the trailers"),
        pytest.param(f"fabro({RUN}): plan (success)\n\nFabro-Run: {RUN}\n", id="no link"),
    ],
)
def test_what_is_no_checkpoint_links_to_nothing_r43(message: str) -> None:
    assert parse_checkpoint_message(message) is None


def test_a_subject_is_one_line_whatever_comes_in() -> None:
    assert with_trailers("a\nFabro-Run: x\n\nb", ()).splitlines()[0] == "a Fabro-Run: x b"


@given(st.text())
def test_any_message_is_a_checkpoint_or_none(text: str) -> None:
    assert parse_checkpoint_message(text) is None or "Fabro-Checkpoint: " in text
    assert isinstance(trailers_of(text), dict)


@given(st.text(alphabet="Fabro-Run: 1\n()éx\x00\u2028", max_size=200))
def test_hostile_messages_are_read_in_linear_time(text: str) -> None:
    parse_checkpoint_message(f"fabro({text}): plan (success)\n\n{text * 50}")
