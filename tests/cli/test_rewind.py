"""``git fabro rewind``: refs, work tree, what stays, what is asked, what is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo

#: Fails at its third node, so that the run's work tree stays.
FAILS = """\
digraph Fails {
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan  [shape=parallelogram, script="echo planned > plan.txt; echo noise > cache.log"]
    build [shape=parallelogram, script="mkdir -p out; echo built > out/x; echo more >> plan.txt"]
    check [shape=parallelogram, script="exit 3"]
    start -> plan -> build -> check
    check -> exit [condition="outcome=success"]
}
"""


@pytest.fixture
def failed(shell: Shell, repo: GitRepo) -> Path:
    """The work tree of a run that failed at its third checkpoint."""
    repo.commit({"fails.fabro": FAILS, ".gitignore": "*.log\n", "base.txt": "base\n"})
    assert shell("run", "-q", "fails.fabro").status == 1
    return work_tree(repo)


def work_tree(repo: GitRepo) -> Path:
    listed = repo.git("worktree", "list", "--porcelain", "-z").split("\0")
    [path] = [line.removeprefix("worktree ") for line in listed if line.endswith("/worktree")]
    return Path(path)


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".git"
    }


def refs(repo: GitRepo) -> str:
    return repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/fabro")


def test_a_run_goes_back_with_its_files_and_resumes_from_there(
    shell: Shell, repo: GitRepo, failed: Path
) -> None:
    run = shell.run_id()
    first = repo.git("rev-parse", f"fabro/run/{run}~2")
    meta = repo.git("log", "-1", "--format=%(trailers:key=Fabro-Checkpoint,valueonly)", first)

    done = shell("rewind", "plan")

    assert done == Typed(
        0,
        "rewound <run> to @1\nwork tree: 1 written, 1 deleted\n",
        "run <run> (the newest)\nhint: git fabro resume <run>; git fabro undo\n",
    )
    assert repo.git("rev-parse", f"fabro/run/{run}") == first
    assert repo.git("rev-parse", f"fabro/meta/{run}") == meta.strip()
    assert (failed / "plan.txt").read_text() == "planned\n"
    assert (failed / "cache.log").read_text() == "noise\n"
    assert not (failed / "out").exists()
    assert GitRepo(failed).git("status", "--porcelain") == ""
    assert shell("resume", "-q").status == 1
    assert repo.git("rev-list", "--count", f"{first}..fabro/run/{run}") == "2"
    repo.fsck()


def test_changes_that_are_in_no_commit_are_asked_for_and_saved(
    shell: Shell, repo: GitRepo, failed: Path
) -> None:
    (failed / "plan.txt").write_text("my own words\n")
    (failed / "mine.txt").write_text("nobody made this but me\n")
    before = refs(repo)

    asked = shell("rewind", "plan")
    agreed = shell("rewind", "-y", "plan")

    assert asked.status == 128
    assert "write plan.txt (changes that are in no commit)\n" in asked.err
    assert "keep mine.txt: no checkpoint of this run knows it\n" in asked.err
    assert agreed.status == 0
    assert refs(repo) != before
    assert (failed / "plan.txt").read_text() == "planned\n"
    assert (failed / "mine.txt").read_text() == "nobody made this but me\n"
    [operation] = json.loads(shell.exactly("op", "log", "--json").out)["operations"]
    kept = operation["work_tree"]["before"]
    assert repo.git("show", f"{kept}:plan.txt") == "my own words"


def test_a_plan_is_printed_and_changes_nothing(shell: Shell, repo: GitRepo, failed: Path) -> None:
    before, status = refs(repo), files(failed)

    shown = shell("rewind", "-n", "plan")
    document = json.loads(shell.exactly("rewind", "-n", "plan", "--json").out)

    assert shown.out.splitlines()[2:] == ["write plan.txt", "delete out/x", "plan <digest>"]
    assert [row.partition(":")[0] for row in shown.out.splitlines()[:2]] == [
        "refs/heads/fabro/run/<run>",
        "refs/heads/fabro/meta/<run>",
    ]
    assert set(document) == {"hash", "refs", "write", "delete", "keep"}
    assert (document["write"], document["delete"], document["keep"]) == (
        ["plan.txt"],
        ["out/x"],
        [],
    )
    assert (refs(repo), files(failed)) == (before, status)


def test_just_the_plan_that_was_seen_is_done(shell: Shell, repo: GitRepo, failed: Path) -> None:
    seen = json.loads(shell.exactly("rewind", "-n", "plan", "--json").out)["hash"]
    (failed / "plan.txt").write_text("changed since\n")
    before = refs(repo)

    refused = shell("rewind", "--plan", seen, "plan")
    again = json.loads(shell.exactly("rewind", "-n", "plan", "--json").out)["hash"]
    done = shell("rewind", "--plan", again, "plan")

    assert (refused.status, refs(repo) == before) == (128, False)
    assert refused.err.startswith("run <run> (the newest)\nfatal: the plan is another one by now: ")
    assert done.status == 0


def test_a_run_without_a_work_tree_has_its_refs_moved(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")

    done = shell("rewind", "@1")

    assert done.out == "rewound <run> to @1\nrefs only: the run has no work tree\n"
    assert repo.git("rev-list", "--count", f"main..fabro/run/{shell.run_id()}") == "1"


_IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "an ignored file": lambda top: (
        (top / ".gitignore").write_text("out\n"),
        GitRepo(top).git("rm", "-rq", "--cached", "out"),
        GitRepo(top).git("commit", "-qam", "out is ignored now"),
        (top / "out/x").write_text("mine"),
    ),
    "a file where a folder was": lambda top: (
        (top / "out/x").unlink(),
        (top / "out").rmdir(),
        (top / "out").write_text("mine"),
    ),
}


@pytest.mark.parametrize("what", list(_IN_THE_WAY))
def test_a_file_in_the_way_that_is_in_no_commit_is_never_overwritten(
    shell: Shell, repo: GitRepo, failed: Path, what: str
) -> None:
    _IN_THE_WAY[what](failed)
    before, status = refs(repo), files(failed)

    refused = shell("rewind", "-y", "build")

    assert refused.status == 128
    assert "fatal: a file that is in no commit is in the way: out" in refused.err
    assert (refs(repo), files(failed)) == (before, status)


def test_a_branch_that_is_checked_out_elsewhere_is_not_moved(
    shell: Shell, repo: GitRepo, failed: Path
) -> None:
    run = shell.run_id()
    GitRepo(failed).git("switch", "-q", "--detach")
    repo.git("switch", "-q", f"fabro/run/{run}")
    before = refs(repo)

    refused = shell("rewind", "-y", "plan")

    assert refused.status == 128
    assert f"fatal: the run branch is checked out in another work tree: {repo.path}" in refused.err
    assert refs(repo) == before


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("@9", "ordinal @9 out of range (max @3)"),
        ("nope", "no checkpoint found for node 'nope'"),
        ("plan@0", "visit number must be >= 1"),
        ("@0", "ordinal must be >= 1 (max @3)"),
    ],
)
def test_what_is_no_checkpoint_is_refused(
    shell: Shell, repo: GitRepo, failed: Path, target: str, said: str
) -> None:
    before = refs(repo)

    refused = shell("rewind", shell.run_id(), target)

    assert (refused.status, refs(repo)) == (128, before)
    assert f"fatal: {said}" in refused.err


def test_without_a_target_the_timeline_is_printed(shell: Shell, failed: Path) -> None:
    assert failed.exists()

    rows = [row.split() for row in shell("rewind").out.splitlines()]

    assert [row[:3] + row[-1:] for row in rows[1:]] == [
        ["@1", "plan@1", "success", "ok"],
        ["@2", "build@1", "success", "ok"],
        ["@3", "check@1", "fail", "ok"],
    ]


def test_names_of_hostile_files_print_harmlessly(shell: Shell, failed: Path) -> None:
    (failed / "\x1b[31mred\n\u202e").write_text("")

    shown = shell("rewind", "-n", "plan")

    assert "keep \\x1b[31mred \\u202e: no checkpoint of this run knows it" in shown.out
    assert os.path.exists(failed / "\x1b[31mred\n\u202e")
