from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from git_fabro import lease
from git_fabro.checkpoint.model import Identity, Move, Oid, RunId
from git_fabro.errors import LeasedError, NotFoundError, RecordError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.refs import Refs
from tests.conftest import WHEN, GitRepo

RUN = RunId("01JKXYZ3F9QW8T5V2N7M4B6C1D")
MINE, THEIRS = "01JKXYZ3F9QW8T5V2N7M4B6C1E", "01JKXYZ3F9QW8T5V2N7M4B6C1F"
BY = Identity("A. Tester", "tester@example.com")
DEAD = lease.me(THEIRS)._replace(pid=2**22 + 1)


@pytest.fixture
def opened(repo: GitRepo) -> Iterator[tuple[Refs, Objects]]:
    found = open_repository(repo.path)
    with open_objects(found) as objects, Refs(found, objects) as refs:
        yield refs, objects


def give(opened: tuple[Refs, Objects], holder: lease.Holder | None, old: Oid | None = None) -> Oid:
    refs, objects = opened
    token = lease.commit_for(objects, holder, old, by=BY, when=WHEN)
    refs.move([lease.move_to(RUN, old, token)], "lease")
    return token


def test_a_lease_names_its_holder(repo: GitRepo, opened: tuple[Refs, Objects]) -> None:
    mine = lease.me(MINE)

    token = give(opened, mine)

    assert lease.read(*opened, RUN) == (token, mine)
    assert repo.git("rev-parse", f"refs/fabro/lease/{RUN}") == token
    repo.fsck()


def test_a_freed_lease_names_nobody(opened: tuple[Refs, Objects]) -> None:
    held = give(opened, lease.me(MINE))

    freed = give(opened, None, held)

    assert lease.read(*opened, RUN) == (freed, None)
    assert opened[1].parents(freed) == (held,)


def test_two_leases_of_one_holder_have_different_tokens(opened: tuple[Refs, Objects]) -> None:
    first = give(opened, lease.me(MINE))
    freed = give(opened, None, first)

    second = give(opened, lease.me(MINE), freed)

    assert len({first, freed, second}) == 3


def test_this_process_is_alive_and_an_ended_one_is_not() -> None:
    child = subprocess.Popen(["sleep", "60"])
    started = lease._started(child.pid)
    assert started is not None
    holder = lease.me(MINE)._replace(pid=child.pid, started=started)

    assert lease.is_alive(lease.me(MINE)) is True
    assert lease.is_alive(holder) is True
    child.kill()
    # Not waited for: a zombie has ended as well.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert lease.is_alive(holder) is False
    child.wait()
    assert lease.is_alive(holder) is False


def test_a_pid_that_is_used_again_is_not_the_holder() -> None:
    assert lease.is_alive(lease.me(MINE)._replace(started=1)) is False


@pytest.mark.parametrize("part", ["host", "boot", "pid_namespace"])
def test_a_holder_of_another_machine_is_neither_alive_nor_dead(part: str) -> None:
    mine = lease.me(MINE)
    other = {"host": mine._replace(host="other"), "boot": mine._replace(boot="other")}
    other["pid_namespace"] = mine._replace(pid_namespace="other")

    assert lease.is_alive(other[part]) is None


def test_a_live_holder_is_named_with_what_to_do(opened: tuple[Refs, Objects]) -> None:
    holder = lease.me(THEIRS)
    give(opened, holder)

    with pytest.raises(LeasedError) as caught:
        lease.check_free(*opened, RUN, lease.me(MINE))

    assert str(holder.pid) in caught.value.message
    assert holder.host in caught.value.message
    assert caught.value.hint == f"git fabro attach {RUN}"


def test_a_holder_elsewhere_is_passed_over_only_on_demand_di6(
    opened: tuple[Refs, Objects],
) -> None:
    token = give(opened, lease.me(THEIRS)._replace(host="elsewhere"))

    with pytest.raises(LeasedError, match="elsewhere") as caught:
        lease.check_free(*opened, RUN, lease.me(MINE))

    assert caught.value.hint == f"git fabro resume --take-over {RUN}"
    assert lease.check_free(*opened, RUN, lease.me(MINE), take_over=True) == token


@pytest.mark.parametrize("holder", [None, DEAD, lease.me(MINE)], ids=["nobody", "dead", "mine"])
def test_a_lease_of_nobody_of_the_dead_and_of_oneself_is_free(
    opened: tuple[Refs, Objects], holder: lease.Holder | None
) -> None:
    token = give(opened, holder)

    assert lease.check_free(*opened, RUN, lease.me(MINE)) == token


def test_a_live_holder_here_is_not_taken_over(opened: tuple[Refs, Objects]) -> None:
    give(opened, lease.me(THEIRS))

    with pytest.raises(LeasedError):
        lease.check_free(*opened, RUN, lease.me(MINE), take_over=True)


def test_a_run_without_a_lease_is_no_run(opened: tuple[Refs, Objects]) -> None:
    with pytest.raises(NotFoundError, match=RUN):
        lease.read(*opened, RUN)


@pytest.mark.parametrize("message", ["hello\n", "lease: held\n\nnot json\n", "lease: held\n\n{}\n"])
def test_what_is_no_lease_is_refused(
    repo: GitRepo, opened: tuple[Refs, Objects], message: str
) -> None:
    tree = opened[1].tree_from({})
    oid = Oid(repo.git("commit-tree", tree, stdin=message.encode()))
    opened[0].move([Move(f"refs/fabro/lease/{RUN}", Oid("0" * 40), oid)], "lease")

    with pytest.raises(RecordError):
        lease.read(*opened, RUN)
