from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Move, Oid
from git_fabro.errors import BusyError, GitError, MissingObjectError, StaleRefError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.refs import Refs
from tests.conftest import GitRepo

ZERO = Oid("0" * 40)
ONE, TWO = "refs/heads/fabro/run/ONE", "refs/heads/fabro/meta/ONE"


def opened(path: Path) -> Refs:
    repo = open_repository(path)
    return Refs(repo, open_objects(repo))


@pytest.fixture(params=["git", "no git"])
def refs(repo: GitRepo, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Refs:
    """The refs of a repository, moved by git and by our own lock files."""
    if request.param == "no git":
        with monkeypatch.context() as patched:
            patched.setenv("PATH", "/nonexistent")
            return opened(repo.path)
    return opened(repo.path)


@pytest.fixture
def commits(repo: GitRepo) -> list[Oid]:
    return [Oid(repo.commit({"a": str(number)})) for number in range(4)]


def shown(repo: GitRepo) -> dict[str, str]:
    lines = repo.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def test_several_refs_are_made_moved_verified_and_deleted(
    repo: GitRepo, refs: Refs, commits: list[Oid]
) -> None:
    one, two, three, _ = commits

    refs.move([Move(ONE, ZERO, one), Move(TWO, ZERO, two)], "made")
    refs.move([Move(ONE, one, one), Move(TWO, two, three)], "moved")

    assert shown(repo) == {"refs/heads/main": commits[3], ONE: one, TWO: three}
    assert refs.read(ONE) == one
    refs.move([Move(ONE, one, ZERO), Move(TWO, three, ZERO)], "deleted")
    assert shown(repo) == {"refs/heads/main": commits[3]}
    assert refs.read(ONE) is None


def test_all_or_none_moves_when_one_is_stale_rf2(
    repo: GitRepo, refs: Refs, commits: list[Oid]
) -> None:
    one, two, three, four = commits
    refs.move([Move(ONE, ZERO, one), Move(TWO, ZERO, one)], "made")

    with pytest.raises(StaleRefError, match=TWO):
        refs.move([Move(ONE, one, four), Move(TWO, two, three)], "stale")

    assert (refs.read(ONE), refs.read(TWO)) == (one, one)
    refs.move([Move(ONE, one, two)], "a new child serves after a failure")
    assert refs.read(ONE) == two


def test_a_ref_is_created_only_once_rf1(refs: Refs, commits: list[Oid]) -> None:
    refs.move([Move(ONE, ZERO, commits[0])], "made")

    with pytest.raises(StaleRefError):
        refs.move([Move(ONE, ZERO, commits[1])], "made")

    assert refs.read(ONE) == commits[0]


def test_a_move_that_is_sent_again_succeeds_rf4(refs: Refs, commits: list[Oid]) -> None:
    refs.move([Move(ONE, ZERO, commits[0])], "made")
    moves = [Move(ONE, commits[0], commits[1]), Move(TWO, ZERO, commits[1])]

    refs.move(moves, "moved")
    refs.move(moves, "moved")

    assert refs.read(ONE) == commits[1]


def test_a_ref_that_must_not_exist_can_be_verified(refs: Refs, commits: list[Oid]) -> None:
    refs.move([Move(TWO, ZERO, ZERO), Move(ONE, ZERO, commits[0])], "made")

    with pytest.raises(StaleRefError):
        refs.move([Move(ONE, ZERO, ZERO), Move(TWO, ZERO, commits[0])], "made")


def test_a_missing_object_is_refused_rf3(refs: Refs, commits: list[Oid]) -> None:
    with pytest.raises(MissingObjectError):
        refs.move([Move(ONE, ZERO, Oid("a" * 40))], "made")

    assert refs.read(ONE) is None


def test_packed_refs_are_read_moved_and_deleted_rf15(
    repo: GitRepo, refs: Refs, commits: list[Oid]
) -> None:
    one, two, *_ = commits
    repo.git("tag", "-m", "annotated", "v1", one)
    refs.move([Move(ONE, ZERO, one), Move(TWO, ZERO, one)], "made")
    repo.git("pack-refs", "--all")

    assert refs.read(ONE) == one
    assert refs.list("refs/heads/fabro/") == {ONE: one, TWO: one}
    refs.move([Move(ONE, one, two), Move(TWO, one, ZERO)], "moved")

    assert refs.list("refs/heads/fabro/") == {ONE: two}
    assert set(shown(repo)) == {ONE, "refs/heads/main", "refs/tags/v1"}
    repo.git("pack-refs", "--all")
    assert repo.git("rev-parse", "v1^{commit}") == one


@pytest.mark.parametrize("packed", [True, False])
def test_a_ref_beside_a_folder_of_its_name_is_refused_rf6(
    repo: GitRepo, refs: Refs, commits: list[Oid], packed: bool
) -> None:
    refs.move([Move("refs/fabro/x/y", ZERO, commits[0])], "made")
    if packed:
        repo.git("pack-refs", "--all")

    for name in ("refs/fabro/x", "refs/fabro/x/y/z"):
        with pytest.raises(GitError):
            refs.move([Move(name, ZERO, commits[0])], "made")

    assert refs.list("refs/fabro/") == {"refs/fabro/x/y": commits[0]}
    assert not list((repo.path / ".git").rglob("*.lock"))


def test_an_empty_folder_is_no_obstacle(repo: GitRepo, refs: Refs, commits: list[Oid]) -> None:
    (repo.path / ".git/refs/fabro/x/y").mkdir(parents=True)

    refs.move([Move("refs/fabro/x", ZERO, commits[0])], "made")

    assert repo.git("rev-parse", "refs/fabro/x") == commits[0]


def test_a_lock_that_is_kept_for_long_is_busy_and_stays_rf9(
    repo: GitRepo, commits: list[Oid]
) -> None:
    found = open_repository(repo.path)
    refs = Refs(found, open_objects(found), patience_s=0.05)
    refs.move([Move(ONE, ZERO, commits[0])], "made")
    lock = repo.path / ".git" / f"{ONE}.lock"
    lock.touch()

    with pytest.raises(BusyError, match="another process"):
        refs.move([Move(ONE, commits[0], commits[1])], "moved")

    assert lock.exists()
    assert refs.read(ONE) == commits[0]


def test_a_lock_that_is_kept_for_a_moment_is_waited_for_rf3(
    repo: GitRepo, refs: Refs, commits: list[Oid]
) -> None:
    refs.move([Move(ONE, ZERO, commits[0])], "made")
    lock = repo.path / ".git" / f"{ONE}.lock"
    lock.touch()
    release = threading.Timer(0.05, lock.unlink)
    release.start()

    refs.move([Move(ONE, commits[0], commits[1])], "moved")

    release.join()
    assert refs.read(ONE) == commits[1]


def test_symbolic_refs_are_followed_and_left_alone(
    repo: GitRepo, refs: Refs, commits: list[Oid]
) -> None:
    assert refs.read("HEAD") == commits[3]

    refs.move([Move("refs/heads/main", commits[3], commits[0])], "moved")

    assert repo.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert refs.read("HEAD") == commits[0]


def test_a_symbolic_ref_is_replaced_not_written_through(
    repo: GitRepo, refs: Refs, commits: list[Oid]
) -> None:
    repo.git("symbolic-ref", "refs/fabro/lease/X", "refs/heads/main")

    with pytest.raises((StaleRefError, GitError)):
        refs.move([Move("refs/fabro/lease/X", commits[0], commits[1])], "moved")

    assert repo.git("rev-parse", "main") == commits[3]


def test_names_are_listed_by_prefix(repo: GitRepo, refs: Refs, commits: list[Oid]) -> None:
    for name in ("refs/fabro/a1", "refs/fabro/a2", "refs/fabro/b"):
        refs.move([Move(name, ZERO, commits[0])], "made")
    repo.git("pack-refs", "--all")
    refs.move([Move("refs/fabro/a2", commits[0], commits[1])], "moved")

    assert refs.list("refs/fabro/a") == {"refs/fabro/a1": commits[0], "refs/fabro/a2": commits[1]}
    assert refs.list("refs/nothing/") == {}


def test_the_reflog_of_a_branch_has_the_message(repo: GitRepo, commits: list[Oid]) -> None:
    with opened(repo.path) as refs:
        refs.move([Move(ONE, ZERO, commits[0])], "fabro: checkpoint")

    assert repo.git("reflog", "-1", "--format=%gs", ONE) == "fabro: checkpoint"


def test_no_hook_sees_a_move(repo: GitRepo, commits: list[Oid]) -> None:
    hook = repo.path / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    with opened(repo.path) as refs:
        refs.move([Move(ONE, ZERO, commits[0])], "made")

        assert refs.read(ONE) == commits[0]


def test_no_identity_is_needed_for_a_move(
    repo: GitRepo, commits: list[Oid], monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME")
        monkeypatch.delenv(f"GIT_{role}_EMAIL")
    repo.git("config", "user.useConfigOnly", "true")

    with opened(repo.path) as refs:
        refs.move([Move(ONE, ZERO, commits[0])], "made")

        assert refs.read(ONE) == commits[0]


def test_one_git_process_serves_move_after_move(repo: GitRepo, commits: list[Oid]) -> None:
    one, two, *_ = commits
    with opened(repo.path) as refs:
        refs.move([Move(ONE, ZERO, one)], "fabro")
        children = _children()
        for _ in range(20):
            refs.move([Move(ONE, one, two)], "fabro")
            refs.move([Move(ONE, two, one)], "fabro")

        assert _children() == children
        assert len(children) == 1

    assert _children() == []


def _children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_a_fork_starts_a_process_of_its_own(repo: GitRepo, commits: list[Oid]) -> None:
    one, two, three, _ = commits
    with opened(repo.path) as refs:
        refs.move([Move(ONE, ZERO, one)], "fabro")
        pid = os.fork()
        if pid == 0:
            refs.move([Move(ONE, one, two)], "fabro")
            refs.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

        refs.move([Move(ONE, two, three)], "fabro")

        assert refs.read(ONE) == three


def _race(path: str, barrier: object, mine: Oid, old: Oid, results: object) -> None:
    with opened(Path(path)) as refs:
        barrier.wait()  # type: ignore[attr-defined]
        try:
            refs.move([Move(ONE, old, mine), Move(TWO, old, mine)], "race")
        except StaleRefError:
            results.put("lost")  # type: ignore[attr-defined]
        else:
            results.put("won")  # type: ignore[attr-defined]


@pytest.mark.parametrize("with_git", [(True, True), (False, False), (True, False)])
def test_of_two_processes_one_wins_and_the_other_moved_nothing_rf2(
    repo: GitRepo, commits: list[Oid], with_git: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = multiprocessing.get_context("fork")
    path = str(repo.path)
    with opened(repo.path) as refs:
        old = commits[0]
        refs.move([Move(ONE, ZERO, old), Move(TWO, ZERO, old)], "made")
        for _ in range(5):
            barrier, results = context.Barrier(2), context.SimpleQueue()
            racers = []
            for number, git in enumerate(with_git):
                mine = Oid(repo.git("commit-tree", "HEAD^{tree}", "-m", str(number)))
                with monkeypatch.context() as patched:
                    if not git:
                        patched.setenv("PATH", "/nonexistent")
                    racer = context.Process(target=_race, args=(path, barrier, mine, old, results))
                    racer.start()
                racers.append(racer)
            for racer in racers:
                racer.join()

            assert sorted([results.get(), results.get()]) == ["lost", "won"]
            assert refs.read(ONE) == refs.read(TWO) != old
            held = refs.read(ONE)
            assert held is not None
            refs.move([Move(ONE, held, old), Move(TWO, held, old)], "back")


def _count_up(path: str, times: int) -> None:
    repo = open_repository(path)
    with open_objects(repo) as objects, Refs(repo, objects) as refs:
        for _ in range(times):
            while True:
                tip = refs.read("refs/fabro/ops")
                assert tip is not None
                commit = objects.read_commit(tip)
                new = objects.write_commit(
                    type(commit)(
                        tree=commit.tree,
                        parents=(tip,),
                        author=commit.author,
                        committer=commit.committer,
                        when=commit.when,
                        message=f"{os.getpid()}\n",
                    )
                )
                try:
                    refs.move([Move("refs/fabro/ops", tip, new)], "fabro")
                except StaleRefError:
                    continue
                break


def test_no_move_of_six_processes_on_one_ref_is_lost_rf5(repo: GitRepo, commits: list[Oid]) -> None:
    repo.git("update-ref", "refs/fabro/ops", commits[0])
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_count_up, args=(str(repo.path), 20)) for _ in range(6)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 6
    assert repo.git("rev-list", "--count", "refs/fabro/ops") == str(1 + 6 * 20)
