"""Ways in which a run once lost work or told it wrong; each began with somebody trying."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import GitRepo
from tests.scenario.test_places import fabro, files, run_of
from tests.scenario.test_reports import go, meta, workflow


def other_trees(repo: GitRepo) -> list[Path]:
    """The linked work trees that are there."""
    listed = repo.git("worktree", "list", "--porcelain").splitlines()
    return [Path(line[9:]) for line in listed if line.startswith("worktree ")][1:]


def test_r07_a_nested_repository_does_not_fail_a_run_that_succeeded(repo: GitRepo) -> None:
    nested = (
        "git init -q c; cd c; git -c user.name=a -c user.email=a@b.c commit -qm z --allow-empty"
    )
    repo.commit({"w.fabro": workflow(nested)})

    fabro(repo.path, "run", "w.fabro")

    (kept,) = other_trees(repo)
    assert (kept / "c" / ".git").is_dir()


def test_work_that_no_commit_holds_keeps_its_work_tree(repo: GitRepo) -> None:
    gone = "echo precious >f; git checkout -q --detach; git branch -q -D fabro/run/$FABRO_RUN_ID"
    repo.commit({"w.fabro": workflow(gone)})

    fabro(repo.path, "run", "w.fabro")

    (kept,) = other_trees(repo)
    assert (kept / "f").read_text() == "precious\n"


def test_a_commit_by_hand_while_stopped_stays_in_the_tree(repo: GitRepo, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = go(repo, "echo 1 >f", f"test -e {flag} && cat hand", status=1)
    (tree,) = other_trees(repo)
    GitRepo(tree).commit({"hand": "h\n"}, message="by hand")
    flag.touch()

    fabro(repo.path, "resume")

    assert {"f", "hand"} <= set(files(repo, run))
    named = repo.git("log", "--format=%s", meta(run))
    assert "commit " in named


def test_a_run_branch_reset_to_its_base_begins_again(repo: GitRepo, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    run = go(repo, "echo 1 >f", f"test -e {flag}", "cat f", status=1)
    (tree,) = other_trees(repo)
    left = repo.git("rev-parse", meta(run))
    GitRepo(tree).git("reset", "-q", "--hard", "main")
    flag.touch()

    fabro(repo.path, "resume")

    assert "f" in files(repo, run)
    repo.git("merge-base", "--is-ancestor", left, "refs/fabro/ops")


def test_hooks_of_an_in_place_run_work_in_its_tree(repo: GitRepo) -> None:
    settings = (
        'version = 1\ngraph = "w.fabro"\n[[hooks]]\nevent = "stage_start"\ncommand = "pwd >>$OUT"\n'
    )
    repo.commit({"w.fabro": workflow("true"), "t.toml": settings})

    fabro(repo.path, "run", "--in-place", "t.toml", env={"OUT": str(repo.path.parent / "out")})

    assert set((repo.path.parent / "out").read_text().split()) == {str(repo.path)}


def test_a_preparation_that_fails_leaves_no_run(repo: GitRepo) -> None:
    settings = 'version = 1\ngraph = "w.fabro"\n[setup]\ncommands = ["echo why; exit 3"]\n'
    repo.commit({"w.fabro": workflow("true"), "t.toml": settings})

    done = fabro(repo.path, "run", "t.toml", status=128)

    assert "fatal: preparation ended with status 3: echo why; exit 3: why\n" in done.stderr
    assert repo.git("for-each-ref", "refs/heads/fabro", "refs/fabro") == ""
    assert other_trees(repo) == []


def test_a_visit_limit_bounds_resume_too(repo: GitRepo) -> None:
    limited = """digraph { node [shape=parallelogram]; start [shape=Mdiamond]; exit [shape=Msquare]
        a [max_visits=2, script="exit $FABRO_VISIT"]; start -> a
        a -> a [condition="outcome=fail"]; a -> exit }"""
    repo.commit({"w.fabro": limited})
    fabro(repo.path, "run", "w.fabro", status=1)

    done = fabro(repo.path, "resume", status=128)

    said = 'fatal: node "a" may run 2 times (max_visits) and would run a 3rd time\n'
    assert said in done.stderr


def test_an_edit_at_a_gate_is_kept(repo: GitRepo) -> None:
    gate = """digraph { start [shape=Mdiamond]; exit [shape=Msquare]; q [shape=hexagon]
        n [shape=parallelogram, script="cat edited"]; start -> q; q -> n [label=go]; n -> exit }"""
    repo.commit({"w.fabro": gate})
    fabro(repo.path, "run", "w.fabro", status=3)
    (tree,) = other_trees(repo)
    (tree / "edited").write_text("by a person\n")
    run = run_of(repo)

    fabro(repo.path, "answer", run, "q@1", "go")
    listed = fabro(repo.path, "list")
    fabro(repo.path, "resume", run)

    assert " blocked " in listed.stdout
    assert "edited" in files(repo, run)


def test_a_required_checkpoint_that_fails_fails_the_run(repo: GitRepo) -> None:
    settings = 'version = 1\ngraph = "w.fabro"\n[checkpoint]\nrequired = true\n'
    gone = "git checkout -q --detach; git branch -q -D fabro/run/$FABRO_RUN_ID"
    repo.commit({"w.fabro": workflow(gone, "echo never >never"), "t.toml": settings})

    done = fabro(repo.path, "run", "t.toml", status=1)

    assert " fail: checkpoint failed: " in done.stdout
    assert "n2@1" not in done.stderr


def test_a_branch_that_begins_its_loop_anew_keeps_its_files(repo: GitRepo) -> None:
    restarting = """digraph {
        node [shape=parallelogram]; start [shape=Mdiamond]; exit [shape=Msquare]
        s [shape=component]; j [shape=tripleoctagon, merge=all]
        a [script="echo a > a"]; b [script="echo b > b"]; q [shape=hexagon]
        start -> s; s -> a -> q; q -> q [label=Again, loop_restart=true]; q -> j [label=Done]
        s -> b -> j; j -> exit }"""
    repo.commit({"w.fabro": restarting})
    fabro(repo.path, "run", "w.fabro", status=3)
    run = run_of(repo).removeprefix("fabro/run/")
    fabro(repo.path, "answer", run, "q@1", "again")
    fabro(repo.path, "resume", run, status=3)

    fabro(repo.path, "answer", run, "q@2", "done")
    fabro(repo.path, "resume", run)

    assert {"a", "b"} <= set(files(repo, run_of(repo)))
    kept = repo.git("for-each-ref", "--format=%(refname)", "refs/fabro/parallel").splitlines()
    assert kept == [f"refs/fabro/parallel/{run}/s@1/{branch}" for branch in ("a", "b")]
