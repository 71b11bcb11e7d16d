from __future__ import annotations

import gc
import os
import signal
import subprocess
from pathlib import Path

from git_fabro.checkpoint.model import Move, Oid
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.refs import Refs
from git_fabro.git.transaction import UpdateRef
from tests.conftest import GitRepo

ZERO = Oid("0" * 40)
ONE = "refs/heads/fabro/run/ONE"


class Holder:
    """A thing in a cycle, as a traceback makes of what its frames hold."""

    refs: Refs
    myself: Holder


def opened(path: Path) -> Refs:
    repo = open_repository(path)
    return Refs(repo, open_objects(repo))


def children() -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "update-ref" in line]


def test_refs_in_a_cycle_of_garbage_end_their_process_quietly(repo: GitRepo) -> None:
    commit = Oid(repo.commit({"a": "1"}))
    for number in range(3):
        holder = Holder()
        holder.refs, holder.myself = opened(repo.path), holder
        holder.refs.move([Move(f"{ONE}{number}", ZERO, commit)], "fabro")
        del holder
        gc.collect()

    assert children() == []


def test_a_child_whose_files_were_finalized_first_is_ended_quietly(repo: GitRepo) -> None:
    found = open_repository(repo.path)
    assert found.git is not None
    writer = UpdateRef(found.git, found.common_dir)
    commit = Oid(repo.commit({"a": "1"}))
    assert writer.move([Move(ONE, ZERO, commit)], "fabro") is None
    _finalize(writer)

    writer.close()

    assert children() == []
    assert writer.move([Move(ONE, commit, commit)], "fabro") is None
    (child,) = writer._children.values()
    _finalize(writer)
    assert not child.commit([])
    writer.close()


def _finalize(writer: UpdateRef) -> None:
    """What the collector of cycles may do before the owner of these files is asked."""
    (child,) = writer._children.values()
    for file in (child._errors, child._process.stdin, child._process.stdout):
        assert file is not None
        file.close()


def test_a_process_that_was_killed_is_replaced(repo: GitRepo) -> None:
    one, two = Oid(repo.commit({"a": "1"})), Oid(repo.commit({"a": "2"}))
    with opened(repo.path) as refs:
        refs.move([Move(ONE, ZERO, one)], "fabro")
        for pid in children():
            os.kill(pid, signal.SIGKILL)

        refs.move([Move(ONE, one, two)], "fabro")

    assert repo.git("rev-parse", ONE) == two


def test_moves_beside_a_loop_of_pack_refs_all_land(repo: GitRepo) -> None:
    one, two = Oid(repo.commit({"a": "1"})), Oid(repo.commit({"a": "2"}))
    script = "while [ ! -e stop ]; do git pack-refs --all --prune; sleep .02; done"
    packing = subprocess.Popen(["sh", "-c", script], cwd=repo.path, stderr=subprocess.DEVNULL)
    try:
        with opened(repo.path) as refs:
            at = ZERO
            for number in range(60):
                to = two if number % 2 else one
                refs.move([Move(ONE, at, to)], "fabro")
                assert refs.read(ONE) == to
                at = to
    finally:
        (repo.path / "stop").touch()
        packing.wait()

    assert repo.git("rev-parse", ONE) == at


def test_closing_does_not_wait_for_a_process_that_holds_the_pipe(repo: GitRepo) -> None:
    commit = Oid(repo.commit({"a": "1"}))
    refs = opened(repo.path)
    refs.move([Move(ONE, ZERO, commit)], "fabro")
    forked = os.fork()
    if forked == 0:
        signal.pause()
        os._exit(0)

    refs.close()

    os.kill(forked, signal.SIGKILL)
    os.waitpid(forked, 0)
    assert children() == []
    assert repo.git("rev-parse", ONE) == commit
