"""``git fabro install``: hooks in their place, beside those of others."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo

INSTALLED = "installed post-commit\ninstalled post-rewrite\ninstalled pre-push\n"
UNCHANGED = INSTALLED.replace("installed", "unchanged")
NAMES = ("post-commit", "post-rewrite", "pre-push")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Everything below a folder: bytes and mode, by name."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.lstat().st_mode))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_hooks_are_installed_once(shell: Shell, repo: GitRepo) -> None:
    first = shell("install")
    before = contents(repo.path / ".git/hooks")
    second = shell("install")

    assert (first, second) == (Typed(0, INSTALLED, ""), Typed(0, UNCHANGED, ""))
    assert contents(repo.path / ".git/hooks") == before
    assert all(os.access(repo.path / ".git/hooks" / name, os.X_OK) for name in NAMES)
    assert repo.git("config", "--get-all", "notes.displayRef") == "refs/notes/fabro"


def test_a_hook_that_lost_its_mode_or_its_python_is_mended_hk16(
    shell: Shell, repo: GitRepo
) -> None:
    shell("install")
    hook = repo.path / ".git/hooks/pre-push"
    wanted = hook.read_text()
    hook.write_text(wanted.replace(sys.executable, "/gone/python"))
    (repo.path / ".git/hooks/post-commit").chmod(0o644)

    assert shell("install").out == (
        "updated post-commit\nunchanged post-rewrite\nupdated pre-push\n"
    )
    assert hook.read_text() == wanted
    assert os.access(repo.path / ".git/hooks/post-commit", os.X_OK)


def test_the_report_is_a_document(shell: Shell, repo: GitRepo) -> None:
    mine = repo.path / ".git/hooks/pre-push"
    write(mine, "#!/bin/sh\n")

    folder = str(mine.parent)
    beside = f"{mine}.before-fabro"
    assert json.loads(shell("install", "--json").out) == {
        "folder": folder,
        "shared": False,
        "hooks": [
            {"name": "post-commit", "what": "installed", "beside": None},
            {"name": "post-rewrite", "what": "installed", "beside": None},
            {"name": "pre-push", "what": "installed", "beside": beside},
        ],
        "manager": None,
        "add": None,
    }


@pytest.mark.parametrize("setting", ["own/hooks", "/elsewhere"])
def test_they_go_where_git_looks_for_them_r35(
    shell: Shell, repo: GitRepo, tmp_path: Path, setting: str
) -> None:
    folder = repo.path / setting if setting[0] != "/" else tmp_path / "elsewhere"
    repo.git("config", "core.hooksPath", setting if setting[0] != "/" else str(folder))

    said = f"all repositories that use {folder} have these hooks now\n" if setting[0] == "/" else ""
    assert shell("install") == Typed(0, INSTALLED, said)
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)


def test_a_hook_that_came_back_as_it_was_is_kept_once(shell: Shell, repo: GitRepo) -> None:
    """As after a stash, where the folder of hooks is tracked."""
    hook = repo.path / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    shell("install")
    hook.write_text("#!/bin/sh\nexit 0\n")

    done = shell("install")

    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[2] == "installed pre-push; the hook that was there runs first"
    kept = hook.with_name("pre-push.before-fabro")
    assert kept.read_text() == "#!/bin/sh\nexit 0\n"


def test_another_hook_in_the_place_of_ours_stops_it_before_anything_is_written(
    shell: Shell, repo: GitRepo
) -> None:
    hook = repo.path / ".git/hooks/pre-push"
    hook.write_text("#!/bin/sh\nexit 0\n")
    shell("install")
    shell("uninstall")
    kept = hook.with_name("pre-push.before-fabro")
    kept.write_text("#!/bin/sh\nexit 1\n")
    before = {path.name: path.read_bytes() for path in hook.parent.iterdir()}

    assert shell("install") == Typed(
        128,
        "",
        f"fatal: a hook is kept there already: {kept}\n"
        f"hint: keep one of the two: mv or rm {kept}\n",
    )
    assert {path.name: path.read_bytes() for path in hook.parent.iterdir()} == before


def test_a_linked_work_tree_has_the_hooks_of_all_r35(shell: Shell, repo: GitRepo) -> None:
    repo.git("worktree", "add", "-q", "../linked")

    assert shell.at(repo.path.parent / "linked")("install") == Typed(0, INSTALLED, "")
    assert (repo.path / ".git/hooks/post-commit").exists()


_USERS = {
    "sh that exits": '#!/bin/sh\necho "mine $*" >>"{log}"\ncat >>"{log}"\nexit 3\n',
    "sh that execs": '#!/bin/sh -e\necho "mine $*" >>"{log}"\n'
    "exec sh -c 'cat >>\"{log}\"; exit 3'\n",
    "bash with a trap": "#!/usr/bin/env bash\ntrap 'exit 3' EXIT\n"
    'echo "mine $*" >>"{log}"\ncat >>"{log}"\n',
    "python": f"#!{sys.executable}\nimport sys\nwith open('{{log}}', 'a') as log:\n"
    "    log.write('mine ' + ' '.join(sys.argv[1:]) + '\\n' + sys.stdin.read())\nsys.exit(3)\n",
    "no first line": 'echo "mine $*" >>"{log}"\ncat >>"{log}"\nexit 3\n',
}


@pytest.mark.parametrize("name", ["pre-push", "post-rewrite"])
@pytest.mark.parametrize("user", list(_USERS))
def test_the_hook_that_was_there_has_its_input_arguments_and_status(
    shell: Shell, repo: GitRepo, tmp_path: Path, user: str, name: str
) -> None:
    log = tmp_path / "log"
    hook = repo.path / ".git/hooks" / name
    write(hook, _USERS[user].format(log=log))
    given = b"a b \\n  c\nlast line\n"

    def called() -> tuple[int, bytes]:
        log.unlink(missing_ok=True)
        # As git does: a script without a first line is one for sh.
        argv = ["sh", "-c", '"$0" "$@"', str(hook), "origin", "a url"]
        done = subprocess.run(argv, input=given, cwd=repo.path)
        return done.returncode, log.read_bytes()

    before = called()
    shell("install")

    assert called() == before == (3, b"mine origin a url\n" + given)


def test_a_script_finds_its_own_name_and_what_lies_beside_it(
    shell: Shell, repo: GitRepo, tmp_path: Path
) -> None:
    hooks = repo.path / ".git/hooks"
    write(hooks / "part", f'echo "${{0##*/}}" >"{tmp_path}/log"\n')
    write(hooks / "post-commit", '#!/bin/sh\n. "$(dirname "$0")/part"\n')

    shell("install")
    repo.commit()

    assert (tmp_path / "log").read_text() == "post-commit\n"


def test_a_hook_that_did_not_run_does_not_run_now(
    shell: Shell, repo: GitRepo, tmp_path: Path
) -> None:
    hook = repo.path / ".git/hooks/post-commit"
    write(hook, f'#!/bin/sh\necho ran >"{tmp_path}/log"\n')
    hook.chmod(0o644)

    shell("install")
    repo.commit()

    assert not (tmp_path / "log").exists()


HUSKY = """\
# .husky/post-commit
if command -v git-fabro >/dev/null; then git fabro hook post-commit "$@"; fi
# .husky/post-rewrite
if command -v git-fabro >/dev/null; then git fabro hook post-rewrite "$@"; fi
# .husky/pre-push
if command -v git-fabro >/dev/null; then git fabro hook pre-push "$@"; fi
"""
LEFTHOOK = """\
# lefthook-local.yml
post-commit:
  commands:
    git-fabro:
      run: if command -v git-fabro >/dev/null; then git fabro hook post-commit {0}; fi
post-rewrite:
  commands:
    git-fabro:
      run: if command -v git-fabro >/dev/null; then git fabro hook post-rewrite {0}; fi
      use_stdin: true
pre-push:
  commands:
    git-fabro:
      run: if command -v git-fabro >/dev/null; then git fabro hook pre-push {0}; fi
      use_stdin: true
"""


def test_husky_is_told_what_to_add_and_nothing_is_touched_hk4(shell: Shell, repo: GitRepo) -> None:
    write(repo.path / ".husky/_/post-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    repo.git("config", "core.hooksPath", ".husky/_")
    before = contents(repo.path)

    told = shell("install")

    owner = "husky owns post-commit, post-rewrite, pre-push here; add this to its files:\n"
    assert told == Typed(1, HUSKY, owner)
    assert contents(repo.path) == before


def test_husky_that_calls_us_is_all_there_has_to_be(shell: Shell, repo: GitRepo) -> None:
    repo.git("config", "core.hooksPath", ".husky/_")
    for name in NAMES:
        write(repo.path / ".husky" / name, f'git fabro hook {name} "$@"\n')

    assert shell("install") == Typed(0, "", "")
    assert repo.git("config", "--get-all", "notes.displayRef") == "refs/notes/fabro"


def test_a_comment_that_names_the_hook_is_no_call_of_it(shell: Shell, repo: GitRepo) -> None:
    repo.git("config", "core.hooksPath", ".husky/_")
    for name in NAMES:
        write(repo.path / ".husky" / name, f"true\n  # TODO: git fabro hook {name}\n")

    assert (told := shell("install")).status == 1
    assert told.out == HUSKY


@pytest.mark.parametrize("name", ["lefthook.yml", ".config/lefthook.yml"])
def test_lefthook_is_told_what_to_add_hk5(shell: Shell, repo: GitRepo, name: str) -> None:
    repo.write({name: "pre-commit:\n  commands: {}\n"})
    before = contents(repo.path)

    told = shell("install")

    assert (told.status, told.out) == (1, LEFTHOOK)
    assert contents(repo.path) == before


def test_pre_commit_keeps_its_own_file_and_the_others_are_installed_hk3(
    shell: Shell, repo: GitRepo
) -> None:
    theirs = repo.path / ".git/hooks/pre-push"
    write(theirs, "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n")
    before = theirs.read_bytes()

    told = shell("install")

    assert (told.status, theirs.read_bytes()) == (1, before)
    assert told.out == (
        "installed post-commit\ninstalled post-rewrite\n"
        "# .pre-commit-config.yaml, below repos:\n- repo: local\n  hooks:\n"
        "  - id: git-fabro-pre-push\n    name: git-fabro pre-push\n"
        "    entry: git fabro hook pre-push\n    language: system\n"
        "    always_run: true\n    pass_filenames: false\n    stages: [pre-push]\n"
    )


def test_a_server_hook_is_for_a_bare_repository(
    shell: Shell, repo: GitRepo, tmp_path: Path
) -> None:
    bare = GitRepo(tmp_path / "bare.git")
    bare.path.mkdir()
    bare.git("init", "-q", "--bare")

    refused = shell("install", "--server")
    done = shell.at(bare.path)("install", "--server")

    assert refused == Typed(
        128,
        "",
        f"fatal: not a bare repository: {repo.path}\n"
        "hint: git -C REPOSITORY fabro install --server\n",
    )
    assert done == Typed(0, "installed pre-receive\n", "")
    assert bare.git("config", "receive.advertisePushOptions") == "true"
    assert os.access(bare.path / "hooks/pre-receive", os.X_OK)


def test_a_hook_of_the_servers_runs_first(shell: Shell, repo: GitRepo, tmp_path: Path) -> None:
    bare = GitRepo(tmp_path / "bare.git")
    bare.path.mkdir()
    bare.git("init", "-q", "--bare")
    write(bare.path / "hooks/pre-receive", "#!/bin/sh\ncat >said\n")

    shell.at(bare.path)("install", "--server")
    repo.git("push", "-q", str(bare.path), "main")

    tip = repo.git("rev-parse", "main")
    assert (bare.path / "said").read_text() == f"{'0' * 40} {tip} refs/heads/main\n"
