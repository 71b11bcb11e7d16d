"""``git fabro compare``: where two runs part, and what each came to."""

from __future__ import annotations

import json

from tests import fabro
from tests.cli.typed import Shell
from tests.conftest import GitRepo
from tests.fabro import Visit

OTHER = "01KKSDEQC3GZ6NB715GFVPPRG6"


def test_a_fork_parts_from_its_origin(shell: Shell) -> None:
    shell("run", "two")
    origin = shell.run_id()
    shell("fork", origin, "@1")
    fork = shell.run_id()

    found = json.loads(shell.exactly("compare", origin, fork, "--json").out)
    typed = shell.exactly("compare", origin, fork)

    assert (found["runs"], found["shared"]) == ([origin, fork], 1)
    assert [(one["node"], one["right"], one["same"]) for one in found["rows"]] == [
        ("build", None, False)
    ]
    assert typed.out.startswith(
        f"left   {origin}\nright  {fork}\nthey part after @1 plan@1\n\n   NODE "
    )


def test_visits_stand_side_by_side_whatever_the_words(shell: Shell, repo: GitRepo) -> None:
    fabro.write(
        repo,
        [Visit("plan"), Visit("check", "fail"), Visit("build", changes=True)],
        generation="G1",
    )
    fabro.write(
        repo,
        [Visit("plan", "succeeded"), Visit("lint", "succeeded"), Visit("build", "failed")],
        generation="G4c",
        run=OTHER,
    )

    found = json.loads(shell.exactly("compare", fabro.RUN, OTHER, "--json").out)

    assert found["shared"] == 0
    assert [
        (
            one["node"],
            one["left"] and one["left"]["status"],
            one["right"] and one["right"]["status"],
            one["same"],
        )
        for one in found["rows"]
    ] == [
        ("plan", "success", "succeeded", True),
        ("check", "fail", None, False),
        ("lint", None, "succeeded", False),
        ("build", "success", "failed", False),
    ]


def test_a_common_root_is_no_kinship(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, [Visit("plan", link=fabro.NO_COMMIT)])
    fabro.write(repo, [Visit("plan", link=fabro.NO_COMMIT, status="fail")], run=OTHER)

    out = shell("compare", fabro.RUN, OTHER).out

    assert "they share no checkpoint\n" in out
    assert "*  plan@1  fail" not in out
    assert "*  plan@1  success" in out
