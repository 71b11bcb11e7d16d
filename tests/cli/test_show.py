"""``git fabro show``: runs, checkpoints, outcomes, files, values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo

WHOLE = """\
run          <run>
status       success
workflow     fabro/workflows/two/workflow.fabro
goal         ship it
created      <time>
checkpoints  2
branch       fabro/run/<run>
run tip      <oid>
meta tip     <oid>
next         nothing

NODE   VISITS  OUTCOME  REASON
start  1       success
plan   1       success
build  1       success
exit   1       success
"""
FIRST = """\
run          <run>
status       success
workflow     fabro/workflows/two/workflow.fabro
goal         ship it
created      <time>
checkpoints  2
branch       fabro/run/<run>
run tip      <oid>
meta tip     <oid>
checkpoint   @1 plan@1 (success)
run commit   <oid>
meta commit  <oid> (link: ok)
next         build

NODE   VISITS  OUTCOME  REASON
start  1       success
plan   1       success
"""
NEWEST = "run <run> (the newest)\n"
LOG = "hint: git fabro log <run>\n"


def test_the_engine_of_the_snapshots_is_said_with_v(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    fast = WHOLE.replace("next  ", "snapshots    by the fast engine\nnext  ")
    assert shell("show", "-v") == Typed(0, fast, NEWEST)

    repo.commit({".gitattributes": "* text=auto\n"})
    shell("run", "two")
    shown = shell("show", "-v")

    assert "snapshots    by git itself: '.gitattributes' sets text\n" in shown.out


def test_a_run_is_shown_whole(shell: Shell) -> None:
    shell("run", "two")

    assert shell("show") == Typed(0, WHOLE, NEWEST)
    assert shell("show", "two") == Typed(0, WHOLE, "")
    assert shell("show", shell.run_id()[:12].lower()) == Typed(0, WHOLE, "")
    assert shell("show", f"fabro/run/{shell.run_id()}") == Typed(0, WHOLE, "")


@pytest.mark.parametrize("target", ["@1", "@+1", "@-2", "plan", "plan@1"])
def test_a_checkpoint_is_shown_as_it_was(shell: Shell, target: str) -> None:
    shell("run", "two")

    assert shell("show", target) == Typed(0, FIRST, NEWEST)
    assert shell("show", "two", target) == Typed(0, FIRST, "")
    assert shell("show", "--run", "two", target) == Typed(0, FIRST, "")


def test_a_checkpoint_is_named_by_either_commit(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    commit = repo.git("rev-parse", f"fabro/run/{shell.run_id()}~1")
    meta = repo.git("log", "-1", "--format=%(trailers:key=Fabro-Checkpoint,valueonly)", commit)

    assert shell("show", commit) == Typed(0, FIRST, NEWEST)
    assert shell("show", meta[:12]) == Typed(0, FIRST, NEWEST)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("@x", "invalid ordinal: @x"),
        ("@", "invalid ordinal: @"),
        ("@0", "ordinal must be >= 1 (max @2)"),
        ("@3", "ordinal @3 out of range (max @2)"),
        ("@-3", "ordinal @-3 out of range (max @2)"),
        ("plan@0", "visit number must be >= 1"),
        ("plan@2", "no visit 2 found for node 'plan' (there is plan@1)"),
        ("paln", "no checkpoint found for node 'paln'; did you mean 'plan'?"),
        ("start", "no checkpoint found for node 'start'"),
        ("a@b", "no checkpoint found for node 'a@b'"),
    ],
)
def test_a_target_that_is_none_is_refused_with_what_is_there(
    shell: Shell, target: str, message: str
) -> None:
    shell("run", "two")

    assert shell("show", target) == Typed(128, "", f"{NEWEST}fatal: {message}\n{LOG}")


def test_a_word_that_could_be_both_is_refused(shell: Shell, repo: GitRepo) -> None:
    empty = "digraph { start [shape=Mdiamond]; exit [shape=Msquare]; start -> exit }"
    repo.write({"fabro/workflows/plan/workflow.fabro": empty})
    shell("run", "plan")
    shell("run", "two")

    typed = shell("show", "plan")

    assert typed == Typed(
        128,
        "",
        "fatal: could be a run or a checkpoint: plan\nhint: git fabro show --run <run> [TARGET]\n",
    )
    assert shell("show", "two", "plan").status == 0


def test_an_ambiguous_prefix_lists_what_it_could_be(shell: Shell) -> None:
    shell("run", "two")
    shell("run", "two")
    first, second = sorted(shell.exactly("list", "-a", "-q").out.split())

    typed = shell.exactly("show", first[:4])

    assert typed == Typed(
        128,
        "",
        f"fatal: ambiguous run ID prefix '{first[:4]}', matches:\n"
        f"  {first} success\n"
        f"  {second} success\n"
        "hint: git fabro list -a\n",
    )


def test_a_checkpoint_is_a_document(shell: Shell) -> None:
    shell("run", "two")

    found = json.loads(shell("show", "--json", "@1").out.replace("<spent>", "0"))

    assert found["checkpoint"] == {
        "ordinal": 1,
        "kind": "node",
        "node": "plan",
        "visit": 1,
        "status": "success",
        "at": "<time>",
        "duration_ms": 0,
        "files_changed": 1,
        "run_commit": "<oid>",
        "meta_commit": "<oid>",
        "named_meta_commit": "<oid>",
        "link": "ok",
    }
    assert found["run"]["status"] == "success"
    assert found["run"]["workflow_slug"] == "two"
    assert found["state"]["current_node"] == "plan"
    assert found["state"]["completed_nodes"] == ["start", "plan"]
    assert sorted(found) == ["checkpoint", "run", "state"]


def test_without_a_target_the_document_has_the_last_checkpoint(shell: Shell) -> None:
    shell("run", "two")

    found = json.loads(shell("show", "--json").out.replace("<spent>", "0"))

    assert (found["checkpoint"]["ordinal"], found["checkpoint"]["node"]) == (2, "build")
    assert found["state"]["current_node"] == "exit"


def test_a_run_without_checkpoints_has_a_document_without(shell: Shell) -> None:
    shell("run", "asks")

    assert json.loads(shell("show", "--json").out)["checkpoint"] is None


def test_a_commit_by_hand_is_a_checkpoint_without_a_node(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    repo.git("switch", "-q", f"fabro/run/{shell.run_id()}")
    repo.commit({"by-hand.txt": "x", "too.txt": "y"})

    found = json.loads(shell("show", "--json").out)["checkpoint"]

    assert (found["kind"], found["node"], found["link"]) == ("commit", None, "none")
    assert (found["files_changed"], found["meta_commit"]) == (2, None)
    assert shell("show", "@3").err == (
        "fatal: no metadata for checkpoint @3 (link: none): <run>\nhint: git show <oid>\n"
    )


def test_what_is_asked_is_shown(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("show").out.endswith("\nreview@1: Ship it?\n  [Y] Yes\n  [N] No\n")


def test_a_node_is_shown_with_its_files(shell: Shell) -> None:
    shell("run", "two")

    typed = shell("show", "--node", "plan")
    document, _, files = typed.out.partition("\n}\n")

    assert typed.status == 0
    assert json.loads(document + "}")["status"] == "success"
    assert "git fabro show <run> --node plan --file stdout.log\n" in files
    assert json.loads(shell("show", "--node", "plan", "--json").out)["node"] == "plan"
    assert shell("show", "--node", "nope") == Typed(
        128,
        "",
        f"{NEWEST}fatal: node has not finished: nope (finished: start, plan, build, exit)\n"
        "hint: git fabro show <run>\n",
    )


def test_a_file_is_printed_as_it_is(shell: Shell) -> None:
    shell("run", "two")

    assert shell("show", "two", "--node", "plan", "--file", "stdout.log").out == "planned\n"
    assert shell("show", "two", "--file", "graph.fabro").out.startswith("digraph Two {\n")
    assert shell("show", "two", "--node", "plan", "--file", "nope") == Typed(
        128,
        "",
        "fatal: no such file in the metadata: nodes/plan/nope\n"
        "hint: git fabro show <run> --node plan\n",
    )


def test_a_value_of_the_context_is_printed(shell: Shell) -> None:
    shell("run", "two")

    assert shell("show", "two", "--context", "command.output").out == "built\n"
    assert shell("show", "two", "plan", "--context", "command.output").out == "planned\n"
    assert shell("show", "two", "--context", "command.output", "--json").out == '"built\\n"\n'
    assert shell("show", "two", "--context", "command.outptu") == Typed(
        128,
        "",
        "fatal: no such context key: command.outptu\n"
        "hint: git fabro show <run> --context command.output\n",
    )


def test_in_the_work_tree_of_a_run_it_is_the_one_that_is_meant(shell: Shell, repo: GitRepo) -> None:
    shell("run", "asks")
    first = shell.run_id()
    shell("run", "two")
    listed = repo.git("worktree", "list", "--porcelain").split("\n")
    own = next(Path(row[9:]) for row in listed if row.endswith(f"/{first}/worktree"))

    assert shell.at(own).exactly("show").out.splitlines()[0].split() == ["run", first]


FAN = """digraph {
  start [shape=Mdiamond]; exit [shape=Msquare]
  split [shape=component]; join [shape=tripleoctagon, merge=all]
  api [script="echo a > a.txt"]; docs [script="echo d > d.txt"]
  start -> split; split -> api -> join; split -> docs -> join; join -> exit
}
"""


def test_a_node_inside_a_fan_out_names_the_parallel_node(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"fan.fabro": FAN})
    shell("run", "fan.fabro")

    typed = shell("show", "api")

    assert typed.err == f"{NEWEST}node 'api' is inside parallel 'split'\n"
    assert "checkpoint   @1 split@1 (success)\n" in typed.out
    assert shell("show", "api@2").err.splitlines()[1] == (
        "fatal: node 'api' is inside parallel 'split'; no visit 2 found for 'split' "
        "(there is split@1)"
    )


def test_outside_a_repository_a_run_is_shown_from_its_journal(shell: Shell, outside: Shell) -> None:
    outside.apart("run", str(shell.folder / "fabro/workflows/two/workflow.fabro"))

    typed = outside("show")

    assert typed.status == 0
    assert "checkpoints  0\nnext         nothing\n" in typed.out
    assert outside("show", "@1") == Typed(
        128, "", f"{NEWEST}fatal: not a git repository: .\nhint: git init\n"
    )
