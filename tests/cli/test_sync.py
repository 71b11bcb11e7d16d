"""``git fabro sync``: what moves here, what moves there, and what is named and left."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed, process, until
from tests.conftest import GitRepo

_REFS = ("refs/heads/fabro", "refs/notes", "refs/fabro/checkpoint", "refs/fabro/meta")


@pytest.fixture
def bare(repo: GitRepo, tmp_path: Path) -> GitRepo:
    """A bare repository that is repo's remote "origin"; main is there."""
    made = GitRepo(tmp_path / "bare.git")
    made.path.mkdir()
    made.git("init", "-q", "--bare", "-b", "main")
    repo.git("remote", "add", "origin", str(made.path))
    return made


@pytest.fixture
def run(shell: Shell, repo: GitRepo, bare: GitRepo) -> str:
    """A run that waits for an answer, and that the remote has."""
    repo.git("push", "-q", "origin", "main")
    assert shell("run", "-q", "asks").status == 3
    assert shell("sync").status == 0
    return shell.run_id()


@pytest.fixture
def clone(shell: Shell, run: str, bare: GitRepo, tmp_path: Path) -> Shell:
    """A prompt in another clone."""
    bare.git("clone", "-q", ".", str(tmp_path / "clone"))
    return shell.at(tmp_path / "clone")


def refs(repo: GitRepo) -> dict[str, str]:
    listed = repo.git("for-each-ref", "--format=%(refname) %(objectname)", *_REFS)
    return dict(line.split(" ") for line in listed.splitlines())


def branches(repo: GitRepo) -> dict[str, str]:
    return {ref: oid for ref, oid in refs(repo).items() if not ref.startswith("refs/notes")}


def shown(typed: Typed) -> Typed:
    """With short object names as a word."""
    return Typed(typed.status, re.sub(r"\b[0-9a-f]{12}\b", "<oid>", typed.out), typed.err)


def test_a_run_goes_there_with_its_record_and_notes(
    shell: Shell, repo: GitRepo, bare: GitRepo
) -> None:
    repo.git("push", "-q", "origin", "main")
    shell("run", "-q", "two")

    first, second = shell("sync"), shell("sync", "origin")

    assert shown(first) == Typed(
        0,
        "pushed refs/heads/fabro/meta/<run>: new -> <oid>\n"
        "pushed refs/heads/fabro/run/<run>: new -> <oid>\n"
        "pushed refs/notes/fabro: new -> <oid>\n",
        "",
    )
    assert second == Typed(0, "in step with origin\n", "")
    assert branches(bare) == branches(repo)
    tip = repo.git("rev-parse", f"fabro/run/{shell.run_id()}")
    assert bare.git("notes", "--ref=fabro", "show", tip) == repo.git(
        "notes", "--ref=fabro", "show", tip
    )


def test_a_fresh_clone_reads_a_run_resumes_it_and_sends_it_back(
    shell: Shell, repo: GitRepo, clone: Shell, run: str
) -> None:
    there = GitRepo(clone.folder)

    listed = clone("list", "-a").out
    log = clone("log", run)
    refused = clone("resume", "-q", "--auto-approve", run)
    resumed = clone("resume", "-q", "--auto-approve", "--trust", run)
    sent = clone("sync")
    back = shell("sync")

    assert "origin" in listed
    assert log.status == 0
    assert (refused.status, resumed.status) == (128, 0)
    assert "hint: git fabro resume --trust <run>" in refused.err
    assert (sent.status, back.status) == (0, 0)
    assert branches(there) == branches(repo)
    assert shell("list", "-a").out.split("\n")[1].split()[1] == "success"
    assert repo.git("show", f"fabro/run/{run}:shipped.txt") == "shipped"
    repo.fsck()
    there.fsck()


@pytest.mark.parametrize("command", ["fork", "rewind"])
def test_going_back_and_elsewhere_first_makes_the_run_local(
    clone: Shell, run: str, shell: Shell, repo: GitRepo, command: str
) -> None:
    shell("resume", "-q", "--auto-approve", run)
    shell("sync")
    there = GitRepo(clone.folder)
    there.git("fetch", "-q")

    done = clone(command, run, "@1")

    assert done.status == 0
    assert f"refs/heads/fabro/run/{run}" in refs(there)
    assert f"refs/heads/fabro/meta/{run}" in refs(there)


def test_a_dry_run_only_says_what_would_move(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    shell("resume", "-q", "--auto-approve", run)
    before = (refs(repo), refs(bare))

    told = shown(shell("sync", "-n"))

    assert told == Typed(
        0,
        "would be pushed refs/heads/fabro/meta/<run>: <oid> -> <oid>\n"
        "would be pushed refs/heads/fabro/run/<run>: <oid> -> <oid>\n"
        "would be pushed refs/notes/fabro: new -> <oid>\n",
        "",
    )
    assert (refs(repo), refs(bare)) == before


def test_what_diverged_is_named_and_left_on_both_sides(
    shell: Shell, repo: GitRepo, bare: GitRepo, clone: Shell, run: str
) -> None:
    clone("resume", "-q", "--auto-approve", "--trust", run)
    shell("resume", "-q", "--auto-approve", run)
    clone("sync")
    before = (branches(repo), branches(bare))

    told = shell("sync", "--json")
    plain = shell("sync")

    listed = json.loads(told.out)["refs"]
    assert (told.status, plain.status) == (1, 1)
    assert [(one["ref"].split("/")[3], one["what"]) for one in listed if "heads" in one["ref"]] == [
        ("meta", "diverged"),
        ("run", "diverged"),
    ]
    assert plain.err.startswith("hint: git log --oneline --left-right ")
    assert (branches(repo), branches(bare)) == before


def test_notes_of_a_run_that_diverged_wait_and_hold_back_no_others(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str, clone: Shell
) -> None:
    clone("resume", "-q", "--auto-approve", "--trust", run)
    clone("sync")
    shell("resume", "-q", "--auto-approve", run)
    shell("run", "-q", "two")
    other = shell.run_id()
    # As a server does that takes no notes on what it has not.
    hook = bare.path / "hooks/pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read -r _ new ref; do\n"
        'test "$ref" = refs/notes/fabro || continue\n'
        'for noted in $(git ls-tree -r --name-only "$new" | tr -d /); do\n'
        'git cat-file -e "$noted" || exit 1; done; done\n'
    )
    hook.chmod(0o755)

    would = shown(shell("sync", "-n"))
    told = shown(shell("sync"))

    why = "(each side has what the other has not)"
    moved = (
        f"diverged refs/heads/fabro/meta/<run 1>: <oid> -> <oid> {why}\n"
        f"diverged refs/heads/fabro/run/<run 1>: <oid> -> <oid> {why}\n"
        "{0}pushed refs/heads/fabro/meta/<run 2>: new -> <oid>\n"
        "{0}pushed refs/heads/fabro/run/<run 2>: new -> <oid>\n"
        "{0}fetched refs/notes/fabro: <oid> -> <oid>\n"
        "{0}pushed refs/notes/fabro: <oid> -> <oid>\n"
    )
    assert (would.status, would.out) == (1, moved.format("would be "))
    assert (told.status, told.out) == (1, moved.format(""))
    noted = bare.git("ls-tree", "-r", "--name-only", "refs/notes/fabro").replace("/", "")
    assert repo.git("rev-parse", f"fabro/run/{other}") in noted
    assert repo.git("rev-parse", f"fabro/run/{run}") not in noted


def test_a_dry_run_says_of_notes_alone_what_would_move(
    shell: Shell, repo: GitRepo, bare: GitRepo
) -> None:
    repo.git("push", "-q", "origin", "main")
    shell("run", "-q", "two")
    shell("sync")
    bare.git("update-ref", "-d", "refs/notes/fabro")
    before = (refs(repo), refs(bare))

    would = shown(shell("sync", "-n"))
    unmoved = (refs(repo), refs(bare))
    done = shown(shell("sync"))

    assert would == Typed(0, "would be pushed refs/notes/fabro: new -> <oid>\n", "")
    assert unmoved == before
    assert done == Typed(0, "pushed refs/notes/fabro: new -> <oid>\n", "")
    assert shell("sync", "-n") == Typed(0, "in step with origin\n", "")


def test_only_one_run_is_synced_if_asked(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    shell("run", "-q", "two")
    other = shell.run_id()
    shell("resume", "-q", "--auto-approve", run)

    assert shell("sync", "--run", other).status == 0

    found = refs(bare)
    assert f"refs/heads/fabro/run/{other}" in found
    assert found[f"refs/heads/fabro/run/{run}"] != refs(repo)[f"refs/heads/fabro/run/{run}"]
    notes = bare.git("ls-tree", "-r", "--name-only", "refs/notes/fabro").replace("/", "")
    assert repo.git("rev-parse", f"fabro/run/{other}") in notes
    assert repo.git("rev-parse", f"fabro/run/{run}") not in notes


def test_a_run_that_is_driven_does_not_move_here(
    shell: Shell, repo: GitRepo, bare: GitRepo, tmp_path: Path
) -> None:
    repo.git("push", "-q", "origin", "main")
    gate = tmp_path / "gate"
    gate.mkdir()
    driver = process(shell.folder, "run", "-q", "held", environment={"GATE": str(gate)})
    until(lambda: len(refs(repo)) > 1 and _count(repo) > 0, "the first checkpoint")
    run = shell.run_id()
    shell("sync")
    # As if another clone had gone on.
    for side in ("run", "meta"):
        ref = f"refs/heads/fabro/{side}/{run}"
        tree = bare.git("rev-parse", f"{ref}^{{tree}}")
        bare.git("update-ref", ref, bare.git("commit-tree", "-p", ref, "-m", "theirs", tree))
    before = branches(repo)

    told = shell("sync")

    assert (told.status, branches(repo)) == (1, before)
    assert f"process {driver.pid} on " in told.out
    (gate / "go").touch()
    driver.communicate()


def _count(repo: GitRepo) -> int:
    runs = [ref for ref in refs(repo) if "/run/" in ref]
    return int(repo.git("rev-list", "--count", f"main..{runs[0]}")) if runs else 0


def test_a_branch_that_is_checked_out_does_not_move_here(
    shell: Shell, repo: GitRepo, clone: Shell, run: str
) -> None:
    clone("resume", "-q", "--auto-approve", "--trust", run)
    clone("sync")
    for tree in repo.git("worktree", "list", "--porcelain").split("\n\n")[1:]:
        repo.git("worktree", "remove", "--force", tree.split("\n")[0].removeprefix("worktree "))
    repo.git("switch", "-q", f"fabro/run/{run}")
    before = branches(repo)

    told = shell("sync")

    assert (told.status, branches(repo)) == (1, before)
    assert f"(it is checked out in {repo.path})" in told.out


def test_notes_of_both_sides_come_together_r47(
    shell: Shell, repo: GitRepo, clone: Shell, run: str
) -> None:
    clone("run", "-q", "two")
    shell("run", "-q", "two")
    there = GitRepo(clone.folder)

    statuses = [clone("sync").status, shell("sync").status, clone("sync").status]

    assert statuses == [0, 0, 0]
    noted = [
        set(one.git("ls-tree", "-r", "--name-only", "refs/notes/fabro").replace("/", "").split())
        for one in (repo, there)
    ]
    assert noted[0] == noted[1]
    assert branches(repo) == branches(there)


def test_a_rewind_that_was_not_pushed_is_not_taken_back(
    shell: Shell, repo: GitRepo, bare: GitRepo
) -> None:
    repo.git("push", "-q", "origin", "main")
    shell("run", "-q", "two")
    run = shell.run_id()
    shell("sync")
    shell("rewind", run, "@1")
    before = (branches(repo), branches(bare))

    told = shown(shell("sync"))

    why = "(it has records here that are in no commit yet)"
    assert told == Typed(
        1,
        f"kept refs/heads/fabro/meta/<run>: <oid> -> <oid> {why}\n"
        f"kept refs/heads/fabro/run/<run>: <oid> -> <oid> {why}\n",
        "",
    )
    assert (branches(repo), branches(bare)) == before


def test_hidden_metadata_comes_along(
    shell: Shell, repo: GitRepo, bare: GitRepo, tmp_path: Path
) -> None:
    repo.git("push", "-q", "origin", "main")
    repo.git("config", "fabro.metaNamespace", "hidden")
    shell("run", "-q", "asks")
    run = shell.run_id()
    shell("sync")
    bare.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = shell.at(tmp_path / "clone")

    resumed = clone("resume", "-q", "--auto-approve", "--trust", run)

    assert resumed.status == 0
    assert f"refs/fabro/meta/{run}" in refs(GitRepo(clone.folder))


def test_snapshots_come_along_and_nothing_that_only_looks_like_one(
    shell: Shell, repo: GitRepo, bare: GitRepo, clone: Shell, run: str
) -> None:
    tip = repo.git("rev-parse", f"fabro/run/{run}")
    snapshot = f"refs/fabro/checkpoint/{run}/01JKXYZ3F9QW0000000000000A"
    repo.git("update-ref", snapshot, tip)
    bare.git("update-ref", f"refs/fabro/checkpoint/{run}/nonsense", tip)

    statuses = [shell("sync").status, clone("sync").status]

    found = refs(GitRepo(clone.folder))
    assert statuses == [0, 0]
    assert found[snapshot] == tip
    assert not [ref for ref in found if ref.endswith("nonsense")]


def test_a_remote_without_a_branch_gets_none_of_ours_first(
    shell: Shell, repo: GitRepo, bare: GitRepo
) -> None:
    shell("run", "-q", "two")

    would = shell("sync", "-n")
    kept = shell("sync")
    repo.git("push", "-q", "origin", "main")
    sent = shell("sync")

    why = "(there is no branch there yet, and a run's is not to be the first)"
    assert would == kept
    assert (kept.status, sent.status) == (1, 0)
    assert [line.endswith(why) for line in kept.out.splitlines()] == [True, True]
    assert len(branches(bare)) == 2


def test_a_shallow_clone_syncs_sy12(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str, tmp_path: Path
) -> None:
    address = f"file://{bare.path}"
    bare.git("clone", "-q", "--depth", "1", address, str(tmp_path / "shallow"))
    shallow = shell.at(tmp_path / "shallow")

    first = shallow("sync")
    resumed = shallow("resume", "-q", "--auto-approve", "--trust", run)
    second = shallow("sync")

    assert (first.status, resumed.status, second.status) == (0, 0, 0)
    assert branches(bare) == branches(GitRepo(shallow.folder))
    assert (shallow.folder / ".git/shallow").exists()


def test_a_pruned_run_is_not_brought_back(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", stdin=b"pruned 01JKXYZ3F9QW0000000000000A\n")
    tree = repo.git("mktree", stdin=f"100644 blob {blob}\t{run}\n".encode())
    repo.git("update-ref", "refs/fabro/pruned", repo.git("commit-tree", "-m", "pruned", tree))
    for side in ("run", "meta"):
        bare.git("update-ref", "-d", f"refs/heads/fabro/{side}/{run}")

    assert shell("sync") == Typed(0, "in step with origin\n", "")
    assert branches(bare) == {}


def test_a_refusal_of_the_server_is_told_and_the_others_arrive(
    shell: Shell, repo: GitRepo, bare: GitRepo
) -> None:
    repo.git("push", "-q", "origin", "main")
    shell("run", "-q", "two")
    bad = shell.run_id()
    shell("run", "-q", "two")
    hook = bare.path / "hooks/pre-receive"
    hook.write_text(
        f"#!/bin/sh\ngrep -q {bad} || exit 0\n"
        "printf 'fabro: refused \\033[1m [link]\\n' >&2; exit 1\n"
    )
    hook.chmod(0o755)

    told = shell("sync")

    assert told.status == 1
    assert "pre-receive hook declined: fabro: refused \\x1b[1m [link]" in told.out
    assert [ref for ref in branches(bare) if bad in ref] == []
    assert len(branches(bare)) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nope",), "fatal: no such remote: nope\nhint: git remote -v\n"),
        ((), "fatal: there is no remote here\nhint: git remote add origin URL\n"),
    ],
)
def test_without_a_remote_there_is_nothing_to_sync_with(
    shell: Shell, words: tuple[str, ...], said: str
) -> None:
    assert shell("sync", *words) == Typed(128, "", said)


def test_a_work_tree_with_changes_stays_as_it_is(
    shell: Shell, repo: GitRepo, clone: Shell, run: str
) -> None:
    clone("resume", "-q", "--auto-approve", "--trust", run)
    clone("sync")
    listed = repo.git("worktree", "list", "--porcelain", "-z").split("\0")
    [path] = [line.removeprefix("worktree ") for line in listed if line.endswith("/worktree")]
    mine = Path(path) / "mine.txt"
    mine.write_text("mine\n")
    before = branches(repo)

    kept = shell("sync")
    mine.unlink()
    moved = shell("sync")

    assert (kept.status, moved.status) == (1, 0)
    assert "(its work tree has changes: " in kept.out
    assert before != branches(repo)
    assert (Path(path) / "shipped.txt").read_text() == "shipped\n"
    assert GitRepo(Path(path)).git("status", "--porcelain") == ""


def test_what_moved_here_is_taken_back_by_undo_with_its_files(
    shell: Shell, repo: GitRepo, clone: Shell, run: str
) -> None:
    clone("resume", "-q", "--auto-approve", "--trust", run)
    clone("sync")
    listed = repo.git("worktree", "list", "--porcelain", "-z").split("\0")
    [path] = [line.removeprefix("worktree ") for line in listed if line.endswith("/worktree")]
    tree, before = GitRepo(Path(path)), branches(repo)

    shell("sync")
    after = branches(repo)
    undone = shell("undo")

    assert undone == Typed(0, "undone: sync <run>\n", "")
    assert branches(repo) == before != after
    assert not (tree.path / "shipped.txt").exists()
    assert tree.git("status", "--porcelain") == ""
    assert shell("redo").status == 0
    assert branches(repo) == after
    assert (tree.path / "shipped.txt").read_text() == "shipped\n"
    assert shell("sync") == Typed(0, "in step with origin\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ended_while_a_remote_is_silent_it_leaves_nothing_running(
    shell: Shell, repo: GitRepo, tmp_path: Path, number: signal.Signals
) -> None:
    mark = tmp_path / "pid"
    silent = f'sh -c "echo \\$\\$ >{mark}.new; mv {mark}.new {mark}; exec sleep 999" x'
    repo.git("config", "core.sshCommand", silent)
    repo.git("remote", "add", "far", "far:x")
    syncing = process(shell.folder, "sync", "far")
    until(mark.exists, "the remote was asked")

    os.kill(syncing.pid, number)

    assert syncing.wait(30) == 128 + number
    until(lambda: not Path(f"/proc/{int(mark.read_text())}/stat").exists(), "ssh is gone")
    assert syncing.communicate() == ("", "")
