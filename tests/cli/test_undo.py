"""``git fabro undo``: refs, work tree and index as they were."""

from __future__ import annotations

from pathlib import Path

from tests.cli.test_rewind import failed as failed
from tests.cli.test_rewind import files, refs
from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo


def status(top: Path) -> str:
    return GitRepo(top).git("status", "--porcelain=v2", "-z", "--untracked-files=all")


def test_undo_brings_back_refs_files_and_what_was_staged(
    shell: Shell, repo: GitRepo, failed: Path
) -> None:
    (failed / "plan.txt").write_text("staged\n")
    (failed / "new.txt").write_text("staged and new\n")
    GitRepo(failed).git("add", "plan.txt", "new.txt")
    (failed / "plan.txt").write_text("and not staged\n")
    (failed / "untracked.txt").write_text("mine\n")
    (failed / "base.txt").unlink()
    before = (refs(repo), files(failed), status(failed))
    shell("rewind", "-y", "plan")
    assert refs(repo) != before[0]

    done = shell("undo")

    assert done == Typed(0, "undone: rewind <run> @1\n", "")
    assert (refs(repo), files(failed), status(failed)) == before


def test_undo_of_a_rewind_that_was_gone_on_from_keeps_both_histories(
    shell: Shell, repo: GitRepo, failed: Path
) -> None:
    assert failed.exists()
    run = shell.run_id()
    old = repo.git("rev-parse", f"fabro/run/{run}")
    shell("rewind", "plan")
    shell("resume", "-q")
    new = repo.git("rev-parse", f"fabro/run/{run}")

    done = shell("undo")
    repo.git("gc", "-q", "--prune=now")

    assert "had moved on; what came since is kept" in done.err
    assert repo.git("rev-parse", f"fabro/run/{run}") == old
    assert repo.git("merge-base", "--is-ancestor", new, "refs/fabro/ops") == ""


def test_nothing_to_undo_is_1(shell: Shell) -> None:
    assert shell("undo") == Typed(1, "", "nothing to undo\n")


def test_an_operation_that_a_later_one_stands_on_is_refused(shell: Shell, failed: Path) -> None:
    assert failed.exists()
    shell("rewind", "build")
    shell("rewind", "plan")
    first = shell.exactly("op", "log").out.splitlines()[2].split()[0]

    refused = shell("undo", first)

    assert refused.status == 128
    assert refused.err.startswith("fatal: a later operation moved the same: rewind <run 1> @1\n")


def test_a_run_that_is_driven_is_not_touched(shell: Shell, repo: GitRepo) -> None:
    shell("run", "-q", "two")
    shell("rewind", "@1")
    before = refs(repo)
    lease = repo.git("for-each-ref", "--format=%(refname)", "refs/fabro/lease")
    held = repo.git("commit-tree", "-m", _ELSEWHERE, repo.git("mktree"))
    repo.git("update-ref", lease, held)

    refused = shell("undo")

    assert refused.status == 128
    assert refused.err.startswith("fatal: run is being driven on elsewhere by process 1: <run>\n")
    assert refs(repo) == before


_ELSEWHERE = (
    'lease: held\n\n{"boot":"b","host":"elsewhere","owner":"01JKXYZ0000000000000000000",'
    '"pid":1,"pid_namespace":"n","started":1}'
)
