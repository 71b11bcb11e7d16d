"""The quick way to make a commit by hand a checkpoint gives what the long way gives."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from git_fabro import handmade, reading
from git_fabro.branches import Source
from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.doors import Doors
from git_fabro.jobs.hooks import byhand
from git_fabro.workflow import engine
from tests.cli.typed import Shell, shell
from tests.conftest import GitRepo

__all__ = ["shell"]


@pytest.fixture
def run(shell: Shell, repo: GitRepo) -> RunId:
    """A run that waits for an answer, its branch checked out in repo."""
    shell("run", "-q", "asks")
    made = shell.run_id()
    for line in repo.git("worktree", "list", "--porcelain").splitlines():
        if line.endswith("/worktree"):
            repo.git("worktree", "remove", "--force", line.removeprefix("worktree "))
    repo.git("switch", "-q", f"fabro/run/{made}")
    return RunId(made)


def tips(repo: GitRepo, run: str) -> tuple[str, str]:
    return repo.git("rev-parse", f"fabro/meta/{run}"), repo.git(
        "rev-parse", f"refs/fabro/lease/{run}"
    )


def put_back(repo: GitRepo, run: str, before: tuple[str, str]) -> None:
    repo.git("update-ref", f"refs/heads/fabro/meta/{run}", before[0])
    repo.git("update-ref", f"refs/fabro/lease/{run}", before[1])


def test_both_ways_give_one_state_and_one_record(repo: GitRepo, run: RunId) -> None:
    before = tips(repo, run)
    repo.commit({"a": "1\n2\n", "b": "\0"}, "by hand")

    assert handmade.record(Source.open(repo.path), run)
    quick = files(repo, run)
    put_back(repo, run, before)
    with_doors = Doors.open(repo.path)
    byhand.record(with_doors, run)
    with_doors.close()
    long = files(repo, run)

    [made] = [line for line in long[1] if line["kind"] == "checkpoint"]
    assert quick[1] == [{**made, "seq": made["seq"] - 1, "at": quick[1][0]["at"]}]
    assert quick[0] == {**long[0], "seq": quick[1][0]["seq"]}
    assert quick[2] == long[2]


def files(repo: GitRepo, run: str) -> tuple[dict[str, object], list[dict[str, object]], str]:
    """The state, the records, and which other files there are, of the metadata tip."""
    meta = f"fabro/meta/{run}"
    state = json.loads(repo.git("show", f"{meta}:checkpoint.json"))
    records = [json.loads(line) for line in repo.git("show", f"{meta}:records.jsonl").splitlines()]
    listed = repo.git("ls-tree", "-r", meta).splitlines()
    others = [line for line in listed if not line.endswith(("checkpoint.json", "records.jsonl"))]
    return state, records, "\n".join(others)


def test_the_state_is_the_fold_of_the_records_to_the_byte(repo: GitRepo, run: RunId) -> None:
    for number in range(3):
        repo.commit({f"file-{number}": "1\n"})
        assert handmade.record(Source.open(repo.path), run)

    doors = Doors.open(repo.path)
    meta = Oid(repo.git("rev-parse", f"fabro/meta/{run}"))
    folded = engine.replay(reading.records(doors, meta))
    doors.close()

    written = repo.git_bytes("show", f"{meta}:checkpoint.json")
    assert written == codec.StateWriter().document(folded)
    repo.fsck()


def test_several_commits_are_numbered_from_the_oldest(repo: GitRepo, run: RunId) -> None:
    commits = [repo.commit({f"file-{number}": "1\n"}) for number in range(3)]

    assert handmade.record(Source.open(repo.path), run)

    subjects = repo.git(
        "log",
        "-3",
        "--format=%s %(trailers:key=Fabro-Ordinal,valueonly,separator=)",
        f"fabro/meta/{run}",
    ).splitlines()
    first = int(subjects[-1].split()[-1])
    assert subjects == [
        f"commit {commit[:12]} {first + at}" for at, commit in reversed(list(enumerate(commits)))
    ]


@pytest.mark.parametrize("why", ["a journal", "no lease"])
def test_what_is_not_simple_is_left_to_the_long_way(
    shell: Shell, repo: GitRepo, run: RunId, why: str
) -> None:
    repo.commit({"a": "1\n"})
    if why == "a journal":
        [home] = Path(os.environ["XDG_STATE_HOME"], "git-fabro").iterdir()
        (home / run / "journal.jsonl").write_text("{}\n")
    else:
        repo.git("update-ref", "-d", f"refs/fabro/lease/{run}")
    before = repo.git("for-each-ref")

    assert not handmade.record(Source.open(repo.path), run)
    assert repo.git("for-each-ref") == before


def test_while_somebody_drives_the_run_nothing_is_written(repo: GitRepo, run: RunId) -> None:
    ref = f"refs/fabro/lease/{run}"
    # This very process held it, and lives.
    repo.git("update-ref", ref, repo.git("log", "--format=%H", "--grep=lease: held", "-1", ref))
    repo.commit({"a": "1\n"})
    before = repo.git("for-each-ref")

    assert handmade.record(Source.open(repo.path), run)
    assert repo.git("for-each-ref") == before


def test_metadata_that_is_behind_is_left_to_the_long_way(
    shell: Shell, repo: GitRepo, run: RunId
) -> None:
    repo.git("switch", "-q", "main")
    shell("resume", "-q", "--auto-approve", run)
    repo.git("switch", "-q", f"fabro/run/{run}")
    # As a process leaves it that dies between the two refs.
    named = repo.git("log", "-1", "--format=%(trailers:key=Fabro-Checkpoint,valueonly)").strip()
    repo.git("update-ref", f"refs/heads/fabro/meta/{run}", f"{named}~1")
    commit = repo.commit({"a": "1\n"})

    assert not handmade.record(Source.open(repo.path), run)
    with_doors = Doors.open(repo.path)
    made = byhand.record(with_doors, run)
    with_doors.close()

    assert made == (commit,)
    assert repo.git("rev-parse", f"fabro/meta/{run}~1") == named


def test_the_long_way_keeps_what_an_amended_checkpoint_had_recorded(
    shell: Shell, repo: GitRepo, run: RunId
) -> None:
    repo.git("switch", "-q", "main")
    shell("resume", "-q", "--auto-approve", run)
    repo.git("switch", "-q", f"fabro/run/{run}")
    repo.commit({"by-hand": "1\n"})
    assert handmade.record(Source.open(repo.path), run)
    before = repo.git("rev-parse", f"fabro/meta/{run}")
    repo.git("commit", "-q", "--amend", "--allow-empty", "-m", "mine now")
    with_doors = Doors.open(repo.path)

    made = byhand.record(with_doors, run)

    with_doors.close()
    assert made == (repo.git("rev-parse", "HEAD"),)
    assert repo.git("rev-parse", f"fabro/meta/{run}~1") == before


def test_commits_that_were_rebased_below_a_checkpoint_leave_the_run_on_course(
    shell: Shell, repo: GitRepo, run: RunId
) -> None:
    old = repo.commit({"by-hand": "1\n"})
    assert handmade.record(Source.open(repo.path), run)
    repo.git("switch", "-q", "main")
    shell("resume", "-q", "--auto-approve", run)
    repo.commit({"elsewhere": "1\n"})
    pairs = _rebased(repo, f"fabro/run/{run}")
    with_doors = Doors.open(repo.path)

    made = byhand.remap(with_doors, run, pairs)

    course = reading.course_of(with_doors, reading.tips_of(with_doors, run))
    with_doors.close()
    assert made == (dict(pairs)[Oid(old)],)
    assert (course.verdict, course.unrecorded) == ("on", ())


def _rebased(repo: GitRepo, branch: str) -> list[tuple[Oid, Oid]]:
    """Rebases a branch onto main; old and new commits, the oldest first."""
    old = repo.git("rev-list", "--reverse", f"main..{branch}").split()
    repo.git("rebase", "-q", "main", branch)
    new = repo.git("rev-list", "--reverse", f"main..{branch}").split()
    return [(Oid(one), Oid(other)) for one, other in zip(old, new, strict=True)]
