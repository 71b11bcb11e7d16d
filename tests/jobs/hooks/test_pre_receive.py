"""What pre-receive reads: its lines, the push options, the objects of the push alone."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from git_fabro.checkpoint.verify import Update
from git_fabro.errors import RecordError, RequestError
from git_fabro.jobs.hooks import pre_receive
from tests.conftest import GitRepo

ONE, ZERO = "1" * 40, "0" * 40
RUN = "01JKXYZ0000000000000000000"


def test_a_line_is_old_new_and_ref() -> None:
    lines = io.BytesIO(
        f"{ZERO} {ONE} refs/heads/a\n{ONE} {ZERO} refs/heads/\udcff\n".encode(
            "utf-8", "surrogateescape"
        )
    )

    assert list(pre_receive.parse(lines)) == [
        Update(ref="refs/heads/a", old=None, new=ONE),  # type: ignore[arg-type]
        Update(ref="refs/heads/\udcff", old=ONE, new=None),  # type: ignore[arg-type]
    ]


@pytest.mark.parametrize("line", [b"\n", b"one two three\n", f"{ONE} {ONE}\n".encode()])
def test_a_line_of_another_form_is_an_error(line: bytes) -> None:
    with pytest.raises((RecordError, RequestError)):
        list(pre_receive.parse([line]))


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({}, ()),
        ({"GIT_PUSH_OPTION_COUNT": "0"}, ()),
        ({"GIT_PUSH_OPTION_COUNT": "x"}, ()),
        (
            {"GIT_PUSH_OPTION_COUNT": "2", "GIT_PUSH_OPTION_0": "a", "GIT_PUSH_OPTION_1": "b"},
            ("a", "b"),
        ),
    ],
)
def test_push_options_are_read_as_git_gives_them(
    environment: dict[str, str], options: tuple[str, ...]
) -> None:
    assert pre_receive.push_options(environment) == options


def test_many_findings_are_cut_and_counted(repo: GitRepo) -> None:
    made = repo.commit({"file": "text\n"})
    lines = "".join(f"{ZERO} {made} refs/fabro/strange/{number}\n" for number in range(60))

    done = subprocess.run(
        [sys.executable, "-I", "-m", "git_fabro.jobs.hooks.pre_receive"],
        cwd=repo.path,
        input=lines,
        capture_output=True,
        text=True,
    )

    rows = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(rows)) == (1, "", 52)
    assert rows[-2:] == ["fabro: and 10 more", "hint: git fabro fsck"]


def test_objects_are_seen_where_the_environment_says(repo: GitRepo) -> None:
    repo.commit({"file": "text\n"})
    quarantine = repo.path / "quarantine"
    quarantine.mkdir()
    environment = {
        **os.environ,
        "GIT_OBJECT_DIRECTORY": str(quarantine),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo.path / ".git" / "objects"),
    }
    made = subprocess.run(
        ["git", "commit-tree", "-m", f"fabro({RUN}): a (success)", "HEAD^{tree}"],
        cwd=repo.path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    def judged(given: dict[str, str]) -> str:
        return subprocess.run(
            [sys.executable, "-I", "-m", "git_fabro.jobs.hooks.pre_receive"],
            cwd=repo.path,
            env=given,
            input=f"{ZERO} {made} refs/heads/fabro/run/{RUN}\n",
            capture_output=True,
            text=True,
        ).stderr

    assert "the run has no metadata branch [link]" in judged(environment)
    assert f"object is missing: {made}" in judged({**os.environ})
