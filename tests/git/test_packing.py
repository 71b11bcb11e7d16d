"""Packing, with git as the oracle: what it takes, what it leaves, and that it may die anywhere."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.errors import GitError
from git_fabro.git.discover import Repository, open_repository
from git_fabro.git.memory import SETTLED_S
from git_fabro.git.objects import Objects
from git_fabro.git.packing import LEAST_OBJECTS, Packed, pack_loose, start_packing
from git_fabro.git.program import Git
from git_fabro.store import PACK_EVERY
from tests.conftest import GitRepo
from tests.scratch import begin

RUN = RunId("01JKXYZ3F9QW8T5V2N7M4B6C1D")
TIPS = layout.refs_of(RUN)
COMMITS = 60


@pytest.fixture
def run(repo: GitRepo) -> GitRepo:
    """A repository whose user has loose objects, and a run of sixty commits above them."""
    repo.commit({"user": "mine", "dir/kept": "same"})
    add_run(repo, RUN)
    return repo


def add_run(repo: GitRepo, run: RunId, *, commits: int = COMMITS) -> None:
    """Run and metadata branch with a file each that changes with every commit; all loose."""
    rows = ["feature done"]
    for ref in (layout.run_ref(run), layout.meta_ref(run)):
        for number in range(commits):
            text = f"{run} {ref} {number}\n"
            rows += [f"commit {ref}", f"committer A <a@example.com> {number} +0000"]
            rows += ["data 4", "work"]
            if number == 0 and ref == layout.run_ref(run):
                rows.append("from refs/heads/main^0")
            rows += [f"M 100644 inline state/{number % 7}", f"data {len(text)}", text]
    stream = ("\n".join([*rows, "done"]) + "\n").encode()
    repo.git_bytes(
        "-c", "fastimport.unpackLimit=100000", "fast-import", "--quiet", "--done", stdin=stream
    )


def packed(repo: GitRepo, *, least: int = LEAST_OBJECTS) -> Packed:
    base = Oid(repo.git("rev-parse", "main"))
    return pack_loose(open_repository(repo.path), TIPS, base=base, least=least)


def counts(repo: GitRepo) -> dict[str, int]:
    rows = (row.partition(": ") for row in repo.git("count-objects", "-v").splitlines())
    return {name: int(value) for name, _, value in rows if value.isdigit()}


def all_objects(repo: GitRepo) -> list[str]:
    return sorted(repo.git("rev-list", "--objects", "--all").split("\n"))


def loose(repo: GitRepo) -> list[str]:
    names = (repo.path / ".git/objects").glob("??/*")
    return sorted(file.parent.name + file.name for file in names)


def test_what_a_run_has_loose_becomes_one_pack(run: GitRepo) -> None:
    before, reachable = counts(run), all_objects(run)
    users = sorted(run.git("rev-list", "--objects", "--no-object-names", "main").split())

    done = packed(run)

    assert done == Packed(packs=1, objects=before["count"] - len(users))
    assert counts(run) | {"size": 0, "size-pack": 0} == {
        "count": len(users),
        "size": 0,
        "in-pack": done.objects,
        "packs": 1,
        "size-pack": 0,
        "prune-packable": 0,
        "garbage": 0,
        "size-garbage": 0,
    }
    assert loose(run) == users
    assert all_objects(run) == reachable
    run.fsck()


def test_a_second_packing_takes_only_what_came_since(run: GitRepo) -> None:
    packed(run)
    first = counts(run)
    assert packed(run) == Packed()
    tip = run.git("rev-parse", layout.run_ref(RUN))
    made = run.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "more")
    run.git("update-ref", layout.run_ref(RUN), made)

    assert packed(run, least=1) == Packed(packs=1, objects=1)

    assert counts(run)["in-pack"] == first["in-pack"] + 1
    run.fsck()


def test_many_objects_get_a_commit_graph_too(run: GitRepo) -> None:
    """A layer of git's own, that git finds right; another packing puts the next one on it."""
    tip = run.git("rev-parse", layout.run_ref(RUN))
    history = run.git("log", "--format=%H %P %T", tip)

    assert pack_loose(open_repository(run.path), TIPS, base=None, graph=1).has_graph

    run.git("commit-graph", "verify")
    assert run.git("log", "--format=%H %P %T", tip) == history
    made = run.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "more")
    run.git("update-ref", layout.run_ref(RUN), made)
    assert pack_loose(open_repository(run.path), TIPS, base=None, least=1, graph=1).has_graph
    run.git("commit-graph", "verify")
    run.git("gc", "-q")
    run.fsck()


def test_a_lock_on_the_commit_graph_stops_no_packing(run: GitRepo) -> None:
    folder = run.path / ".git/objects/info/commit-graphs"
    folder.mkdir(parents=True)
    (folder / "commit-graph-chain.lock").touch()

    done = pack_loose(open_repository(run.path), TIPS, base=None, graph=1)

    assert (done.packs, done.has_graph) == (1, False)
    assert [path.name for path in folder.iterdir()] == ["commit-graph-chain.lock"]
    run.fsck()


def test_few_objects_stay_loose(repo: GitRepo) -> None:
    repo.commit({"user": "mine"})
    add_run(repo, RUN, commits=10)
    before = loose(repo)

    assert packed(repo) == Packed()

    assert loose(repo) == before


def test_other_runs_and_what_no_ref_reaches_stay_loose(run: GitRepo) -> None:
    other = RunId("01JKXYZ3F9QW8T5V2N7M4B6C1E")
    add_run(run, other)
    blob = run.git("hash-object", "-w", "--stdin", stdin=b"in flight")

    packed(run)

    left = loose(run)
    assert blob in left
    assert run.git("rev-parse", layout.run_ref(other)) in left
    assert run.git("rev-parse", layout.run_ref(RUN)) not in left


def test_branches_snapshots_notes_and_lease_of_a_run_are_packed_too(run: GitRepo) -> None:
    refs = [
        layout.branch_ref(RUN, "split@1/api"),
        f"{layout.SNAPSHOT_PREFIX}{RUN}/01JKXYZ3F9QW8T5V2N7M4B6C1F",
        layout.NOTES_REF,
        layout.lease_ref(RUN),
    ]
    tree = run.git("rev-parse", "main^{tree}")
    made = [run.git("commit-tree", tree, "-p", "main", "-m", ref) for ref in refs]
    for ref, oid in zip(refs, made, strict=True):
        run.git("update-ref", ref, oid)

    packed(run)

    assert [oid for oid in made if oid in loose(run)] == []


def test_without_a_base_all_is_packed_and_without_refs_nothing(run: GitRepo) -> None:
    found = open_repository(run.path)

    assert pack_loose(found, ("refs/heads/none",), base=None, least=1) == Packed()
    pack_loose(found, TIPS, base=None)

    assert loose(run) == []
    run.fsck()


def test_an_alternate_is_neither_packed_nor_cleaned(run: GitRepo, tmp_path: Path) -> None:
    borrower = GitRepo(tmp_path / "borrower")
    subprocess.run(["git", "clone", "-q", "-s", run.path, borrower.path], check=True)
    borrower.git("fetch", "-q", "origin", "+refs/*:refs/*", "--update-head-ok")
    lent = loose(run)
    tip = run.git("rev-parse", layout.run_ref(RUN))
    made = borrower.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "own")
    borrower.git("update-ref", layout.run_ref(RUN), made)

    assert packed(borrower, least=1) == Packed(packs=1, objects=1)

    assert loose(run) == lent
    assert counts(borrower)["in-pack"] == 1
    borrower.fsck()


def test_a_copy_of_what_an_alternate_has_packed_stays(run: GitRepo, tmp_path: Path) -> None:
    lender = GitRepo(tmp_path / "lender")
    subprocess.run(["git", "clone", "-q", "--mirror", run.path, lender.path], check=True)
    lender.git("repack", "-q", "-ad")
    (run.path / ".git/objects/info/alternates").write_text(f"{lender.path}/objects\n")
    before = loose(run)
    tip = run.git("rev-parse", layout.run_ref(RUN))
    made = run.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "own")
    run.git("update-ref", layout.run_ref(RUN), made)

    assert packed(run, least=1) == Packed(packs=1, objects=1)

    assert loose(run) == before


def test_a_sha256_repository_is_packed_ob4(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "repo")
    repo.path.mkdir()
    repo.git("init", "-q", "-b", "main", "--object-format=sha256")
    repo.commit({"a": "1"})
    add_run(repo, RUN)

    assert packed(repo).packs == 1

    assert len(loose(repo)) == 3
    repo.fsck()


def test_a_partial_clone_fetches_nothing_ob10(run: GitRepo, tmp_path: Path) -> None:
    run.git("config", "uploadpack.allowFilter", "true")
    run.git("config", "uploadpack.allowAnySHA1InWant", "true")
    clone = GitRepo(tmp_path / "clone")
    url = f"file://{run.path}"
    subprocess.run(
        ["git", "clone", "-q", "--no-checkout", "--filter=blob:none", url, clone.path], check=True
    )
    clone.git("fetch", "-q", "origin", "+refs/heads/fabro/*:refs/heads/fabro/*")
    tip = clone.git("rev-parse", layout.run_ref(RUN))
    made = clone.git("commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "own")
    clone.git("update-ref", layout.run_ref(RUN), made)
    missing = clone.git("rev-list", "--objects", "--all", "--missing=print").count("?")
    before = counts(clone)
    assert missing > 0

    assert packed(clone, least=1) == Packed(packs=1, objects=1)

    assert clone.git("rev-list", "--objects", "--all", "--missing=print").count("?") == missing
    assert counts(clone)["packs"] == before["packs"] + 1
    clone.fsck()


def test_a_shared_repository_stays_shared(run: GitRepo) -> None:
    run.git("config", "core.sharedRepository", "group")

    packed(run)

    modes = {file.stat().st_mode for file in (run.path / ".git/objects/pack").iterdir()}
    assert all(mode & stat.S_IRGRP for mode in modes)


def test_nothing_of_the_users_gc_is_touched_and_no_hook_runs(run: GitRepo) -> None:
    ran = run.path / "ran"
    for name in ("pre-auto-gc", "reference-transaction", "post-rewrite"):
        hook = run.path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
        hook.chmod(0o755)
    config = (run.path / ".git/config").read_bytes()

    packed(run)

    assert (run.path / ".git/config").read_bytes() == config
    assert not ran.exists()
    assert not (run.path / ".git/gc.log").exists()


def test_while_a_gc_runs_nothing_is_packed(run: GitRepo) -> None:
    pid_file = run.path / ".git/gc.pid"
    pid_file.write_text(f"{os.getpid()} {socket.gethostname()}")

    assert packed(run) == Packed()

    pid_file.unlink()
    assert packed(run).packs == 1


def test_a_damaged_object_stops_the_packing_and_nothing_goes(run: GitRepo) -> None:
    blob = run.git("rev-parse", f"{layout.run_ref(RUN)}:state/3")
    file = run.path / ".git/objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-4])
    before = loose(run)

    with pytest.raises(GitError, match="git pack-objects failed"):
        packed(run)

    assert loose(run) == before


class Faulty(Git):
    """Git, of which one command fails, or is the last that this process sees."""

    __slots__ = ()

    def run(
        self,
        args: Sequence[str],
        *,
        cwd: Path | None = None,
        git_dir: Path | None = None,
        work_tree: Path | None = None,
        index: Path | None = None,
        input: bytes = b"",
        ok: Sequence[int] = (0,),
        timeout_s: float | None = None,
    ) -> bytes:
        printed = super().run(args, cwd=cwd, git_dir=git_dir, input=input)
        if args[0] == self.base["KILL"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if args[0] == self.base["FAIL"]:
            raise GitError(f"{args[0]} failed")
        return printed


def faulty(repo: GitRepo, *, kill: str = "", fail: str = "") -> Repository:
    found = open_repository(repo.path)
    assert found.git is not None
    base: Mapping[str, str] = {**found.git.base, "KILL": kill, "FAIL": fail}
    return found._replace(git=Faulty(found.git.path, base, found.git.settings))


def test_a_pack_that_does_not_verify_costs_no_loose_object(run: GitRepo) -> None:
    before = loose(run)

    with pytest.raises(GitError):
        pack_loose(faulty(run, fail="verify-pack"), TIPS, base=None)

    assert loose(run) == before


def in_child(work: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize(
    "step", ["for-each-ref", "rev-list", "pack-objects", "verify-pack", "show-index"]
)
def test_killed_after_a_step_nothing_is_lost_and_the_next_one_ends_it(
    run: GitRepo, step: str
) -> None:
    before, reachable = loose(run), all_objects(run)

    status = in_child(lambda: pack_loose(faulty(run, kill=step), TIPS, base=None))

    assert os.WIFSIGNALED(status)
    assert loose(run) == before
    assert all_objects(run) == reachable
    run.fsck()
    packed(run, least=1)
    run.git("prune-packed")
    assert len(loose(run)) < 10
    run.fsck()


@pytest.mark.parametrize("tenth", range(12))
def test_killed_at_any_moment_nothing_is_lost(run: GitRepo, tenth: int) -> None:
    began = time.monotonic()
    packed(run)
    whole_s = time.monotonic() - began
    other = RunId("01JKXYZ3F9QW8T5V2N7M4B6C1E")
    add_run(run, other)
    reachable = all_objects(run)
    program = [sys.executable, "-m", "git_fabro.git.packing", run.path / ".git", run.path / "log"]
    started = subprocess.Popen([*program, "", *layout.refs_of(other)], process_group=0)
    # The start of Python, and then somewhere in the packing.
    time.sleep(0.06 + whole_s * tenth / 10)

    os.killpg(started.pid, signal.SIGKILL)
    started.wait()

    assert all_objects(run) == reachable
    run.fsck()
    pack_loose(open_repository(run.path), layout.refs_of(other), base=None, least=1)
    assert all_objects(run) == reachable
    run.fsck()


def test_two_packings_at_once_lose_nothing(run: GitRepo) -> None:
    reachable = all_objects(run)
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                pack_loose(open_repository(run.path), TIPS, base=None)
                status = 0
            finally:
                os._exit(status)
        children.append(child)

    # One may find that another was faster, and says so; that is all.
    for child in children:
        os.waitpid(child, 0)

    assert all_objects(run) == reachable
    assert counts(run)["packs"] <= 4
    assert loose(run) == []
    run.fsck()


def test_beside_a_loop_of_gc_nothing_is_lost(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit({"a": "1"})
    run, found = begin(repo.path, tmp_path / "runs"), open_repository(repo.path)
    stop = tmp_path / "stop"
    collecting = subprocess.Popen(
        ["sh", "-c", f"while [ ! -e {stop} ]; do git gc -q --prune=now; sleep .02; done"],
        cwd=repo.path,
        stderr=subprocess.DEVNULL,
    )
    packs = 0
    try:
        for _ in range(40):
            run.visit()
            try:
                tips = layout.refs_of(run.log.run)
                packs += pack_loose(found, tips, base=None, least=1).packs
            except GitError:
                # Gc took the files that were listed into a pack of its own, or the last commits,
                # which the driver then writes again.
                continue
    finally:
        stop.touch()
        collecting.wait()
    run.doors.objects.look_again(final=True)
    run.close()

    assert packs > 0
    assert repo.git("rev-list", "--count", run.tip.ref, "^main") == "40"
    repo.fsck()


def test_a_driver_finds_what_was_packed_and_writes_nothing_again(run: GitRepo) -> None:
    clock = iter(range(0, 1000, int(SETTLED_S)))
    with Objects(run.path / ".git", "sha1", clock=lambda: float(next(clock))) as objects:
        tip = Oid(run.git("rev-parse", layout.run_ref(RUN)))
        names = run.git("rev-list", "--objects", "--no-object-names", tip, "^main").split()
        for name in names:
            kind = run.git("cat-file", "-t", name)
            data = run.git_bytes("cat-file", kind, name)
            (objects.write_blob if kind == "blob" else lambda _: None)(data)
        packed(run)
        before = loose(run)

        assert [objects.look_again() for _ in range(3)] == [0, 0, 0]
        assert objects.bring_back() == 0
        assert objects.read_commit(tip).subject == "work"
        blob = objects.blob_at(tip, "state/3")
        assert blob is not None
        objects.write_blob(blob)

    assert loose(run) == before


def test_a_writer_sees_packs_that_came_since_it_looked(repo: GitRepo) -> None:
    with Objects(repo.path / ".git", "sha1") as objects:
        objects.write_blob(b"the packs have been looked at")
        repo.commit({"a": "1"})
        repo.git("gc", "-q")

        objects.write_blob(b"1")

    assert repo.git("count-objects").startswith("1 objects")


def test_in_the_background_nobody_waits_and_no_child_is_left(run: GitRepo) -> None:
    found, log = open_repository(run.path), run.path / "packing.log"
    base = Oid(run.git("rev-parse", "main"))

    start_packing(found, TIPS, base=base, log=log)

    deadline = time.monotonic() + 30
    while len(loose(run)) > 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(loose(run)) == 5
    assert not log.exists()
    run.fsck()


def test_a_failure_in_the_background_is_in_the_log(run: GitRepo) -> None:
    log = run.path / "packing.log"

    start_packing(open_repository(run.path), TIPS, base=Oid("1" * 40), log=log)

    deadline = time.monotonic() + 30
    while not (log.exists() and log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert log.read_text().startswith("packing failed: git rev-list failed: bad ")


def test_git_that_does_not_detach_is_waited_for(run: GitRepo) -> None:
    run.git("config", "gc.autoDetach", "false")
    base = Oid(run.git("rev-parse", "main"))

    start_packing(open_repository(run.path), TIPS, base=base, log=run.path / "log")

    assert len(loose(run)) == 5


def test_a_long_run_is_packed_on_its_way(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit({"a": "1"})
    repo.git("config", "gc.autoDetach", "false")
    run = begin(repo.path, tmp_path / "runs")
    run.log.unpacked = PACK_EVERY - 20
    for _ in range(19):
        run.visit()
    assert counts(repo)["packs"] == 0

    run.visit()

    found = counts(repo)
    run.close()
    assert found["packs"] == 1
    assert found["count"] < 10
    tip = repo.git("rev-parse", run.tip.ref)
    assert repo.git("rev-list", "--count", f"main..{tip}") == "20"
    for meta in repo.git("rev-list", layout.meta_ref(run.log.run)).split():
        repo.git("cat-file", "-e", f"{meta}:checkpoint.json")
    repo.fsck()
