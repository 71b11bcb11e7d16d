"""Answers and requests from other processes, with and without a driver."""

from __future__ import annotations

import json
import os

import pytest

import git_fabro
from git_fabro import lease
from git_fabro.checkpoint.model import Identity
from git_fabro.doors import Doors
from git_fabro.errors import ConflictError, NotFoundError, RequestError
from git_fabro.gates import Reply
from git_fabro.jobs import answer as job
from git_fabro.jobs.answer import Place
from git_fabro.workflow.records import Principal
from tests.conftest import GitRepo

ASKS = """digraph { start [shape=Mdiamond]; exit [shape=Msquare]
review [shape=hexagon, label="Ship it?"]; ship [script="true"]; hold [script="true"]
start -> review; review -> ship [label="[Y] Yes"]; review -> hold [label="[N] No"]
ship -> exit; hold -> exit }
"""


@pytest.fixture
def place(repo: GitRepo) -> Place:
    """A run that waits for an answer, without a driver."""
    repo.commit({"asks.fabro": ASKS})
    run = git_fabro.open(repo.path).start(str(repo.path / "asks.fabro"))
    return Place(
        doors=Doors.open(repo.path), run=run.id, folder=repo.path, environment=dict(os.environ)
    )


def _held(place: Place) -> None:
    """This process holds the run, as a driver would."""
    assert place.doors is not None
    token, _ = lease.read(place.doors.refs, place.doors.objects, place.run)
    held = lease.commit_for(
        place.doors.objects,
        lease.me("01JKXZ7F3A0000000000000000"),
        parent=token,
        by=Identity("A. Tester", "tester@example.com"),
        when=1_704_067_200,
    )
    place.doors.refs.move([lease.move_to(place.run, token, held)], "held")


def test_an_answer_is_a_meta_commit_and_the_lease_is_free_again(
    place: Place, repo: GitRepo
) -> None:
    assert sorted(job.open_questions(place)) == ["review@1"]

    assert job.answer(place, "review@1", Reply(text="yes")) == "recorded"

    subjects = repo.git("log", "--format=%s", f"fabro/meta/{place.run}").split("\n")
    assert "answer review@1" in subjects
    assert not place.is_driven()
    assert job.open_questions(place) == {}


def test_a_wrong_answer_changes_nothing(place: Place, repo: GitRepo) -> None:
    before = repo.git("for-each-ref")

    with pytest.raises(RequestError, match=r"no choice of review@1: 'maybe'; choices: Y \(Yes\)"):
        job.answer(place, "review@1", Reply(text="maybe"))
    with pytest.raises(NotFoundError, match=r"no open question: review@2 \(open: review@1\)"):
        job.answer(place, "review@2", Reply(text="yes"))

    assert repo.git("for-each-ref") == before


def test_a_refusal_needs_no_choice(place: Place) -> None:
    assert job.answer(place, "review@1", Reply(text="not mine", refused=True)) == "recorded"


def test_an_answer_is_left_for_a_living_driver_and_the_first_stands(place: Place) -> None:
    _held(place)
    author = Principal(name="A U Thor", email="author@example.com")

    assert job.answer(place, "review@1", Reply(text="y", principal=author)) == "left"
    with pytest.raises(ConflictError, match="an answer to review@1 waits to be read already"):
        job.answer(place, "review@1", Reply(text="n"))

    body = json.loads(place.directory.requests.joinpath("answer-review@1.json").read_text())
    assert (body["text"], body["email"], body["refused"]) == ("y", "author@example.com", False)


def test_pause_and_stop_are_left_for_a_living_driver(place: Place) -> None:
    _held(place)

    job.ask_driver(place, job.PAUSE)
    job.ask_driver(place, job.STOP)

    assert sorted(path.name for path in place.directory.requests.iterdir()) == [
        "pause.json",
        "stop.json",
    ]
    with pytest.raises(ConflictError, match="stop is asked for already"):
        job.ask_driver(place, job.STOP)


def test_without_a_driver_nothing_is_asked(place: Place) -> None:
    with pytest.raises(RequestError, match="nobody drives the run"):
        job.ask_driver(place, job.STOP)


def test_who_answers_is_who_git_knows(place: Place, repo: GitRepo) -> None:
    assert job.principal_of(place.doors) is None
    repo.git("config", "user.name", "A U Thor")
    repo.git("config", "user.email", "author@example.com")

    known = job.principal_of(Doors.open(repo.path))

    assert known == Principal(name="A U Thor", email="author@example.com")
