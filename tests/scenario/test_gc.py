"""A run beside a loop of gc that keeps nothing which no ref names: the repository stays whole."""

from __future__ import annotations

import subprocess

from tests.conftest import GitRepo
from tests.scenario.test_places import fabro, files, run_of

#: Two nodes that take turns; each visit of the first one changes one file and adds another.
WORKFLOW = r"""
digraph W {
    node [shape=parallelogram, max_visits=1000]
    s [shape=Mdiamond]; x [shape=Msquare]
    a [script="n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; seq $n >l$n; LAST"]
    b [script="echo $FABRO_VISIT >b"]
    s -> a
    a -> x [condition="context.command.output contains DONE"]
    a -> b
    b -> a
}
"""
VISITS, ROUNDS = 25, 3
_COLLECT = "while [ ! -e ../stop ]; do git gc -q --prune=now; sleep .05; done"


def test_a_run_beside_a_loop_of_gc_leaves_a_whole_repository_ob11(repo: GitRepo) -> None:
    last = f"test $n -ge {VISITS} && echo DONE; true"
    repo.commit({"w.fabro": WORKFLOW.replace("LAST", last), "README": "hello\n"})
    stop = repo.path.parent / "stop"
    expected = sorted(["README", "n", "b", "w.fabro", *(f"l{n + 1}" for n in range(VISITS))])

    for _ in range(ROUNDS):
        # What gc itself says of refs that move under it is nothing of ours.
        collecting = subprocess.Popen(
            ["sh", "-c", _COLLECT], cwd=repo.path, stderr=subprocess.DEVNULL
        )
        try:
            fabro(repo.path, "run", "-q", "w.fabro")
        finally:
            stop.touch()
            collecting.wait()
        stop.unlink()

        repo.fsck()
        tip = run_of(repo).splitlines()[-1]
        assert files(repo, tip) == expected
        # The first commit, and one for each visit: no checkpoint failed.
        assert repo.git("rev-list", "--count", tip) == str(1 + VISITS + VISITS - 1)
