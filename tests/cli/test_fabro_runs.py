"""Runs that Fabro made, of every generation: gone back to, forked, and resumed as forks."""

from __future__ import annotations

import json

import pytest

from tests import fabro
from tests.cli.typed import Shell
from tests.conftest import GitRepo
from tests.fabro import RUN, Visit, Workflow

#: plan, verify (fails), fixup, and what is left to do: verify again.
DOT = """\
digraph Ship {
    graph [goal="ship it"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan   [shape=parallelogram, script="echo planned"]
    verify [shape=parallelogram, script="test -e work/fixup.txt && echo good > verified.txt"]
    fixup  [shape=parallelogram, script="mkdir -p work; echo fixed > work/fixup.txt"]
    start -> plan -> verify
    verify -> exit [condition="outcome=success"]
    verify -> fixup [condition="outcome=fail"]
    fixup -> verify
}
"""


def _script(text: str) -> dict[str, object]:
    return {"attrs": {"shape": {"String": "parallelogram"}, "script": {"String": text}}}


DRAWN = {
    "name": "Ship",
    "nodes": {
        "start": {"attrs": {"shape": {"String": "Mdiamond"}}},
        "plan": _script("echo planned"),
        "verify": _script("test -e work/fixup.txt && echo good > verified.txt"),
        "fixup": _script("mkdir -p work; echo fixed > work/fixup.txt"),
        "exit": {"attrs": {"shape": {"String": "Msquare"}}},
    },
    "edges": [
        {"from": "start", "to": "plan", "attrs": {}},
        {"from": "plan", "to": "verify", "attrs": {}},
        {"from": "verify", "to": "exit", "attrs": {"condition": {"String": "outcome=success"}}},
        {"from": "verify", "to": "fixup", "attrs": {"condition": {"String": "outcome=fail"}}},
        {"from": "fixup", "to": "verify", "attrs": {}},
    ],
    "attrs": {"goal": {"String": "ship it"}},
}
WORKFLOW = Workflow(DOT, DRAWN, {"plan": "verify", "verify": "fixup", "fixup": "verify"})
WITH_GRAPH = tuple(one for one in fabro.GENERATIONS if one != "G2b")
PREFIXES = ("refs/heads/fabro/run/", "refs/heads/arc/run/")


def visits(generation: str) -> list[Visit]:
    good, bad = ("succeeded", "failed") if generation == "G4c" else ("success", "fail")
    return [
        Visit("plan", good, changes=True),
        Visit("verify", bad),
        Visit("fixup", good, changes=True),
    ]


def heads(repo: GitRepo) -> dict[str, str]:
    listed = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    return dict(line.split(" ") for line in listed.splitlines())


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("generation", fabro.GENERATIONS)
def test_each_checkpoint_is_gone_back_to_by_refs_alone_and_undo_is_exact(
    shell: Shell, repo: GitRepo, generation: str, prefix: str
) -> None:
    written = fabro.write(
        repo, visits(generation), generation=generation, workflow=WORKFLOW, run_prefix=prefix
    )
    before = heads(repo)

    for ordinal, (run_commit, meta_commit) in enumerate(written.pairs, start=1):
        said = shell.exactly("rewind", RUN, f"@{ordinal}").out
        assert said == f"rewound {RUN} to @{ordinal}\nrefs only: the run has no work tree\n"
        moved = {prefix + RUN: run_commit, f"refs/heads/fabro/meta/{RUN}": meta_commit}
        assert heads(repo) == {**before, **moved}
        entries = json.loads(shell.exactly("log", "--json", RUN).out)["entries"]
        assert [entry["ordinal"] for entry in entries] == list(range(ordinal, 0, -1))
        assert shell("undo").status == 0
        assert heads(repo) == before
    repo.fsck()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("generation", WITH_GRAPH)
def test_a_fork_is_ours_begins_with_fabros_checkpoints_and_resumes(
    shell: Shell, repo: GitRepo, generation: str, prefix: str
) -> None:
    written = fabro.write(
        repo, visits(generation), generation=generation, workflow=WORKFLOW, run_prefix=prefix
    )
    before = heads(repo)

    made = shell.exactly("fork", RUN).out.strip()

    assert shell("resume", "-q", made).status == 128
    done = shell("resume", "-q", "--trust", made)
    assert (done.status, done.err) == (0, "run <run>\n")
    entries = json.loads(shell.exactly("log", "--json", made).out)["entries"][::-1]
    told = [(e["ordinal"], e["node"], e["visit"], e["link"]) for e in entries]
    assert told == [
        (1, "plan", 1, "ok"),
        (2, "verify", 1, "ok"),
        (3, "fixup", 1, "ok"),
        (4, "verify", 2, "ok"),
    ]
    pairs = tuple((e["run_commit"], e["meta_commit"]) for e in entries)
    assert pairs[:3] == written.pairs
    assert repo.git("show", f"fabro/run/{made}:verified.txt") == "good"
    assert {ref: oid for ref, oid in heads(repo).items() if made not in ref} == before
    document = json.loads(repo.git("show", f"fabro/meta/{made}:run.json"))
    assert document["parent"] == {"ordinal": 3, "run": RUN}
    repo.fsck()


def test_resume_of_fabros_own_run_says_that_it_takes_a_fork(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, visits("G1"), workflow=WORKFLOW)
    before = heads(repo)

    said = shell("resume", RUN)

    assert (said.status, said.out) == (128, "")
    assert said.err == (
        "fatal: Fabro made this run; only a fork of it can go on: <run>\n"
        "hint: git fabro fork <run>\n"
    )
    assert heads(repo) == before


@pytest.mark.parametrize("generation", ["G2b", "none"])
def test_a_fork_without_a_graph_says_what_is_missing_and_takes_a_workflow(
    shell: Shell, repo: GitRepo, generation: str
) -> None:
    made_of = visits(generation)
    if generation == "none":
        made_of = [Visit(v.node, v.status, fabro.NO_META, changes=v.changes) for v in made_of]
    fabro.write(repo, made_of, generation="G2b", workflow=WORKFLOW)
    (repo.path / "ship.fabro").write_text(DOT)

    bare = shell.exactly("fork", RUN).out.strip()
    said = shell("resume", bare)
    assert said.status == 128
    assert said.err.startswith("fatal: the run's workflow is not in its metadata: ")
    assert said.err.endswith("hint: git fabro fork --workflow FILE\n")

    for source in (RUN, bare):
        made = shell.exactly("fork", "--workflow", "ship.fabro", source, "@3").out.strip()
        assert shell("resume", "-q", made).status == 0
        assert repo.git("show", f"fabro/run/{made}:verified.txt") == "good"
    repo.fsck()


def test_a_workflow_without_the_node_at_which_the_run_goes_on_is_refused(
    shell: Shell, repo: GitRepo
) -> None:
    fabro.write(repo, visits("G1"), workflow=WORKFLOW)
    (repo.path / "other.fabro").write_text(DOT.replace("verify", "check"))
    before = heads(repo)

    said = shell("fork", "--workflow", "other.fabro", RUN)

    assert said.status == 128
    assert said.err == (
        "fatal: the run goes on at a node that the workflow does not have: verify: other.fabro\n"
        "hint: git fabro fork --list\n"
    )
    assert heads(repo) == before


def test_a_workflow_that_is_not_admitted_makes_a_fork_that_says_why_it_cannot_go_on(
    shell: Shell, repo: GitRepo
) -> None:
    fabro.write(repo, visits("G1"), workflow=Workflow(DOT.replace("-> verify", "-> nowhere")))

    made = shell.exactly("fork", RUN).out.strip()
    said = shell("resume", made)

    assert said.status == 128
    assert said.err.endswith(
        "fatal: the recorded workflow is not admitted: graph.fabro\n"
        "hint: git fabro fork --workflow FILE <run>\n"
    )


def test_a_checkpoint_from_before_the_fork_is_forked_and_not_gone_back_to(
    shell: Shell, repo: GitRepo
) -> None:
    written = fabro.write(repo, visits("G3"), generation="G3", workflow=WORKFLOW)
    made = shell.exactly("fork", RUN).out.strip()
    before = heads(repo)

    said = shell("rewind", made, "@1")
    assert said.status == 128
    assert said.err == (
        "fatal: @1 is from before the fork, and Fabro's: <run>\nhint: git fabro fork <run> @1\n"
    )
    assert heads(repo) == before

    again = shell.exactly("fork", made, "@1").out.strip()
    assert repo.git("rev-parse", f"fabro/run/{again}") == written.pairs[0][0]
    assert shell("resume", "-q", "--trust", again).status == 0
    entries = json.loads(shell.exactly("log", "--json", again).out)["entries"][::-1]
    assert [(e["node"], e["visit"]) for e in entries] == [
        ("plan", 1),
        ("verify", 1),
        ("fixup", 1),
        ("verify", 2),
    ]


def test_a_checkpoint_with_one_commit_only(shell: Shell, repo: GitRepo) -> None:
    path = [
        Visit("plan", changes=True),
        Visit("verify", "fail", fabro.DANGLING),
        Visit("fixup", link=fabro.NO_COMMIT),
    ]
    written = fabro.write(repo, path, generation="G4c", workflow=WORKFLOW)
    before = heads(repo)

    # The state of @2 was never pushed: the metadata that there is stays, and the files are there.
    listed = json.loads(shell.exactly("log", "--json", RUN).out)["entries"][::-1]
    assert [(e["node"], bool(e["run_commit"]), e["link"]) for e in listed] == [
        ("plan", True, "ok"),
        ("fixup", False, "none"),
        ("verify", True, "missing"),
    ]
    assert shell("rewind", RUN, "fixup").status == 128
    assert shell("rewind", RUN, "@3").status == 0
    assert heads(repo) == before
    made = shell.exactly("fork", RUN).out.strip()
    assert repo.git("rev-parse", f"fabro/run/{made}") == written.pairs[1][0]
    state = json.loads(repo.git("show", f"fabro/meta/{made}:checkpoint.json"))
    assert state["completed_nodes"] == ["start", "plan", "fixup", "verify"]
    assert state["next_node_id"] == "fixup"


def test_a_branch_that_somebody_has_checked_out_is_not_moved(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, visits("G1"), workflow=WORKFLOW)
    other = repo.path.parent / "other"
    repo.git("worktree", "add", "-q", str(other), f"fabro/run/{RUN}")
    before = heads(repo)

    said = shell("rewind", RUN, "@1")

    assert said.status == 128
    assert said.err == (
        f"fatal: the run branch is checked out in another work tree: {other}\n"
        f"hint: git -C {other} switch --detach\n"
    )
    assert heads(repo) == before


def test_what_a_remote_had_is_not_moved(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, visits("G1"), workflow=WORKFLOW)
    clone = repo.path.parent / "clone"
    repo.git("clone", "-q", ".", str(clone))
    there = GitRepo(clone)
    before = there.git("for-each-ref")

    assert shell.at(clone)("rewind", RUN, "@1").status == 128
    assert there.git("for-each-ref") == before
    made = shell.at(clone).exactly("fork", RUN, "@1").out.strip()
    assert shell.at(clone)("resume", "-q", "--trust", made).status == 0
    there.fsck()
