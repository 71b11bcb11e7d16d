"""``git fabro fork``: a run that goes on from a checkpoint of another one."""

from __future__ import annotations

import json

import pytest

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo


def test_a_fork_shares_the_history_and_resumes_at_once(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two", "--label", "team=a")
    source = shell.run_id()
    before = repo.git("for-each-ref", f"refs/**/{source}")

    made = shell.exactly("fork", "plan", "--goal", "another way", "--label", "try=2").out.strip()

    assert made == shell.run_id()
    assert repo.git("rev-parse", f"fabro/run/{made}") == repo.git(
        "rev-parse", f"fabro/run/{source}~1"
    )
    assert repo.git("log", "-1", "--format=%s", f"fabro/meta/{made}") == f"fork from {source} @1"
    document = json.loads(shell.exactly("show", "--json", made).out)
    assert document["run"]["parent"] == {"ordinal": 1, "run": source}
    assert document["run"]["labels"] == {"team": "a", "try": "2"}
    assert document["state"]["context_values"]["graph.goal"] == "another way"
    assert shell("resume", "-q", made).status == 0
    assert repo.git("rev-list", "--count", f"main..fabro/run/{made}") == "2"
    assert repo.git("rev-parse", f"fabro/run/{made}^{{tree}}") == repo.git(
        "rev-parse", f"fabro/run/{source}^{{tree}}"
    )
    assert repo.git("for-each-ref", f"refs/**/{source}") == before
    repo.fsck()


def test_a_fork_begins_at_the_last_checkpoint_if_none_is_named(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")
    source = shell.run_id()

    made = json.loads(shell.exactly("fork", "--json").out)

    assert made["parent"] == {"ordinal": 2, "run": source}
    assert repo.git("rev-parse", f"fabro/run/{made['run_id']}") == repo.git(
        "rev-parse", f"fabro/run/{source}"
    )


def test_a_fork_works_in_a_bare_repository(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")
    source = shell.run_id()
    bare = repo.path.parent / "bare.git"
    repo.git("clone", "-q", "--mirror", ".", str(bare))

    made = shell.at(bare).exactly("fork", source, "@1").out.strip()

    assert GitRepo(bare).git("rev-parse", f"fabro/run/{made}") == repo.git(
        "rev-parse", f"fabro/run/{source}~1"
    )


def test_a_fork_made_in_one_clone_resumes_in_another(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")
    made = shell.exactly("fork", "plan").out.strip()
    other = GitRepo(repo.path.parent / "other")
    repo.git("clone", "-q", ".", str(other.path))
    other.git("fetch", "-q", "origin", "refs/heads/fabro/*:refs/heads/fabro/*")

    asked = shell.at(other.path)("resume", made)
    resumed = shell.at(other.path)("resume", "-q", "--trust", made)

    assert (asked.status, resumed.status) == (128, 0)
    assert "resume --trust" in asked.err
    assert other.git("rev-list", "--count", f"main..fabro/run/{made}") == "2"
    other.fsck()


def test_a_question_that_was_open_is_not_taken_along(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"ask.fabro": _ASK})
    assert shell("run", "-q", "ask.fabro").status == 3

    made = shell.exactly("fork", "plan").out.strip()

    assert shell("answer", made) == Typed(1, "", "no question is open: <run>\n")
    assert shell("resume", "-q", made).status == 3


def test_a_fork_of_where_a_run_broke_off_visits_that_node_anew(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"w.fabro": _FAILS})
    assert shell("run", "-q", "w.fabro").status == 1

    made = shell.exactly("fork").out.strip()

    assert shell("resume", "-q", made).status == 1
    subjects = repo.git("log", "--format=%s", f"main..fabro/run/{made}").splitlines()
    assert [line.partition(": ")[2] for line in subjects] == [
        "check (fail)",
        "check (fail)",
        "plan (success)",
    ]
    repo.fsck()


def test_a_fork_goes_on_by_another_workflow(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"w.fabro": _FAILS})
    assert shell("run", "-q", "w.fabro").status == 1
    source = shell.run_id()
    (repo.path / "better.fabro").write_text(_FAILS.replace("exit 3", "cat plan.txt"))

    made = shell.exactly("fork", "--workflow", "better.fabro").out.strip()

    assert repo.git("show", f"fabro/meta/{source}:graph.fabro") + "\n" == _FAILS
    assert "cat plan.txt" in repo.git("show", f"fabro/meta/{made}:graph.fabro")
    assert shell("resume", "-q", made).status == 0
    document = json.loads(shell.exactly("show", "--json", made).out)
    assert document["run"]["workflow_file"] == "better.fabro"
    repo.fsck()


@pytest.mark.parametrize("target", ["@1", "@-1"])
def test_a_fork_has_other_inputs(shell: Shell, repo: GitRepo, target: str) -> None:
    repo.commit({"w.fabro": _FAILS.replace("exit 3", "test {{ inputs.word }} = good")})
    assert shell("run", "-q", "w.fabro", "-I", "word=bad").status == 1

    made = shell.exactly("fork", target, "--input", "word=good").out.strip()

    assert shell("resume", "-q", made).status == 0
    document = json.loads(repo.git("show", f"fabro/meta/{made}:run.json"))
    assert document["settings"]["vars"] == {"word": "good"}


def test_a_workflow_with_errors_or_without_the_next_node_makes_no_fork(
    shell: Shell, repo: GitRepo
) -> None:
    shell("run", "-q", "two")
    (repo.path / "bad.fabro").write_text("digraph Bad {")
    (repo.path / "other.fabro").write_text(_FAILS)
    before = repo.git("for-each-ref")

    assert shell("fork", "@1", "--workflow", "bad.fabro").status == 128
    assert shell("fork", "@1", "--workflow", "other.fabro") == Typed(
        128,
        "",
        "run <run> (the newest)\n"
        "fatal: the run goes on at a node that the workflow does not have: build: other.fabro\n"
        "hint: git fabro fork --list\n",
    )
    assert shell("fork", "@1", "--workflow", "absent.fabro").status == 128
    assert repo.git("for-each-ref") == before


def test_a_fork_of_a_run_without_a_checkpoint_is_refused(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"ask.fabro": _ASK.replace("start -> plan -> review", "start -> review")})
    assert shell("run", "-q", "ask.fabro").status == 3

    assert shell("fork") == Typed(
        128,
        "",
        "run <run> (the newest)\nfatal: no checkpoint yet: <run>\nhint: git fabro list -a\n",
    )


_FAILS = """\
digraph Fails {
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan  [shape=parallelogram, script="echo planned > plan.txt"]
    check [shape=parallelogram, script="exit 3"]
    start -> plan -> check
    check -> exit [condition="outcome=success"]
}
"""
_ASK = """\
digraph Ask {
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan   [shape=parallelogram, script="echo p"]
    review [shape=hexagon, label="Ship it?"]
    start -> plan -> review
    review -> exit [label="[Y] Yes"]
    review -> plan [label="[N] No"]
}
"""
