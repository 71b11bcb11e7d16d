"""``git fabro diff``: files and context, of a run, a checkpoint, between two; git is the oracle."""

from __future__ import annotations

import json

import pytest

from tests import fabro
from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo
from tests.fabro import Visit

BOTH = pytest.mark.parametrize("git", [True, False], ids=["git", "no git"])
MANY = """digraph { start [shape=Mdiamond]; exit [shape=Msquare]
one [script="printf 'a\\nb\\nc' > f; mkdir d; echo x > d/new; printf 'a\\0b' > bin; ln -s f link"]
two [script="printf 'a\\nB\\nc\\n' > f; chmod +x d/new; rm bin link; echo y > 'a b'"]
start -> one -> two -> exit }
"""


def _blind(shell: Shell, *, git: bool) -> None:
    """Takes git off the PATH, unless the test runs with it."""
    if not git:
        shell.patch.setenv("PATH", "/nonexistent")


@pytest.fixture
def run(shell: Shell, repo: GitRepo) -> str:
    """A run of two nodes that change files in every way."""
    repo.commit({"many.fabro": MANY})
    assert shell("run", "many.fabro").status == 0
    return shell.run_id()


@BOTH
@pytest.mark.parametrize(
    ("targets", "old", "new"),
    [
        ((), "main", "fabro/run/{}"),
        (("@1",), "main", "fabro/run/{}~1"),
        (("two",), "fabro/run/{}~1", "fabro/run/{}"),
        (("@2", "@1"), "fabro/run/{}", "fabro/run/{}~1"),
    ],
    ids=["run", "first", "last", "back"],
)
def test_a_patch_is_what_git_prints(
    shell: Shell,
    repo: GitRepo,
    run: str,
    git: bool,
    targets: tuple[str, ...],
    old: str,
    new: str,
) -> None:
    sides = (old.format(run), new.format(run))
    printed = repo.git("diff", "--full-index", "--no-renames", *sides)
    names = repo.git("diff", "--no-renames", "--name-only", *sides)
    _blind(shell, git=git)

    assert shell.exactly("diff", run, *targets) == Typed(0, f"{printed}\n", "")
    assert shell.exactly("diff", run, *targets, "--name-only") == Typed(0, f"{names}\n", "")


@BOTH
def test_lines_are_counted(shell: Shell, run: str, git: bool) -> None:
    _blind(shell, git=git)

    assert shell.exactly("diff", run, "@2", "--stat").out == (
        " a b   | 1 +\n"
        " bin   | Bin\n"
        " d/new | 0 \n"
        " f     | 4 ++--\n"
        " link  | 1 -\n"
        " 5 files changed, 3 insertions(+), 3 deletions(-)\n"
    )
    found = json.loads(shell.exactly("diff", run, "@2", "--json").out)
    assert found["files"] == [
        {"path": "a b", "status": "A", "added": 1, "deleted": 0},
        {"path": "bin", "status": "D", "added": None, "deleted": None},
        {"path": "d/new", "status": "M", "added": 0, "deleted": 0},
        {"path": "f", "status": "M", "added": 2, "deleted": 2},
        {"path": "link", "status": "D", "added": 0, "deleted": 1},
    ]


def test_paths_choose(shell: Shell, repo: GitRepo, run: str) -> None:
    def names(*argv: str, at: Shell = shell) -> list[str]:
        return at.exactly("diff", "--name-only", run, *argv).out.splitlines()

    assert names("@1", "--", "d") == ["d/new"]
    assert names("@1", "--", "f", "bin") == ["bin", "f"]
    assert names("@1", "--", "nope") == []
    assert names("@1", "--", "../d", at=shell.at(repo.path / "fabro")) == ["d/new"]
    assert shell.exactly("diff", run, "@1", "--name-only", "-z").out == "bin\0d/new\0f\0link\0"


def test_the_context_is_what_came_went_and_changed(shell: Shell) -> None:
    shell("run", "two")

    found = json.loads(shell("diff", "@2", "--json").out)["context"]
    typed = shell("diff", "@2", "--context")

    assert found["changed"]["command.output"] == {"old": "planned\n", "new": "built\n"}
    assert found["changed"]["current_node"] == {"old": "plan", "new": "build"}
    assert "- current_node: plan\n+ current_node: build\n" in typed.out
    whole = json.loads(shell("diff", "--json").out)["context"]
    assert whole["removed"] == whole["changed"] == {}
    assert whole["added"]["graph.goal"] == "ship it"


@pytest.mark.parametrize("generation", fabro.GENERATIONS)
def test_runs_of_fabros_are_compared_with_what_was_before(
    shell: Shell, repo: GitRepo, generation: str
) -> None:
    visits = [Visit("plan", changes=True), Visit("build", changes=True)]
    fabro.write(repo, visits, generation=generation)

    found = json.loads(shell("diff", "@2", "--json").out)

    assert [one["path"] for one in found["files"]] == ["work/build.txt"]
    assert found["context"]["changed"] == {"current_node": {"old": "plan", "new": "build"}}
    assert found["context"]["added"] == {"response.build": "did build"}
    assert found["context"]["removed"] == {"response.plan": "did plan"}
    assert len(json.loads(shell("diff", "--json").out)["files"]) == 2


def test_what_is_not_there_is_refused(shell: Shell, repo: GitRepo) -> None:
    fabro.write(repo, [Visit("a"), Visit("b", link=fabro.NO_COMMIT)])

    assert shell("diff", fabro.RUN, "@2") == Typed(
        128,
        "",
        "fatal: no run commit for @2: <run>\nhint: git fabro diff --context <run> @2\n",
    )
    assert "+ response.b: did b\n" in shell("diff", fabro.RUN, "@2", "--context").out
    assert shell("diff", fabro.RUN, "@1", "@2", "@3").status == 128
    assert shell("diff", fabro.RUN, "-z") == Typed(
        128, "", "fatal: -z is for a list of names\nhint: git fabro diff --name-only -z\n"
    )


def test_what_a_file_holds_prints_harmlessly(shell: Shell, repo: GitRepo) -> None:
    script = "printf 'a\\\\033[2Jb\\\\342\\\\200\\\\256c\\\\rd\\\\n' > f"
    repo.commit(
        {
            "odd.fabro": "digraph { start [shape=Mdiamond]; exit [shape=Msquare]\n"
            f'odd [script="{script}"]; start -> odd -> exit }}\n'
        }
    )
    shell("run", "odd.fabro")

    out = shell("diff", "--color").out

    assert "+a\\x1b[2Jb\\u202ec\\rd" in out
    assert not {"\x1b[2", "\u202e", "\r"} & {out[at : at + 3] for at in range(len(out))}
