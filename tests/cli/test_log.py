"""``git fabro log``: the timeline, its links, its graph, of our runs and Fabro's."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests import fabro
from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo
from tests.fabro import Visit

NEWEST = "run <run> (the newest)\n"
LOOP = (
    Visit("plan", changes=True),
    Visit("verify", "fail"),
    Visit("fixup", changes=True),
    Visit("verify", number=2),
)
FAN = """digraph { start [shape=Mdiamond]; exit [shape=Msquare]
split [shape=component]; join [shape=tripleoctagon, merge=all]
api [script="echo a > a.txt"]; docs [script="echo d > d.txt"]
start -> split; split -> api -> join; split -> docs -> join; join -> exit }
"""


BOTH = pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])


def _blind(shell: Shell, *, git: bool) -> None:
    """Takes git off the PATH, unless the test runs with it."""
    if not git:
        shell.patch.setenv("PATH", "/nonexistent")


def _oid(commit: str | None) -> str:
    return (commit or "")[:12]


@BOTH
def test_a_run_is_a_table_newest_first(shell: Shell, repo: GitRepo, git: bool) -> None:
    shell("run", "two")
    run = shell.run_id()
    second, first = repo.git("log", "--format=%H", f"main..fabro/run/{run}").split()
    metas = repo.git(
        "log", "--format=%(trailers:key=Fabro-Checkpoint,valueonly,separator=)", f"main..{second}"
    ).split()
    times = repo.git("log", "--date=format:%F %T", "--format=%cd", f"main..{second}").split("\n")
    _blind(shell, git=git)

    typed = shell("log")

    rows = [row.split("  ") for row in typed.out.splitlines()]
    assert (typed.status, typed.err) == (0, NEWEST)
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["CHECKPOINT", "NODE", "STATUS", "WHEN", "TOOK", "FILES", "RUN", "META"],
        ["@2", "build@1", "success", times[0], "<spent>", "1", _oid(second), _oid(metas[0])],
        ["@1", "plan@1", "success", times[1], "<spent>", "1", _oid(first), _oid(metas[1])],
    ]


@BOTH
def test_a_run_is_a_document(shell: Shell, repo: GitRepo, git: bool) -> None:
    shell("run", "two")
    run = shell.run_id()
    repo.git("switch", "-q", f"fabro/run/{run}")
    repo.commit({"by-hand": "x"})
    _blind(shell, git=git)

    typed = shell("log", "--json")
    found = json.loads(typed.out.replace("<spent>", "0"))

    node = {
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
    by_hand = dict.fromkeys(
        ("node", "visit", "status", "duration_ms", "meta_commit", "named_meta_commit")
    )
    assert found == {
        "run_id": "<run>",
        "entries": [
            node | {"ordinal": 3, "kind": "commit", "link": "none"} | by_hand,
            node | {"ordinal": 2, "node": "build"},
            node,
        ],
    }


def test_a_number_takes_the_newest_and_reverse_turns_them(shell: Shell) -> None:
    shell("run", "two")

    def nodes(*argv: str) -> list[str]:
        return [row.split(" ", 1)[1] for row in shell("log", "--oneline", *argv).out.splitlines()]

    assert nodes() == ["@2 build@1 success", "@1 plan@1 success"]
    assert nodes("--reverse") == ["@1 plan@1 success", "@2 build@1 success"]
    assert nodes("-n", "1") == ["@2 build@1 success"]
    assert nodes("-n", "1", "--reverse") == ["@2 build@1 success"]
    assert nodes("-n", "0") == []
    for huge in (str(sys.maxsize + 1), "9" * 5000):
        typed = shell("log", "-n", huge)
        assert (typed.status, typed.err.splitlines()[-1]) == (129, "hint: git fabro log -h")


@BOTH
def test_a_patch_is_what_git_prints(shell: Shell, repo: GitRepo, git: bool) -> None:
    shell("run", "two")
    run = shell.run_id()
    printed = repo.git("diff", "--full-index", f"fabro/run/{run}~1", f"fabro/run/{run}")
    _blind(shell, git=git)

    typed = shell.exactly("log", "-n", "1", "-p")

    assert typed.out.partition("\n")[2] == printed + "\n"
    assert shell.exactly("log", "-n", "1", "--stat").out.partition("\n")[2] == (
        " build.txt | 1 +\n 1 files changed, 1 insertions(+), 0 deletions(-)\n"
    )


def test_a_run_without_a_checkpoint_says_so(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("log") == Typed(0, "No checkpoints found.\n", NEWEST)
    assert json.loads(shell("log", "--json").out)["entries"] == []


def test_a_link_that_is_not_good_says_why(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    run = shell.run_id()
    tip = repo.git("rev-parse", f"fabro/run/{run}")
    text = repo.git("log", "-1", "--format=%B", tip)
    meta = repo.git("log", "-1", "--format=%(trailers:key=Fabro-Checkpoint,valueonly)", tip).strip()
    message = text.replace(meta, "1" * 40)
    changed = repo.git("commit-tree", f"{tip}^{{tree}}", "-p", f"{tip}^", "-m", message)
    repo.git("update-ref", f"refs/heads/fabro/run/{run}", changed)

    typed = shell("log", "--oneline", "-n", "1")

    assert typed == Typed(
        0,
        f"{changed[:12]} @2 build@1 success (no metadata: 111111111111 is absent)\n",
        NEWEST,
    )


def test_snapshots_stand_between(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    run = shell.run_id()
    first = repo.git("rev-parse", f"fabro/run/{run}~1")
    taken = repo.git("commit-tree", f"{first}^{{tree}}", "-p", first, "-m", "snapshot")
    name = "01JKXYZ3F9QW8T2R5V7M1N0P4S"
    repo.git("update-ref", f"refs/fabro/checkpoint/{run}/{name}", taken)

    typed = shell.exactly("log", "--oneline")
    entries = json.loads(shell.exactly("log", "--json").out)["entries"]

    assert [row.split()[1] for row in typed.out.splitlines()] == ["@2", name, "@1"]
    assert (entries[1]["kind"], entries[1]["ordinal"]) == ("snapshot", None)
    assert (entries[1]["checkpoint_id"], entries[1]["run_commit"]) == (name, taken)
    assert "checkpoint_id" not in entries[0]


def test_a_graph_has_parallel_branches_and_forks(shell: Shell, repo: GitRepo) -> None:
    repo.commit({"fan.fabro": FAN})
    shell("run", "fan.fabro")
    run = shell.run_id()
    shell.exactly("fork", run, "@1")

    typed = shell.exactly("log", "--graph", run)

    shown = [re.sub("[0-9a-f]{12} ", "", row) for row in _rows(typed)]
    fork = shell.run_id()
    assert shown == [
        "* @2 join@1 success",
        f"| * fork {fork}",
        "|/",
        "* @1 split@1 success",
        "|\\",
        "| * split@1/api: api@1 success",
        "|/",
        "|\\",
        "| * split@1/docs: docs@1 success",
        "|/",
    ]


def _rows(typed: Typed) -> list[str]:
    return typed.out.splitlines()


@pytest.mark.parametrize("generation", fabro.GENERATIONS)
def test_a_run_of_fabros_is_told_in_every_generation(
    shell: Shell, repo: GitRepo, generation: str
) -> None:
    written = fabro.write(repo, LOOP, generation=generation)

    with_git = json.loads(shell.exactly("log", "--json").out)
    shell.patch.setenv("PATH", "/nonexistent")
    without = json.loads(shell.exactly("log", "--json").out)

    assert with_git == without
    assert with_git["run_id"] == fabro.RUN
    assert [
        (one["ordinal"], one["node"], one["visit"], one["status"], one["link"])
        for one in reversed(with_git["entries"])
    ] == [
        (1, "plan", 1, "success", "ok"),
        (2, "verify", 1, "fail", "ok"),
        (3, "fixup", 1, "success", "ok"),
        (4, "verify", 2, "success", "ok"),
    ]
    pairs = [(one["run_commit"], one["meta_commit"]) for one in reversed(with_git["entries"])]
    assert pairs == list(written.pairs)
    assert [one["files_changed"] for one in reversed(with_git["entries"])] == [1, 0, 1, 0]
    spent = {one["duration_ms"] for one in with_git["entries"]}
    assert spent == ({1234} if generation == "G1" else {None})


def test_links_of_fabros_runs_say_why(shell: Shell, repo: GitRepo) -> None:
    visits = (
        Visit("a"),
        Visit("b", link=fabro.DANGLING),
        Visit("c", "failed", link=fabro.UNNAMED),
        Visit("d", link=fabro.NO_COMMIT),
    )
    fabro.write(repo, visits, generation="G4c", ends=False)

    typed = shell("log", "--oneline")

    assert [row.split(" ", 1)[1] for row in _rows(typed)] == [
        "@4 c@1 failed (no metadata: no trailer)",
        "@3 b@1 success (no metadata: 37593d6a48f3 is absent)",
        "@2 d@1 success (no run commit)",
        "@1 a@1 success",
    ]


def test_a_run_with_one_branch_is_a_run(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, [Visit("a", link=fabro.NO_COMMIT)], run="01KM4C6R7M1XZF086NV6F0S7JS")
    fabro.write(repo, [Visit("b", link=fabro.NO_META)], run="01KQAGTFNJD260JS2SPE1NF6FZ")
    arc = "01KKPHR5BRDJFSPTGW05SCH88D"
    fabro.write(repo, [Visit("c")], run=arc, run_prefix="refs/heads/arc/run/")

    assert shell("log", "--oneline", "01KM4").out.endswith(" @1 a@1 success (no run commit)\n")
    assert shell("log", "--oneline", "01KQA").out.endswith(
        " @1 b@1 success (no metadata: no trailer)\n"
    )
    assert shell("log", "--oneline", f"arc/run/{arc}").out.endswith(" @1 c@1 success\n")


def test_what_is_no_checkpoint_is_passed_over(shell: Shell, repo: GitRepo) -> None:
    written = fabro.write(repo, [Visit("fork")], ends=False)
    branch = fabro.Branch(repo, f"refs/heads/fabro/run/{fabro.RUN}", [written.pairs[0][0] or ""])
    base = Visit("split", "parallel_base")
    branch.commit(fabro.checkpoint_message(fabro.RUN, base, 0, None), None)
    branch.commit(f"fabro({fabro.RUN}): api (success)\n", None)
    branch.commit(f"fabro({fabro.RUN}): some words\n", None)
    block = fabro.checkpoint_message(fabro.RUN, Visit("x"), 3, None)
    branch.commit(f"Squash\n\n* {block}", None)

    assert [row.split(" ", 1)[1] for row in _rows(shell("log", "--oneline"))] == [
        "@1 fork@1 success"
    ]


def test_a_state_that_does_not_parse_is_named_and_the_rest_is_told(
    shell: Shell, repo: GitRepo
) -> None:
    fabro.write(repo, [Visit("a")], ends=False)
    meta = fabro.Branch(repo, f"refs/heads/fabro/meta/{fabro.RUN}")
    meta.commits.append(repo.git("rev-parse", meta.ref))
    broken = meta.commit("checkpoint\n", {"manifest.json": "{}", "checkpoint.json": "{"})

    typed = shell("log", "--oneline")

    assert typed.status == 1
    assert [row.split(" ", 1)[1] for row in _rows(typed)] == [
        "@2 ?@1 ? (no run commit)",
        "@1 a@1 success",
    ]
    assert f"warning: checkpoint at {broken[:12]} cannot be read: checkpoint.json" in typed.err


def test_names_print_harmlessly(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, [Visit("a\x1b[2J\u202eb\rc", changes=False)])

    for argv in (["log"], ["log", "--oneline"], ["log", "--graph"], ["log", "--color"]):
        out = shell(*argv).out
        assert "a\\x1b[2J\\u202eb\\x0dc@1" in out
        assert not {"\x1b[2", "\u202e", "\r"} & {out[at : at + 3] for at in range(len(out))}
    assert "\u202e" not in shell("log", "--json").out


def test_what_a_remote_has_is_told_and_marked(shell: Shell, repo: GitRepo, tmp_path: Path) -> None:
    shell("run", "two")
    run = shell.run_id()
    expected = json.loads(shell.exactly("log", "--json").out)
    repo.git("clone", "-q", ".", f"{tmp_path}/clone")
    clone = shell.at(repo.path.parent / "clone")

    typed = clone.exactly("log", "--json")

    assert json.loads(typed.out) == expected
    assert typed.err == f"run {run} (the newest)\nrun {run} as origin had it\n"
    listed = json.loads(clone.exactly("list", "-a", "--json").out)["runs"]
    assert [(one["run_id"], one["origin"], one["status"]) for one in listed] == [
        (run, "origin", "success")
    ]
    assert clone.exactly("show", run).status == 0
    assert len(clone.exactly("events", run).out.splitlines()) == 17


@pytest.mark.parametrize("where", ["bare", "folder", "linked"])
def test_it_works_from_everywhere(shell: Shell, repo: GitRepo, where: str) -> None:
    shell("run", "two")
    expected = shell.exactly("log", "--json").out
    path = repo.path / "fabro"
    if where == "bare":
        path = repo.path.parent / "bare"
        repo.git("clone", "-q", "--mirror", ".", str(path))
    elif where == "linked":
        path = repo.path.parent / "linked"
        repo.git("worktree", "add", "-q", "--detach", str(path))

    assert shell.at(path).exactly("log", "--json").out == expected
    shell.patch.setenv("PATH", "/nonexistent")
    assert shell.at(path).exactly("log", "--json").out == expected


@pytest.mark.parametrize(
    "argv", [[], ["two"], ["-n", "1"], ["--oneline", "two"], ["--json", "-n", "1", "two"]]
)
def test_the_usual_forms_mean_without_typer_what_they_mean_with_it(
    shell: Shell, argv: list[str]
) -> None:
    shell("run", "two")

    assert shell.exactly("log", *argv) == shell.exactly("log", *argv, "--color=never")
