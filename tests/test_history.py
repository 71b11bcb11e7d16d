"""Timelines of runs that are not as a driver leaves them: forks, hand commits, damage."""

from __future__ import annotations

import json

import pytest

from git_fabro import history
from git_fabro.branches import Source, branches_of
from git_fabro.checkpoint.message import CheckpointTrailers, checkpoint_message, meta_message
from git_fabro.checkpoint.model import RunId
from git_fabro.checkpoint.timeline import Entry
from tests import fabro
from tests.conftest import GitRepo
from tests.fabro import Branch, Visit

FORK = RunId("01KR0000000000000000000000")


def _entries(repo: GitRepo, run: RunId = FORK) -> list[Entry]:
    """The oldest first."""
    told = history.timeline_of(Source.open(repo.path), run)
    found = [place.entry for place in told.places()][::-1]
    assert told.problems == []
    return found


def _ours(ordinal: int, meta: str, node: str = "build") -> str:
    return checkpoint_message(
        CheckpointTrailers(
            run=FORK,
            node=node,
            status="success",
            completed=ordinal + 1,
            checkpoint=meta,
            visit=1,
            ordinal=ordinal,
            branch=None,
        )
    )


def _meta(subject: str, seq: int, **more: object) -> str:
    return meta_message(subject, run=FORK, seq=seq, status="running", **more)  # type: ignore[arg-type]


@pytest.fixture
def fork(repo: GitRepo) -> tuple[Branch, Branch]:
    """A fork of ours from the second of three checkpoints that Fabro made."""
    repo.commit({"a": "1"}, "base")
    visits = [Visit("plan"), Visit("verify", "fail"), Visit("fixup")]
    written = fabro.write(repo, visits, generation="G3")
    run_commit, meta_commit = written.pairs[1]
    run = Branch(repo, f"refs/heads/fabro/run/{FORK}", [run_commit or ""], whole=False)
    meta = Branch(repo, f"refs/heads/fabro/meta/{FORK}", [meta_commit or ""])
    made = json.dumps({"schema": 1, "run_id": FORK})
    meta.commit(_meta(f"fork from {fabro.RUN} @2", 1), {"run.json": made, "start.json": "{}"})
    repo.git("update-ref", run.ref, run.commits[0])
    return run, meta


def test_a_fork_of_one_of_fabros_runs_begins_with_its_checkpoints(
    repo: GitRepo, fork: tuple[Branch, Branch]
) -> None:
    run, meta = fork

    shared = _entries(repo)
    named = meta.commit(_meta("checkpoint build@1 (success)", 2), {"run.json": "{}"})
    run.commit(_ours(3, named), {"b": "x"})

    assert [(one.ordinal, one.node, one.status, one.link) for one in shared] == [
        (1, "plan", "success", "ok"),
        (2, "verify", "fail", "ok"),
    ]
    later = _entries(repo)
    assert later[:2] == shared
    assert (later[2].ordinal, later[2].node, later[2].meta_commit) == (3, "build", named)


def test_commits_by_hand_count_on_from_a_checkpoint(
    repo: GitRepo, fork: tuple[Branch, Branch]
) -> None:
    run, meta = fork
    first = run.commit("by hand\n", {"c": "x"})
    by_name = meta.commit(
        _meta(f"commit {first[:12]}", 2, commit=first, ordinal=3), {"run.json": "{}"}
    )
    named = meta.commit(_meta("checkpoint build@1 (success)", 3), {"run.json": "{}"})
    run.commit(_ours(4, named), {"b": "x"})
    run.commit("not recorded yet\n", {"d": "x"})

    found = _entries(repo)

    assert [(one.ordinal, one.kind, one.meta_commit, one.link) for one in found[2:]] == [
        (3, "commit", by_name, "ok"),
        (4, "node", named, "ok"),
        (5, "commit", None, "none"),
    ]


def test_a_ref_that_is_behind_its_run_makes_no_link_bad(
    repo: GitRepo, fork: tuple[Branch, Branch]
) -> None:
    run, meta = fork
    before = meta.commits[-1]
    named = meta.commit(_meta("checkpoint build@1 (success)", 2), {"run.json": "{}"})
    run.commit(_ours(3, named), {"b": "x"})
    repo.git("update-ref", meta.ref, before)

    assert _entries(repo)[2].link == "ok"


def test_a_run_without_a_checkpoint_has_none_of_another_runs(
    repo: GitRepo, fork: tuple[Branch, Branch]
) -> None:
    run, meta = fork
    named = meta.commit(_meta("checkpoint build@1 (success)", 2), {"run.json": "{}"})
    tip = run.commit(_ours(3, named), {"b": "x"})
    new = RunId("01KS0000000000000000000000")
    other = Branch(repo, f"refs/heads/fabro/meta/{new}")
    text = meta_message("init run", run=new, seq=1, status="running")
    started = json.dumps({"base_sha": tip}, separators=(",", ":"))
    other.commit(text, {"run.json": '{"schema":1}', "start.json": started})
    repo.git("update-ref", f"refs/heads/fabro/run/{new}", tip)

    assert _entries(repo, new) == []


def test_a_shallow_history_is_told_as_far_as_it_goes(
    repo: GitRepo, fork: tuple[Branch, Branch]
) -> None:
    run, meta = fork
    for ordinal in (3, 4, 5):
        named = meta.commit(_meta("checkpoint build@1 (success)", ordinal), {"run.json": "{}"})
        run.commit(_ours(ordinal, named), {"b": str(ordinal)})
    gone = run.commits[-3]
    (repo.path / ".git/objects" / gone[:2] / gone[2:]).unlink()
    source = Source.open(repo.path)
    told = history.timeline_of(source, FORK)

    found = [place.entry.ordinal for place in told.places()]

    assert found == [5, 4]
    assert told.problems == [f"object is missing: {gone}"]
    assert branches_of(source, FORK).tips
