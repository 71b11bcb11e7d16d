"""``git fabro fsck``: whole outputs, of records that hold and of those that do not."""

from __future__ import annotations

import json

import pytest

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import RunId
from tests import fabro
from tests.broken import ABSENT, TWELVE, Bad, Scene
from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo

BOTH = pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
#: The commits of a run of two nodes: two of the run branch, four of the metadata branch.
TWO = 6


@pytest.fixture
def scene(shell: Shell, repo: GitRepo) -> Scene:
    shell("run", "-q", "two")
    other = shell.run_id()
    shell("run", "-q", "two")
    return Scene(repo, shell.run_id(), f"refs/heads/fabro/meta/{other}")


@BOTH
def test_runs_that_are_whole_are_a_line_each(shell: Shell, scene: Scene, git: bool) -> None:
    if not git:
        shell.patch.setenv("PATH", "/nonexistent")

    assert shell("fsck") == Typed(
        0, f"<run 1> ok ({TWO} commits)\n<run 2> ok ({TWO} commits)\n", ""
    )
    assert shell("fsck", scene.run) == Typed(0, f"<run> ok ({TWO} commits)\n", "")
    assert shell("fsck", "-q") == Typed(0, "", "")
    assert json.loads(shell.exactly("fsck", "--json").out) == {
        "runs": [
            {"run_id": scene.other.rpartition("/")[2], "findings": []},
            {"run_id": scene.run, "findings": []},
        ]
    }


@BOTH
@pytest.mark.parametrize("bad", [bad for bad in TWELVE if bad.is_local], ids=lambda bad: bad.name)
def test_what_a_server_refuses_is_found_where_it_lies(
    shell: Shell, scene: Scene, bad: Bad, git: bool
) -> None:
    [(ref, new)] = bad.make(scene).items()
    scene.repo.git("update-ref", ref, new)
    if not git:
        shell.patch.setenv("PATH", "/nonexistent")

    found = shell.exactly("fsck", "--json")

    rows = {row["run_id"]: row["findings"] for row in json.loads(found.out)["runs"]}
    told = [row for row in rows.pop(scene.run) if row["rule"] == bad.rule]
    assert found.status == 1
    assert list(rows.values()) == [[]]
    assert told[0]["ref"] == ref
    assert bad.says in told[0]["message"]
    assert told[0]["commit"] == (ABSENT if bad.rule == "note" else new)
    assert shell.exactly("fsck", "-q", scene.other.rpartition("/")[2]) == Typed(0, "", "")


def test_the_first_bad_link_is_named_and_with_v_all_of_them(shell: Shell, scene: Scene) -> None:
    first = scene.checkpoint("1" * 40)
    scene.repo.git("update-ref", scene.run_ref, first)
    second = scene.checkpoint("2" * 40)
    scene.repo.git("update-ref", scene.run_ref, second)
    ref = f"refs/heads/fabro/run/{scene.run}"
    rows = [
        f"{scene.run} 2 findings ({TWO + 2} commits)",
        f"  {ref} {first[:12]}: it names 111111111111, which is not there [link]",
        f"  {ref} {second[:12]}: it names 222222222222, which is not there [link]",
        "  checkpoints without a note: 2",
    ]

    typed = shell.exactly("fsck", scene.run)
    told = shell.exactly("fsck", "-v", scene.run)

    assert typed.status == told.status == 1
    assert typed.out.splitlines() == rows[:2]
    assert told.out.splitlines() == rows


def test_the_commit_where_a_chain_breaks_is_named_and_none_after_it(
    shell: Shell, scene: Scene
) -> None:
    broken = scene.meta({layout.RECORDS: b"{}\n"})
    scene.repo.git("update-ref", scene.meta_ref, broken)
    scene.repo.git("update-ref", scene.meta_ref, scene.meta({}))

    typed = shell.exactly("fsck", "-v", scene.run)

    assert typed.out == (
        f"{scene.run} 1 finding ({TWO + 2} commits)\n"
        f"  {scene.meta_ref} {broken[:12]}: records.jsonl: seq or at is wrong [records]\n"
    )


def test_a_missing_note_is_told_and_no_finding(shell: Shell, scene: Scene) -> None:
    scene.repo.git("notes", "--ref=fabro", "remove", scene.tip(scene.run_ref))

    assert shell("fsck", "-v", scene.run) == Typed(
        0, f"<run> ok ({TWO} commits)\n  checkpoints without a note: 1\n", ""
    )


def test_a_note_that_names_another_commit_is_a_finding(shell: Shell, scene: Scene) -> None:
    tip, meta = scene.tip(scene.run_ref), scene.tip(f"{scene.meta_ref}~1")
    scene.repo.git("notes", "--ref=fabro", "add", "-f", "-m", f"Fabro-Commit: {tip}", f"{meta}~1")

    typed = shell.exactly("fsck", scene.run)

    assert typed.out == (
        f"{scene.run} 1 finding ({TWO} commits)\n"
        f"  refs/notes/fabro {scene.tip(f'{meta}~1')[:12]}: it names {tip[:12]}, "
        "which is not linked to its commit [note]\n"
    )


def test_a_commit_that_was_amended_and_is_gone_leaves_a_note_and_no_finding(
    shell: Shell, scene: Scene
) -> None:
    tip, run = scene.tip(scene.run_ref), scene.run
    text = scene.repo.git("log", "-1", "--format=%B", tip)
    tree = scene.tree(tip, {"more.txt": b"more\n"})
    scene.repo.git("update-ref", scene.run_ref, scene.commit(tree, text, f"{tip}~1"))
    (scene.repo.path / ".git" / "objects" / tip[:2] / tip[2:]).unlink()

    assert shell("fsck", run) == Typed(0, f"<run> ok ({TWO} commits)\n", "")
    assert shell("fsck").status == 0


def test_a_note_of_no_run_here_is_told_apart(shell: Shell, scene: Scene) -> None:
    blob = scene.blob(b"of nothing\n")
    tree = scene.repo.git("mktree", stdin=f"100644 blob {blob}\t{ABSENT}\n".encode())
    scene.repo.git("update-ref", layout.NOTES_REF, scene.commit(tree, "notes\n"))

    found = json.loads(shell.exactly("fsck", "--json").out)["runs"][-1]

    assert (found["run_id"], [one["rule"] for one in found["findings"]]) == (None, ["note"])
    assert shell.exactly("fsck").out.splitlines()[-1] == (
        f"  refs/notes/fabro {ABSENT[:12]}: it is on an object that is not there [note]"
    )


@BOTH
def test_a_tree_of_more_paths_than_anybody_could_walk_is_named_and_readers_end(
    shell: Shell, scene: Scene, git: bool
) -> None:
    whole = json.loads(shell.exactly("log", "--json", scene.run).out)["entries"]
    bad = scene.endless_run()
    scene.repo.git("update-ref", scene.run_ref, bad)
    tree = scene.tip(f"{bad}^{{tree}}")
    before = scene.tip(f"{bad}^^{{tree}}")
    if not git:
        shell.patch.setenv("PATH", "/nonexistent")

    assert shell.exactly("fsck", scene.run) == Typed(
        1,
        f"""\
{scene.run} 1 finding ({TWO} commits)
  {scene.run_ref} {bad[:12]}: it adds more than 10000000 paths [size]
""",
        "",
    )
    rows = json.loads(shell.exactly("log", "--json", scene.run).out)["entries"]
    changed = [row["files_changed"] for row in whole]
    assert [row["files_changed"] for row in rows] == [None, *changed[1:]]
    assert [row["node"] for row in rows] == [row["node"] for row in whole]
    assert shell.exactly("diff", scene.run, "@1", "@2") == Typed(
        128,
        "",
        f"fatal: more than 10000000 paths differ: {before[:12]} and {tree[:12]}\n"
        "hint: git fabro fsck\n",
    )


@BOTH
def test_refs_that_leave_runs_no_place_are_named(shell: Shell, repo: GitRepo, git: bool) -> None:
    tip = repo.commit({"file": "text\n"})
    repo.git("branch", "fabro/run")
    repo.git("update-ref", "refs/notes/fabro/x", tip)
    if not git:
        shell.patch.setenv("PATH", "/nonexistent")

    said = "as long as it is there, refs of runs cannot be [ref-name]"
    assert shell.exactly("fsck", "-v") == Typed(
        1,
        f"""\
of no run 2 findings (0 commits)
  refs/heads/fabro/run {tip[:12]}: {said}
  refs/notes/fabro/x {tip[:12]}: {said}
""",
        "",
    )


def test_a_commit_made_by_hand_may_say_what_it_likes(shell: Shell, scene: Scene) -> None:
    tip = scene.tip(scene.run_ref)
    text = f"by hand\n\nFabro-Checkpoint: {ABSENT}\n\nand more\n"
    by_hand = scene.commit(scene.tip(f"{tip}^{{tree}}"), text, tip)
    scene.repo.git("update-ref", scene.run_ref, by_hand)

    assert shell.exactly("fsck", "-v", scene.run) == Typed(
        0,
        f"{scene.run} ok ({TWO + 1} commits)\n"
        f"  no meta commit names {by_hand[:12]} yet, made by hand\n",
        "",
    )


def test_a_record_that_is_ahead_of_its_run_is_told_and_no_finding(
    shell: Shell, scene: Scene
) -> None:
    scene.repo.git("update-ref", scene.run_ref, f"{scene.run_ref}~1")

    assert shell("fsck", "-v", scene.run) == Typed(
        0,
        f"<run> ok ({TWO - 1} commits)\n  checkpoints whose run commit is not here: 1\n",
        "",
    )


def test_a_record_that_is_behind_its_run_is_told_and_no_finding(shell: Shell, scene: Scene) -> None:
    named = scene.tip(f"{scene.meta_ref}~1")
    scene.repo.git("update-ref", scene.meta_ref, f"{named}~1")

    assert shell("fsck", "-v", scene.run) == Typed(
        0,
        f"<run> ok ({TWO - 1} commits)\n"
        "  the metadata branch is behind: git fabro resume moves it\n",
        "",
    )


def test_a_file_that_is_gone_is_named(shell: Shell, scene: Scene) -> None:
    tree = scene.tree(scene.run_ref, {"only.txt": b"only here\n"})
    by_hand = scene.commit(tree, "by hand\n", scene.tip(scene.run_ref))
    scene.repo.git("update-ref", scene.run_ref, by_hand)
    blob = scene.repo.git("rev-parse", f"{scene.run_ref}:only.txt")
    (scene.repo.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    rows = shell.exactly("fsck", scene.run).out.splitlines()

    assert rows[1].endswith(f" only.txt: the object is missing: {blob[:12]} [tree]")


def test_every_way_to_go_on_leaves_a_whole_record(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")
    run = shell.run_id()
    shell("rewind", "-y", "@1")
    assert shell("fsck", "-q") == Typed(0, "", "")
    shell("resume", "-q", run)
    shell("fork", run, "@1")
    assert shell("fsck", "-q") == Typed(0, "", "")
    shell("resume", "-q", shell.run_id())
    shell("run", "-q", "asks")
    assert shell("fsck", "-q") == Typed(0, "", "")
    shell("undo")
    shell("undo")

    typed = shell("fsck")

    assert (typed.status, typed.err) == (0, "")
    assert all(" ok (" in row for row in typed.out.splitlines())


@pytest.mark.parametrize("generation", fabro.GENERATIONS)
def test_a_run_of_fabros_is_proved_by_looser_rules(
    shell: Shell, repo: GitRepo, generation: str
) -> None:
    visits = [fabro.Visit("plan"), fabro.Visit("build", link=fabro.DANGLING)]
    fabro.write(repo, visits, generation=generation)

    typed = shell("fsck", "-v")

    assert typed.status == 0
    assert typed.out.splitlines()[0].endswith("commits, made by Fabro, by looser rules)")
    assert "  checkpoints without metadata: 1" in typed.out.splitlines()


def test_a_fork_of_fabros_begins_with_the_state_that_it_was_given(
    shell: Shell, repo: GitRepo
) -> None:
    fabro.write(repo, [fabro.Visit("plan"), fabro.Visit("build")])
    shell("fork", fabro.RUN, "@1")
    fork = shell.run_id()

    assert shell.exactly("fsck", fork).out == f"{fork} ok (3 commits)\n"
    assert repo.git("log", "-1", "--format=%s", layout.meta_ref(RunId(fork))).startswith("fork")


def test_a_run_that_is_not_there_is_refused(shell: Shell, scene: Scene) -> None:
    assert shell("fsck", "01AAAA") == Typed(
        128, "", "fatal: no run found matching '01AAAA'\nhint: git fabro list -a\n"
    )


def test_a_limit_that_is_none_is_named(shell: Shell, scene: Scene) -> None:
    scene.repo.git("config", "fabro.server.maxRecordBytes", "many")

    assert shell("fsck") == Typed(
        128,
        "",
        "fatal: not a size in fabro.server.maxRecordBytes: many\n"
        "hint: git config fabro.server.maxRecordBytes 16m\n",
    )
