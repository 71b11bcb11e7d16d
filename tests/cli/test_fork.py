"""``git fabro fork``: a run that goes on from a checkpoint of another one."""

from __future__ import annotations

import json

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


def test_a_question_that_was_open_is_not_taken_along(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"ask.fabro": _ASK})
    assert shell("run", "-q", "ask.fabro").status == 3

    made = shell.exactly("fork", "plan").out.strip()

    assert shell("answer", made) == Typed(1, "", "no question is open: <run>\n")
    assert shell("resume", "-q", made).status == 3


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
