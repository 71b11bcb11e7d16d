"""What broke for users of tools that go back, as rewinds of the real program; ids: the reports."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import GitRepo
from tests.scenario.test_places import fabro, run_of
from tests.scenario.test_reports import go, meta


@dataclass(frozen=True)
class Run:
    """A run that has ended, and its work tree, which stays."""

    repo: GitRepo
    branch: str
    tree: GitRepo

    @property
    def name(self) -> str:
        return self.branch.rpartition("/")[2]

    @property
    def top(self) -> Path:
        return self.tree.path

    def __call__(self, *args: str, status: int = 0, folder: Path | None = None) -> str:
        """What a command prints, typed in the run's work tree; rewind takes target and -y."""
        done = fabro(folder or self.top, *args, status=status)
        return done.stdout + done.stderr

    def back(self, target: str, *, status: int = 0, folder: Path | None = None) -> str:
        words = ("rewind", "--run", self.name, target, "-y")
        return self(*words, status=status, folder=folder)

    def seen(self) -> tuple[bytes, ...]:
        """What git says of the work tree: status, what is not staged, what is."""
        asked = (["status", "--porcelain=v2", "-z"], ["diff"], ["diff", "--cached"])
        return tuple(
            subprocess.run(
                ["git", *args], cwd=self.top, check=True, stdout=subprocess.PIPE, env=os.environ
            ).stdout
            for args in asked
        )


def went(repo: GitRepo, *scripts: str) -> Run:
    repo.git("config", "fabro.keepWorktree", "always")
    branch = go(repo, *scripts)
    listed = repo.git("worktree", "list", "--porcelain").splitlines()
    [path] = [line.removeprefix("worktree ") for line in listed if line.endswith("/worktree")]
    return Run(repo, branch, GitRepo(Path(path)))


def test_r15_output_that_no_checkpoint_knows_stays(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    (run.top / "output").mkdir()
    big = os.urandom(9999)
    (run.top / "output/big").write_bytes(big)

    run.back("@1")

    assert (run.top / "output/big").read_bytes() == big
    assert (run.top / "f").read_text() == "1\n"


def test_r16_only_the_branches_of_the_run_move_and_what_they_left_is_kept(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    (run.top / "g").write_text("by hand\n")
    run.tree.git("add", "g")
    run.tree.git("commit", "-qm", "by hand")
    by_hand = run.tree.git("rev-parse", "HEAD")
    main = repo.git("rev-parse", "main")

    run.back("@1")

    assert repo.git("rev-parse", "main") == main
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert repo.git("cat-file", "-t", by_hand) == "commit"
    run("undo")
    assert repo.git("rev-parse", run.branch) == by_hand


def test_r17_a_rewind_by_mistake_is_undone_exactly_again_and_again(repo: GitRepo) -> None:
    run = went(repo, "echo 0 >f", "echo 1 >f")
    (run.top / "f").write_text("staged\n")
    run.tree.git("add", "f")
    (run.top / "f").write_text("2\n")
    (run.top / "g").write_text("3\n")
    before = run.seen()

    run.back("@1")
    assert run.seen() != before
    run("undo")
    assert run.seen() == before
    run("redo")
    run("undo")

    assert run.seen() == before


def test_r18_a_deletion_goes_back_too_and_so_does_the_index(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >go.mod", "git rm -qf go.mod 2>/dev/null || rm go.mod")
    assert not (run.top / "go.mod").exists()

    run.back("@1")
    assert (run.top / "go.mod").read_text() == "1\n"
    run.tree.git("rm", "-q", "go.mod")
    run.back("@1")

    assert (run.top / "go.mod").read_text() == "1\n"
    assert run.tree.git("diff", "--cached") == ""


def test_r19_what_the_checkpoint_does_not_have_is_absent_afterwards(repo: GitRepo) -> None:
    repo.commit({"a": "1\n", "b": "1\n"})
    run = went(repo, "rm b", "git checkout -q HEAD~1 -- b 2>/dev/null || echo 1 >b")
    assert (run.top / "b").exists()

    run.back("@1")

    assert not (run.top / "b").exists()
    assert repo.git("show", "main:b") == "1"


def test_r20_the_plan_says_what_is_done(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    (run.top / "f").write_text("dirty\n")

    planned = run("rewind", "--run", run.name, "@1", "-n")
    assert "write f (changes that are in no commit)\n" in planned
    assert (run.top / "f").read_text() == "dirty\n"
    assert "git fabro rewind -y" in run("rewind", "--run", run.name, "@1", status=128)
    assert (run.top / "f").read_text() == "dirty\n"
    run.back("@1")
    assert (run.top / "f").read_text() == "1\n"
    run("undo")

    assert (run.top / "f").read_text() == "dirty\n"


def test_r21_what_a_later_checkpoint_made_goes_and_what_a_hand_made_stays(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 1 >Foo.md")
    (run.top / "Bar.md").write_text("1\n")

    run.back("@1")

    assert not (run.top / "Foo.md").exists()
    assert (run.top / "Bar.md").exists()


def test_r22_undo_and_redo_from_a_folder_touch_what_they_moved_and_nothing_else(
    repo: GitRepo,
) -> None:
    repo.commit({"be/b": "1\n", "fe/x": "1\n"})
    run = went(repo, "echo 1 >fe/a", "echo 2 >fe/a")
    (repo.path / "be/b").write_text("2\n")
    repo.git("commit", "-qam", "b2")
    run.back("@1", folder=run.top / "fe")

    said = run("undo", folder=repo.path / "fe")
    run("redo", folder=repo.path / "fe")
    run("undo", folder=run.top / "be")

    assert said.startswith("undone: rewind ")
    assert (repo.path / "be/b").read_text() == "2\n"
    assert repo.git("status", "--porcelain") == ""
    assert (run.top / "fe/a").read_text() == "2\n"
    assert (run.top / "be/b").read_text() == "1\n"


def test_r22_what_was_committed_since_is_kept_and_named_by_undo(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    run.back("@1")
    (run.top / "f").write_text("since\n")
    run.tree.git("commit", "-qam", "since")
    since = run.tree.git("rev-parse", "HEAD")

    said = run("undo")

    assert f"refs/heads/{run.branch} had moved on; what came since is kept: {since[:12]}" in said
    run("redo")
    assert (run.top / "f").read_text() == "since\n"
    assert run.tree.git("rev-parse", "HEAD") == since


def test_r23_paths_are_relative_to_the_root_from_any_folder(repo: GitRepo) -> None:
    run = went(repo, "mkdir sub; echo 1 >sub/f", "echo 2 >sub/f")

    run.back("@1", folder=run.top / "sub")
    assert (run.top / "sub/f").read_text() == "1\n"
    run("undo", folder=run.top / "sub")

    assert (run.top / "sub/f").read_text() == "2\n"


@pytest.mark.parametrize("command", ["rewind", "undo"])
def test_r24_an_object_that_is_gone_is_found_out_before_anything_changes(
    repo: GitRepo, command: str
) -> None:
    run = went(repo, "echo 1 >f; echo 1 >g", "echo 2 >f; echo 2 >g")
    words = ["rewind", "--run", run.name, "@1", "-y"]
    if command == "undo":
        run(*words)
        words = ["undo"]
    # What the files are to be; the fast engine may have packed it.
    back = f"{run.branch}~1" if command == "rewind" else f"{run.branch}@{{1}}"
    oid = repo.git("rev-parse", f"{back}:g")
    repo.git("repack", "-adq")
    for pack in sorted((repo.path / ".git/objects/pack").glob("*.pack")):
        pack.rename(repo.path.parent / pack.name)
        pack.with_suffix(".idx").unlink()
        repo.git("unpack-objects", "-q", stdin=(repo.path.parent / pack.name).read_bytes())
    (repo.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    before = (repo.git("for-each-ref"), (run.top / "f").read_text(), (run.top / "g").read_text())

    said = run(*words, status=128)

    assert oid[:12] in said
    after = (repo.git("for-each-ref"), (run.top / "f").read_text(), (run.top / "g").read_text())
    assert after == before


def test_r25_what_was_staged_and_what_was_not_come_back_apart(repo: GitRepo) -> None:
    run = went(repo, r"printf '1\n2\n' >f", "echo z >f")
    (run.top / "f").write_text("x\n2\n")
    run.tree.git("add", "f")
    (run.top / "f").write_text("x\ny\n")
    before = run.seen()
    run.back("@1")
    (run.top / "f").write_text("z\n")
    run.tree.git("add", "f")

    run("undo")

    assert run.seen() == before


def test_r26_undoing_what_is_on_record_deletes_no_content(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    run.back("@1")
    (run.top / "new").write_text("1\n")

    run("undo")

    assert not (run.top / "new").exists()
    run("redo")
    assert (run.top / "new").read_text() == "1\n"


def test_r27_files_equal_to_head_are_set_too_and_the_way_back_is_printed(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    run.tree.git("checkout", "-q", "HEAD~1", "--", "f")

    said = run.back("@-1")
    assert (run.top / "f").read_text() == "2\n"
    assert f"hint: git fabro resume {run.name}; git fabro undo\n" in said
    run("undo")

    assert (run.top / "f").read_text() == "1\n"


def test_r28_names_that_are_one_file_to_this_file_system_are_refused(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >A; echo 2 >a; echo 3 >b", "rm A a")
    repo.git("config", "core.ignorecase", "true")
    before = (repo.git("for-each-ref"), sorted(path.name for path in run.top.iterdir()))

    said = run.back("@1", status=128)

    assert said == (
        "fatal: names of @1 that are one file where case does not count: A, a\n"
        f"hint: git fabro fork {run.name} @1\n"
    )
    assert (repo.git("for-each-ref"), sorted(p.name for p in run.top.iterdir())) == before


def test_r57_what_can_be_undone_survives_gc(repo: GitRepo) -> None:
    run = went(repo, "echo 1 >f", "echo 2 >f")
    (run.top / "f").write_text("staged\n")
    run.tree.git("add", "f")
    (run.top / "f").write_text("dirty\n")
    before = run.seen()
    run.back("@1")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")

    run("undo")

    assert run.seen() == before
    listed = json.loads(run("op", "log", "--json"))
    assert [entry["command"].split()[0] for entry in listed["operations"]] == ["undo", "rewind"]
    assert repo.git("cat-file", "-t", meta(run_of(repo))) == "commit"
