"""What a run leaves in the object store, through the command line: a pack, and little beside it."""

from __future__ import annotations

from tests.conftest import GitRepo
from tests.scenario.test_places import fabro, run_of

WORKFLOW = """
digraph W {
    node [shape=parallelogram, max_visits=1000]
    s [shape=Mdiamond]; x [shape=Msquare]
    a [script="n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; echo $n; test $n -lt LAST"]
    b [script="echo $FABRO_VISIT >b"]
    s -> a
    a -> b [condition="outcome=success"]
    a -> x [condition="outcome=fail"]
    b -> a
}
"""
#: What may stay loose: the user's commit, and the state that was written after the last packing.
MOST = 10


def counts(repo: GitRepo) -> dict[str, int]:
    rows = (row.partition(": ") for row in repo.git("count-objects", "-v").splitlines())
    return {name: int(value) for name, _, value in rows}


def run(repo: GitRepo, *, last: int) -> None:
    repo.commit({"w.fabro": WORKFLOW.replace("LAST", str(last))})
    fabro(repo.path, "run", "-q", "w.fabro")


def test_a_run_that_ends_leaves_a_pack_and_hardly_a_loose_object_p14(repo: GitRepo) -> None:

    run(repo, last=15)

    found = counts(repo)
    assert found["packs"] == 1
    assert found["in-pack"] > 15 * 2 * 6
    assert found["count"] <= MOST
    repo.git("cat-file", "-e", f"{run_of(repo).replace('/run/', '/meta/')}:checkpoint.json")
    repo.fsck()


def test_a_run_that_has_ended_is_at_rest(repo: GitRepo) -> None:
    run(repo, last=15)

    # Without a wait: nothing goes on that fsck could meet.
    repo.fsck()
    assert counts(repo)["packs"] == 1


def test_a_short_run_makes_no_pack(repo: GitRepo) -> None:

    run(repo, last=3)

    assert counts(repo)["packs"] == 0
    repo.fsck()


def test_a_packing_that_fails_fails_no_run(repo: GitRepo) -> None:
    repo.git("config", "pack.window", "none")
    repo.commit({"w.fabro": WORKFLOW.replace("LAST", "15")})

    done = fabro(repo.path, "run", "w.fabro")

    assert "the run's objects stay loose: git pack-objects failed: bad numeric" in done.stderr
    repo.fsck()
