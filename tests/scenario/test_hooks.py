"""The hooks from end to end, with git's own commits and pushes: here, at a remote, in a clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.typed import until
from tests.conftest import GitRepo
from tests.scenario.test_places import fabro

#: Fails at its last node until somebody helps by hand.
WORKFLOW = """digraph Helped { start [shape=Mdiamond]; exit [shape=Msquare]
plan  [shape=parallelogram, script="echo planned > plan.txt"]
check [shape=parallelogram, script="test -e helped.txt"]
start -> plan -> check; check -> exit [condition="outcome=success"] }
"""
HELD = """digraph Held { start [shape=Mdiamond]; exit [shape=Msquare]
first [shape=parallelogram, script="echo first"]
held  [shape=parallelogram, script="while ! test -e $GATE/go; do sleep 0.05; done"]
start -> first -> held -> exit }
"""


@pytest.fixture
def bare(repo: GitRepo, tmp_path: Path) -> GitRepo:
    """A bare repository that is repo's remote "origin"; main is there."""
    made = GitRepo(tmp_path / "bare.git")
    made.path.mkdir()
    made.git("init", "-q", "--bare", "-b", "main")
    repo.commit({"w.fabro": WORKFLOW, "held.fabro": HELD})
    repo.git("remote", "add", "origin", str(made.path))
    repo.git("push", "-q", "origin", "main")
    return made


@pytest.fixture
def run(repo: GitRepo, bare: GitRepo) -> str:
    """A run that failed at @2, its branch checked out in repo, with the hooks installed."""
    fabro(repo.path, "install")
    fabro(repo.path, "run", "-q", "w.fabro", status=1)
    made = fabro(repo.path, "list", "-a", "-q").stdout.split("\n")[0]
    [tree] = [line for line in worktrees(repo) if line.endswith("/worktree")]
    repo.git("worktree", "remove", "--force", tree)
    repo.git("switch", "-q", f"fabro/run/{made}")
    return made


def worktrees(repo: GitRepo) -> list[str]:
    lines = repo.git("worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")]


def metas(repo: GitRepo, run: str, count: int) -> list[str]:
    """The newest subjects of the metadata branch."""
    return repo.git("log", f"-{count}", "--format=%s", f"fabro/meta/{run}").splitlines()


def timeline(repo: GitRepo, run: str) -> list[tuple[int, str, str, str]]:
    """Ordinal, kind, run commit and link of each entry, the newest first."""
    told = json.loads(fabro(repo.path, "log", run, "--json").stdout)
    return [
        (one["ordinal"], one["kind"], one["run_commit"], one["link"]) for one in told["entries"]
    ]


def refs(repo: GitRepo) -> list[str]:
    return repo.git("for-each-ref", "--format=%(refname)").splitlines()


def hook(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def push(repo: GitRepo, *args: str, status: int = 0) -> str:
    """What git push says on standard error."""
    done = subprocess.run(["git", "push", *args], cwd=repo.path, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stderr


def test_the_whole_path_from_a_commit_by_hand_to_another_clone_and_back(
    repo: GitRepo, bare: GitRepo, run: str, tmp_path: Path
) -> None:
    first = repo.commit({"helped.txt": "helped\n"}, "by hand")
    repo.git("commit", "-q", "--amend", "-m", "by hand, amended")
    tip = repo.git("rev-parse", "HEAD")
    push(repo, "-q", "origin", f"fabro/run/{run}")
    clone = GitRepo(tmp_path / "clone")
    bare.git("clone", "-q", ".", str(clone.path))

    here = timeline(repo, run)
    there = timeline(clone, run)
    fabro(clone.path, "resume", "-q", run, status=128)
    fabro(clone.path, "resume", "-q", "--trust", run)
    fabro(clone.path, "sync")
    repo.git("switch", "-q", "main")
    fabro(repo.path, "sync")

    assert here[0] == (3, "commit", tip, "ok")
    assert there == here
    assert {f"commit {tip[:12]}", f"commit {first[:12]}"} <= set(metas(repo, run, 99))
    done = timeline(repo, run)
    assert [one[:2] for one in done] == [(4, "node"), (3, "commit"), (2, "node"), (1, "node")]
    assert timeline(clone, run) == done
    assert {one[3] for one in done} == {"ok"}
    for each in (repo, clone, bare):
        each.fsck()


def test_a_commit_by_hand_is_a_checkpoint_with_record_and_note(repo: GitRepo, run: str) -> None:
    commit = repo.commit({"helped.txt": "helped\n"}, "by hand")

    meta = repo.git("rev-parse", f"fabro/meta/{run}")
    trailers = repo.git("log", "-1", "--format=%(trailers:only)", meta).splitlines()
    records = repo.git("show", f"{meta}:records.jsonl").splitlines()
    [made] = [json.loads(line) for line in records if commit in line]
    assert metas(repo, run, 1) == [f"commit {commit[:12]}"]
    assert [line for line in trailers if "Commit" in line or "Ordinal" in line] == [
        f"Fabro-Commit: {commit}",
        "Fabro-Ordinal: 3",
    ]
    assert (made["kind"], made["data"]["ordinal"]) == ("checkpoint", 3)
    assert repo.git("notes", "--ref=fabro", "show", commit) == (
        f"made by hand\n\nFabro-Run: {run}\nFabro-Checkpoint: {meta}"
    )
    assert "Notes (fabro):\n    made by hand" in repo.git("log", "-1")
    assert repo.git("notes", "--ref=fabro", "show", meta) == f"Fabro-Commit: {commit}"
    assert repo.git("log", "-1", "--format=%s", f"refs/fabro/lease/{run}") == "lease: nobody"


def test_an_amend_is_named_by_a_new_meta_commit_and_the_old_one_stays(
    repo: GitRepo, run: str
) -> None:
    old = repo.commit({"helped.txt": "helped\n"}, "by hand")
    repo.git("commit", "-q", "--amend", "-m", "better")
    new = repo.git("rev-parse", "HEAD")

    assert metas(repo, run, 2) == [f"commit {new[:12]}", f"commit {old[:12]}"]
    assert timeline(repo, run)[0] == (3, "commit", new, "ok")
    assert old in repo.git("rev-list", "refs/fabro/ops")


@pytest.mark.parametrize("message", [("--no-edit",), ("-m", "mine now")])
def test_an_amended_checkpoint_of_a_node_keeps_its_state(
    repo: GitRepo, run: str, message: tuple[str, ...]
) -> None:
    seen = repo.git("rev-parse", f"fabro/meta/{run}")
    repo.write({"helped.txt": "helped\n"})
    repo.git("add", "-A")

    repo.git("commit", "-q", "--amend", *message)

    new = repo.git("rev-parse", "HEAD")
    assert metas(repo, run, 1) == [f"commit {new[:12]}"]
    assert repo.git("rev-parse", f"fabro/meta/{run}~1") == seen
    assert timeline(repo, run)[0][0] == 2
    repo.git("switch", "-q", "main")
    fabro(repo.path, "resume", "-q", run)


def test_a_rebase_is_silent_and_remapped_once_r40(repo: GitRepo, run: str) -> None:
    for number in range(3):
        repo.commit({f"by-hand-{number}": "1\n"}, f"by hand {number}")
    before = len(metas(repo, run, 100))
    repo.git("switch", "-q", "main")
    repo.commit({"elsewhere": "1\n"})

    done = subprocess.run(
        ["git", "rebase", "-q", "main", f"fabro/run/{run}"],
        cwd=repo.path,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(metas(repo, run, 100)) == before + 3
    told = timeline(repo, run)
    assert [one[0] for one in told] == [5, 4, 3, 2, 1]
    assert {one[3] for one in told} == {"ok"}
    assert [one[2] for one in told] == repo.git("rev-list", "-5", f"fabro/run/{run}").splitlines()


def test_in_the_middle_of_something_nothing_is_written(repo: GitRepo, run: str) -> None:
    repo.git("switch", "-q", "main")
    for number in range(2):
        repo.commit({f"picked-{number}": "1\n"})
    repo.git("switch", "-q", f"fabro/run/{run}")
    before = repo.git("rev-parse", f"fabro/meta/{run}")

    repo.git("cherry-pick", "main~1", "main")

    assert repo.git("rev-parse", f"fabro/meta/{run}") == before
    repo.commit({"helped.txt": "1\n"})
    assert [one[:2] for one in timeline(repo, run)[:3]] == [
        (5, "commit"),
        (4, "commit"),
        (3, "commit"),
    ]


def test_while_the_run_is_driven_the_driver_does_it(
    repo: GitRepo, bare: GitRepo, tmp_path: Path
) -> None:
    fabro(repo.path, "install")
    gate = tmp_path / "gate"
    gate.mkdir()
    driver = subprocess.Popen(
        [sys.executable, "-m", "git_fabro", "run", "-q", "held.fabro"],
        cwd=repo.path,
        env={**os.environ, "GATE": str(gate)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    until(lambda: "@1" in fabro(repo.path, "log").stdout if _has_run(repo) else False, "@1")
    [name] = [ref for ref in refs(repo) if "/run/" in ref]
    run = name.rpartition("/")[2]
    tree = GitRepo(Path(next(one for one in worktrees(repo) if one.endswith("/worktree"))))
    before = repo.git("rev-parse", f"fabro/meta/{run}")

    commit = tree.commit({"by-hand": "1\n"})

    assert repo.git("rev-parse", f"fabro/meta/{run}") == before
    (gate / "go").touch()
    driver.communicate()
    told = timeline(repo, run)
    assert [one[:2] for one in told] == [(3, "node"), (2, "commit"), (1, "node")]
    assert told[1][2:] == (commit, "ok")


def _has_run(repo: GitRepo) -> bool:
    return any("/run/" in ref for ref in refs(repo))


def _plain(repo: GitRepo, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    return repo.path, {}, []


def _sub_folder(repo: GitRepo, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    repo.write({"deep/down/file": "1\n"})
    return repo.path / "deep/down", {}, []


def _git_dir(repo: GitRepo, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    named = {"GIT_DIR": str(repo.path / ".git"), "GIT_WORK_TREE": str(repo.path)}
    return tmp_path, named, []


def _own_index(repo: GitRepo, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    shutil.copy(repo.path / ".git/index", tmp_path / "index")
    return repo.path, {"GIT_INDEX_FILE": str(tmp_path / "index")}, []


def _linked(repo: GitRepo, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    branch = repo.git("symbolic-ref", "--short", "HEAD")
    repo.git("switch", "-q", "main")
    repo.git("worktree", "add", "-q", str(tmp_path / "linked tree"), branch)
    return tmp_path / "linked tree", {}, []


def _one_path(repo: GitRepo, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    repo.write({"staged": "1\n"})
    repo.git("add", "staged")
    return repo.path, {}, ["--only", "helped.txt"]


@pytest.mark.parametrize("bare_environment", [False, True], ids=["shell", "gui"])
@pytest.mark.parametrize("how", [_plain, _sub_folder, _git_dir, _own_index, _linked, _one_path])
def test_a_commit_is_recorded_from_wherever_it_is_made(
    repo: GitRepo,
    run: str,
    tmp_path: Path,
    how: Callable[[GitRepo, Path], tuple[Path, dict[str, str], list[str]]],
    bare_environment: bool,
) -> None:
    folder, variables, words = how(repo, tmp_path)
    top = folder if how is _linked else repo.path
    (top / "helped.txt").write_text("helped\n")
    environment = {**os.environ, **variables}
    if bare_environment:
        kept = ("HOME", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "XDG_STATE_HOME")
        who = {name: os.environ[name] for name in kept}
        named = {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com"}
        environment = {"PATH": "/usr/bin:/bin", **who, **named, **variables}

    subprocess.run(["git", "add", str(top / "helped.txt")], cwd=folder, env=environment, check=True)
    argv = ["git", "commit", "-q", "-m", "by hand", *words]
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True)

    commit = repo.git("rev-parse", f"fabro/run/{run}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert metas(repo, run, 1) == [f"commit {commit[:12]}"]
    assert repo.git("diff", "--name-only", f"{commit}~1", commit) == "helped.txt"


@pytest.mark.parametrize("gone", ["program", "path"])
def test_a_missing_program_stops_neither_a_commit_nor_a_push_r37(
    repo: GitRepo, run: str, gone: str
) -> None:
    for name in ("post-commit", "post-rewrite", "pre-push"):
        path = repo.path / ".git/hooks" / name
        if gone == "program":
            path.write_text(path.read_text().replace(sys.executable, "/gone/python"))
    environment = {**os.environ, **({"PATH": "/nonexistent"} if gone == "path" else {})}
    git = shutil.which("git") or ""

    for words in (["commit", "-m", "x"], ["commit", "--amend", "-m", "y"]):
        done = subprocess.run(
            [git, *words, "-q", "--allow-empty"],
            cwd=repo.path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
    pushed = subprocess.run(
        [git, "push", "-q", "origin", f"fabro/run/{run}"],
        cwd=repo.path,
        env=environment,
        capture_output=True,
        text=True,
    )
    if gone == "program":
        assert (pushed.returncode, pushed.stderr) == (0, "")


def test_a_commit_on_another_branch_starts_no_python(
    repo: GitRepo, run: str, tmp_path: Path
) -> None:
    for name in ("post-commit", "post-rewrite", "pre-push"):
        path = repo.path / ".git/hooks" / name
        spy = tmp_path / "spy"
        hook(spy, f'#!/bin/sh\necho started >>"{tmp_path}/log"\n')
        path.write_text(path.read_text().replace(sys.executable, str(spy)))
    repo.git("switch", "-q", "main")

    repo.commit({"x": "1\n"})
    repo.git("commit", "-q", "--amend", "-m", "y")
    push(repo, "-q", "origin", "main")

    assert not (tmp_path / "log").exists()
    repo.git("switch", "-q", f"fabro/run/{run}")
    repo.commit({"x": "1\n"})
    assert (tmp_path / "log").read_text() == "started\n"


def test_a_push_takes_the_record_and_the_notes_of_that_run_along(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    fabro(repo.path, "run", "-q", "w.fabro", status=1)
    commit = repo.commit({"helped.txt": "helped\n"})

    said = push(repo, "-q", "origin", f"fabro/run/{run}")

    assert said == ""
    assert refs(bare) == [
        f"refs/heads/fabro/meta/{run}",
        f"refs/heads/fabro/run/{run}",
        "refs/heads/main",
        "refs/notes/fabro",
    ]
    for ref in (f"fabro/meta/{run}", f"fabro/run/{run}"):
        assert bare.git("rev-parse", ref) == repo.git("rev-parse", ref)
    noted = set(bare.git("ls-tree", "-r", "--name-only", "refs/notes/fabro").split())
    own = repo.git("rev-list", f"main..fabro/run/{run}").split()
    own += repo.git("rev-list", f"fabro/meta/{run}").split()
    assert commit in noted
    assert noted <= set(own)


def test_a_commit_that_no_hook_saw_is_recorded_by_the_push_r55(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "unseen")
    commit = repo.git("rev-parse", "HEAD")

    push(repo, "-q", "origin", f"fabro/run/{run}")

    assert metas(bare, run, 1) == [f"commit {commit[:12]}"]


def test_a_pre_push_of_the_users_that_refuses_keeps_all_of_ours_back_r38(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    fabro(repo.path, "uninstall")
    hook(repo.path / ".git/hooks/pre-push", "#!/bin/sh\nexit 1\n")
    fabro(repo.path, "install")

    push(repo, "-q", "origin", f"fabro/run/{run}", status=1)

    assert refs(bare) == ["refs/heads/main"]


def test_a_pre_push_of_the_users_reads_the_same_bytes_as_without_us(
    repo: GitRepo, bare: GitRepo, run: str, tmp_path: Path
) -> None:
    fabro(repo.path, "uninstall")
    log = tmp_path / "log"
    hook(repo.path / ".git/hooks/pre-push", f'#!/bin/sh\necho "$@" >"{log}"\ncat >>"{log}"\n')
    words = ("-q", "origin", f"fabro/run/{run}", "main~0:refs/heads/other")
    push(repo, "-n", *words)
    without = log.read_bytes()
    fabro(repo.path, "install")

    push(repo, *words)

    assert log.read_bytes() == without
    assert b"refs/heads/other" in without
    assert f"refs/heads/fabro/meta/{run}" in refs(bare)


@pytest.mark.parametrize(
    "words", [("push", "-n"), ("push", "--dry-run"), ("-c", "alias.p=push -n", "p")]
)
def test_a_dry_run_sends_nothing_hk11(
    repo: GitRepo, bare: GitRepo, run: str, words: tuple[str, ...]
) -> None:
    repo.git(*words, "origin", f"fabro/run/{run}")

    assert refs(bare) == ["refs/heads/main"]


@pytest.mark.parametrize("setting", ["never", "hook", "checkpoint"])
def test_the_configuration_says_whether_anything_goes_along(
    repo: GitRepo, bare: GitRepo, run: str, setting: str
) -> None:
    repo.git("config", "fabro.push", setting)

    push(repo, "-q", "origin", f"fabro/run/{run}")

    assert (f"refs/heads/fabro/meta/{run}" in refs(bare)) == (setting != "never")


def test_a_remote_without_a_branch_gets_none_of_ours_first(
    repo: GitRepo, run: str, tmp_path: Path
) -> None:
    empty = GitRepo(tmp_path / "empty.git")
    empty.path.mkdir()
    empty.git("init", "-q", "--bare")

    said = push(repo, "-q", str(empty.path), f"fabro/run/{run}")

    assert said == (
        f"fabro: {empty.path} has no branch yet, so the record waits\n"
        f"fabro: hint: git push {empty.path} main && git fabro sync\n"
    )
    assert refs(empty) == [f"refs/heads/fabro/run/{run}"]


def test_a_record_that_git_itself_pushes_to_an_empty_remote_does_not_wait(
    repo: GitRepo, run: str, tmp_path: Path
) -> None:
    empty = GitRepo(tmp_path / "empty.git")
    empty.path.mkdir()
    empty.git("init", "-q", "--bare")

    said = push(repo, "-q", "--all", str(empty.path))

    assert said == ""
    assert f"refs/heads/fabro/meta/{run}" in refs(empty)


def test_what_the_hint_for_an_empty_remote_names_is_quoted(
    repo: GitRepo, run: str, tmp_path: Path
) -> None:
    empty = GitRepo(tmp_path / "em;pty.git")
    empty.path.mkdir()
    empty.git("init", "-q", "--bare")
    repo.git("branch", "-m", "main", "trunk")

    said = push(repo, "-q", str(empty.path), f"fabro/run/{run}")

    assert said == (
        f"fabro: {empty.path} has no branch yet, so the record waits\n"
        f"fabro: hint: git push '{empty.path}' BRANCH && git fabro sync\n"
    )


def test_what_the_user_pushes_is_not_pushed_twice(repo: GitRepo, bare: GitRepo, run: str) -> None:
    push(repo, "-q", "origin", f"fabro/run/{run}", f"fabro/meta/{run}")
    repo.commit({"helped.txt": "helped\n"})

    push(repo, "-q", "--all", "origin")

    for ref in (f"fabro/meta/{run}", f"fabro/run/{run}"):
        assert bare.git("rev-parse", ref) == repo.git("rev-parse", ref)


def test_a_record_there_that_has_more_is_left_and_named(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    push(repo, "-q", "origin", f"fabro/run/{run}")
    ref = f"refs/heads/fabro/meta/{run}"
    tree = bare.git("rev-parse", f"{ref}^{{tree}}")
    theirs = bare.git("commit-tree", "-p", ref, "-m", "theirs", tree)
    bare.git("update-ref", ref, theirs)
    repo.commit({"helped.txt": "helped\n"})

    said = push(repo, "-q", "origin", f"fabro/run/{run}")

    assert said == (
        f"fabro: warning: the remote's record has what is not here, and stays as it is: {run}\n"
        f"fabro: hint: git fabro sync --run {run}\n"
    )
    assert bare.git("rev-parse", ref) == theirs
    assert bare.git("rev-parse", f"fabro/run/{run}") == repo.git("rev-parse", "HEAD")


def test_a_rewind_is_pushed_by_who_says_so(repo: GitRepo, bare: GitRepo, run: str) -> None:
    push(repo, "-q", "origin", f"fabro/run/{run}")
    repo.git("switch", "-q", "main")
    fabro(repo.path, "rewind", run, "@1")

    said = push(repo, "-q", "-f", "origin", f"fabro/run/{run}")
    again = push(repo, "-q", "-f", "origin", f"fabro/run/{run}", f"fabro/meta/{run}")

    assert said == (
        f"fabro: warning: the remote's record goes further than the one here, and stays: {run}\n"
        "fabro: hint: git push --force-with-lease -o fabro.rewind origin "
        f"fabro/run/{run} refs/heads/fabro/meta/{run}\n"
    )
    assert again == ""
    for ref in (f"fabro/meta/{run}", f"fabro/run/{run}"):
        assert bare.git("rev-parse", ref) == repo.git("rev-parse", ref)


def test_a_server_that_refuses_the_record_does_not_stop_the_push_r54(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    hook(
        bare.path / "hooks/update",
        "#!/bin/sh\ncase $1 in *meta* | *notes*) ;; *) exit 0 ;; esac\n"
        "printf 'not \\033[1m here\\n' >&2; exit 1\n",
    )

    said = push(repo, "-q", "origin", f"fabro/run/{run}")

    assert said.startswith("fabro: warning: origin refuses the record: ")
    assert "fabro: remote: not \\x1b[1m here" in said
    assert refs(bare) == [f"refs/heads/fabro/run/{run}", "refs/heads/main"]


def test_a_server_that_takes_no_notes_gets_the_record_sy10(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    hook(bare.path / "hooks/update", "#!/bin/sh\ncase $1 in *notes*) exit 1;; esac\n")

    said = push(repo, "-q", "origin", f"fabro/run/{run}")

    assert said == "fabro: origin does not take the notes now; git fabro sync sends them later\n"
    assert f"refs/heads/fabro/meta/{run}" in refs(bare)


def test_a_push_of_all_to_a_server_that_judges_leaves_the_notes_for_later(
    repo: GitRepo, bare: GitRepo, run: str
) -> None:
    fabro(bare.path, "install", "--server")

    # Git pushes the metadata branch itself: before that no server can tell what the notes are of.
    said = push(repo, "-q", "--all", "origin")

    assert said == "fabro: origin does not take the notes now; git fabro sync sends them later\n"
    assert refs(bare) == [f"refs/heads/fabro/{kind}/{run}" for kind in ("meta", "run")] + [
        "refs/heads/main"
    ]
    fabro(repo.path, "sync")
    listed = repo.git("notes", "--ref=fabro", "list").splitlines()
    assert sorted(bare.git("notes", "--ref=fabro", "list").splitlines()) == sorted(listed)
    assert fabro(bare.path, "fsck").stdout.startswith(f"{run} ok ")


def test_a_remote_that_does_not_answer_holds_nothing_up_r46(
    repo: GitRepo, bare: GitRepo, run: str, tmp_path: Path
) -> None:
    # The first to be asked is git push itself, the next one our hook.
    slow = tmp_path / "ssh"
    hook(
        slow,
        f'#!/bin/sh\nif test -e "{tmp_path}/asked"; then sleep 999; fi\n: >"{tmp_path}/asked"\n'
        f'shift; exec sh -c "$1"\n',
    )
    repo.git("config", "core.sshCommand", str(slow))
    repo.git("config", "fabro.pushTimeout", "1")
    repo.git("remote", "add", "far", f"far:{bare.path}")
    began = time.monotonic()

    said = push(repo, "-q", "far", f"fabro/run/{run}")

    assert time.monotonic() - began < 60
    assert said == (
        "fabro: warning: no answer within 1 s: far\n"
        "fabro: hint: git config fabro.pushTimeout SECONDS\n"
    )
    assert refs(bare) == [f"refs/heads/fabro/run/{run}", "refs/heads/main"]


def test_hooks_never_ask_r39(repo: GitRepo, run: str) -> None:
    done = subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", "x"],
        cwd=repo.path,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        timeout=30,
    )

    assert done.returncode == 0
    assert metas(repo, run, 1)[0].startswith("commit ")
