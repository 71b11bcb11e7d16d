"""``git fabro rewind --push``: what the remote follows, and what is only said."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo

REWOUND = "rewound <run> to @1\nrefs only: the run has no work tree\n"
NEXT = "hint: git fabro resume <run>; git fabro undo\n"


@pytest.fixture
def bare(repo: GitRepo, tmp_path: Path) -> GitRepo:
    """A bare repository that is repo's remote "origin"; main is there."""
    made = GitRepo(tmp_path / "bare.git")
    made.path.mkdir()
    made.git("init", "-q", "--bare", "-b", "main")
    made.git("config", "receive.advertisePushOptions", "true")
    repo.git("remote", "add", "origin", str(made.path))
    return made


@pytest.fixture
def run(shell: Shell, repo: GitRepo, bare: GitRepo) -> str:
    """A finished run of two nodes that the remote has."""
    repo.git("push", "-q", "origin", "main")
    assert shell("run", "-q", "two").status == 0
    made = shell.run_id()
    repo.git("push", "-q", "origin", f"fabro/run/{made}", f"fabro/meta/{made}")
    return made


def tips(repo: GitRepo) -> str:
    return repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/fabro")


def hook(bare: GitRepo, text: str) -> None:
    path = bare.path / "hooks/pre-receive"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_remote_follows_and_is_told_that_it_is_a_rewind(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    hook(bare, 'echo "$GIT_PUSH_OPTION_COUNT $GIT_PUSH_OPTION_0" >said')

    done = shell("rewind", run, "@1", "--push")

    assert done == Typed(0, REWOUND + "pushed to origin\n", NEXT)
    assert tips(bare) == tips(repo)
    assert (bare.path / "said").read_text() == "1 fabro.rewind\n"


@pytest.mark.parametrize("setting", [None, "hook", "never", "checkpoint and --no-push"])
def test_nothing_is_pushed_otherwise(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str, setting: str | None
) -> None:
    before = tips(bare)
    if setting:
        repo.git("config", "fabro.push", setting.split()[0])

    done = shell("rewind", run, "@1", *(["--no-push"] if setting and " " in setting else []))

    assert done == Typed(0, REWOUND, NEXT)
    assert tips(bare) == before != tips(repo)


def test_the_configuration_can_ask_for_it(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    repo.git("config", "fabro.push", "checkpoint")

    done = shell.exactly("rewind", run, "@1", "--json")

    refs = [
        {"ref": f"refs/heads/fabro/{side}/{run}", "what": "moved", "reason": None}
        for side in ("run", "meta")
    ]
    assert json.loads(done.out)["push"] == {"remote": "origin", "refs": refs, "why": None}
    assert tips(bare) == tips(repo)


def test_a_remote_that_has_an_earlier_part_follows_too(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    meta = repo.git("rev-parse", f"fabro/meta/{run}~2")
    bare.git("update-ref", f"refs/heads/fabro/meta/{run}", meta)
    bare.git("update-ref", "-d", f"refs/heads/fabro/run/{run}")

    done = shell("rewind", run, "@1", "--push")

    assert done.out == REWOUND + "pushed to origin\n"
    assert tips(bare) == tips(repo)


def test_what_was_never_here_is_not_taken_from_the_remote(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    ref = f"refs/heads/fabro/run/{run}"
    tree = bare.git("rev-parse", f"{ref}^{{tree}}")
    bare.git("update-ref", ref, bare.git("commit-tree", "-p", ref, "-m", "theirs", tree))
    before = tips(bare)

    done = shell("rewind", run, "@1", "--push")
    told = json.loads(shell.exactly("op", "log", "--json").out)["operations"]

    assert done == Typed(
        0,
        REWOUND,
        "warning: not pushed: the remote has what is not here: refs/heads/fabro/run/<run>\n"
        f"hint: git fabro sync\n{NEXT}",
    )
    assert (tips(bare), len(told)) == (before, 1)


def test_a_server_that_takes_no_rewind_leaves_it_standing_sy3(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    bare.git("config", "receive.denyNonFastForwards", "true")
    bare.git("config", "receive.advertisePushOptions", "false")
    before = tips(bare)

    done = shell("rewind", run, "@1", "--push")

    assert (done.status, done.out) == (0, REWOUND)
    assert done.err == (
        "warning: not pushed: non-fast-forward: refs/heads/fabro/meta/<run>\n"
        f"hint: git fabro fork <run>\n{NEXT}"
    )
    assert tips(bare) == before


def test_without_a_remote_or_an_answer_it_is_a_warning(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    repo.git("remote", "set-url", "origin", "/nonexistent/\x1b[31mred")
    unreached = shell("rewind", run, "@1", "--push", "--json")
    repo.git("remote", "remove", "origin")
    shell("undo")
    none = shell("rewind", run, "@1", "--push")

    assert (unreached.status, unreached.err) == (0, "")
    assert json.loads(unreached.out)["push"] == {
        "remote": "origin",
        "refs": [],
        "why": "git ls-remote failed: "
        "'/nonexistent/?[31mred' does not appear to be a git repository",
    }
    assert none == Typed(
        0,
        REWOUND,
        f"warning: not pushed: there is no remote here\nhint: git remote add origin URL\n{NEXT}",
    )


def test_one_cannot_want_both(shell: Shell, run: str) -> None:
    assert shell("rewind", run, "@1", "--push", "--no-push") == Typed(
        128, "", "fatal: either --push or --no-push\nhint: git fabro rewind -h\n"
    )


def test_what_the_server_said_is_told_harmlessly(
    shell: Shell, repo: GitRepo, bare: GitRepo, run: str
) -> None:
    hook(bare, "printf 'no \\033[1m going back [rewind]\\n' >&2; exit 1")

    done = shell("rewind", run, "@1", "--push")

    assert (done.status, done.out) == (0, REWOUND)
    assert done.err == (
        "warning: not pushed: pre-receive hook declined: refs/heads/fabro/run/<run> "
        "(no \\x1b[1m going back [rewind])\n"
        f"hint: git fabro fork <run>\n{NEXT}"
    )
