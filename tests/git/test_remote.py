"""Remotes by the git program: what moves there and here, what is refused, and that nobody asks."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, RunId
from git_fabro.errors import FabroError, GitError
from git_fabro.git import remote
from git_fabro.git.discover import open_repository
from git_fabro.git.remote import Pushed, RefPushed
from tests.conftest import GitRepo

RUN = RunId("01JKXYZ3F9QW0000000000000A")
OTHER = RunId("01JKXYZ3F9QW0000000000000B")
RUN_REF, META_REF = layout.run_ref(RUN), layout.meta_ref(RUN)
ZERO = Oid("0" * 40)


@pytest.fixture
def bare(repo: GitRepo, tmp_path: Path) -> GitRepo:
    """A bare repository that is repo's remote "origin"; main is there."""
    made = GitRepo(tmp_path / "bare.git")
    made.path.mkdir()
    made.git("init", "-q", "--bare", "-b", "main")
    repo.commit({"a": "1\n"})
    repo.git("remote", "add", "origin", str(made.path))
    repo.git("push", "-q", "origin", "main")
    return made


def commit(repo: GitRepo, text: str, *parents: str) -> Oid:
    """A commit on no ref."""
    tree = repo.git("mktree")
    named = [part for parent in parents for part in ("-p", parent)]
    return Oid(repo.git("commit-tree", *named, "-m", text, tree))


def push(repo: GitRepo, *moves: Move, options: tuple[str, ...] = ()) -> Pushed:
    return remote.push(open_repository(repo.path), "origin", moves, options=options)


def refs(repo: GitRepo) -> dict[str, str]:
    listed = repo.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return {name: oid for name, _, oid in (line.partition(" ") for line in listed)}


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_refs_are_made_moved_and_deleted_all_at_once(repo: GitRepo, bare: GitRepo) -> None:
    one = commit(repo, "one")
    two = commit(repo, "two", one)

    made = push(repo, Move(RUN_REF, ZERO, one), Move(META_REF, ZERO, one))
    moved = push(repo, Move(RUN_REF, one, two), Move(META_REF, one, one))
    deleted = push(repo, Move(META_REF, one, ZERO))

    assert [one.what for one in made.refs] == ["made", "made"]
    assert [one.what for one in moved.refs] == ["moved", "same"]
    assert deleted == Pushed(refs=(RefPushed(META_REF, "deleted"),), said=deleted.said)
    assert refs(bare).get(RUN_REF) == two
    assert META_REF not in refs(bare)


def test_a_lease_lets_a_ref_go_back_to_where_it_was_looked_at(repo: GitRepo, bare: GitRepo) -> None:
    one = commit(repo, "one")
    two = commit(repo, "two", one)
    push(repo, Move(RUN_REF, ZERO, two))

    back = push(repo, Move(RUN_REF, two, one))

    assert (back.is_done, refs(bare)[RUN_REF]) == (True, one)


def test_a_stale_lease_is_refused_and_nothing_moves_sy1(repo: GitRepo, bare: GitRepo) -> None:
    one, theirs = commit(repo, "one"), commit(repo, "theirs")
    two = commit(repo, "two", one)
    push(repo, Move(RUN_REF, ZERO, theirs), Move(META_REF, ZERO, one))

    refused = push(repo, Move(META_REF, one, two), Move(RUN_REF, one, two))

    assert not refused.is_done
    assert refused.why == f"stale info: {RUN_REF}"
    assert (refs(bare)[RUN_REF], refs(bare)[META_REF]) == (theirs, one)


def test_of_two_who_make_a_ref_the_second_is_refused_sy2(repo: GitRepo, bare: GitRepo) -> None:
    one, two = commit(repo, "one"), commit(repo, "two")

    first = push(repo, Move(RUN_REF, ZERO, one))
    second = push(repo, Move(RUN_REF, ZERO, two))

    assert (first.is_done, second.is_done, refs(bare)[RUN_REF]) == (True, False, one)


def test_no_push_says_plus_or_force_sy1(
    repo: GitRepo, bare: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = repo.git("--exec-path")
    folder, said = tmp_path / "bin", tmp_path / "said"
    folder.mkdir()
    script(folder / "git", f'printf "%s\\n" "$@" >>"{said}"\nexec "{real}/git" "$@"\n')
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    push(repo, Move(RUN_REF, ZERO, commit(repo, "one")), Move(META_REF, ZERO, commit(repo, "two")))

    words = said.read_text().splitlines()
    assert "push" in words
    assert f"--force-with-lease={RUN_REF}:" in words
    assert [word for word in words if word in ("-f", "--force") or word.startswith("+")] == []
    assert refs(bare)[RUN_REF]


def test_no_hook_of_the_users_runs_hk12(repo: GitRepo, bare: GitRepo) -> None:
    script(repo.path / ".git/hooks/pre-push", "exit 1\n")

    assert push(repo, Move(RUN_REF, ZERO, commit(repo, "one"))).is_done
    assert RUN_REF in refs(bare)


def test_what_the_configuration_adds_to_pushes_is_not_pushed(repo: GitRepo, bare: GitRepo) -> None:
    repo.git("tag", "-a", "-m", "t", "v1", "main")
    repo.git("config", "push.followTags", "true")
    repo.git("config", "push.pushOption", "ci.skip")
    repo.git("config", "push.gpgSign", "true")
    repo.git("config", "remote.origin.mirror", "true")

    done = push(repo, Move(RUN_REF, ZERO, commit(repo, "one", repo.git("rev-parse", "main"))))

    assert done.is_done
    assert sorted(refs(bare)) == [RUN_REF, "refs/heads/main"]


def test_a_hook_of_the_server_refuses_and_its_words_are_harmless_sy4(
    repo: GitRepo, bare: GitRepo
) -> None:
    script(bare.path / "hooks/pre-receive", "printf '\\033[31mno entry\\n' >&2; exit 1\n")

    refused = push(repo, Move(RUN_REF, ZERO, commit(repo, "one")))

    assert refused.why == f"pre-receive hook declined: {RUN_REF}"
    assert "remote: \\x1b[31mno entry" in refused.said
    assert RUN_REF not in refs(bare)


def test_push_options_reach_a_server_that_takes_them(repo: GitRepo, bare: GitRepo) -> None:
    bare.git("config", "receive.advertisePushOptions", "true")
    script(bare.path / "hooks/pre-receive", 'echo "$GIT_PUSH_OPTION_0" >option\n')

    push(repo, Move(RUN_REF, ZERO, commit(repo, "one")), options=("fabro.rewind",))

    assert (bare.path / "option").read_text() == "fabro.rewind\n"


def test_a_server_that_takes_no_options_gets_none_sy9(repo: GitRepo, bare: GitRepo) -> None:
    bare.git("config", "receive.advertisePushOptions", "false")

    done = push(repo, Move(RUN_REF, ZERO, commit(repo, "one")), options=("fabro.rewind",))

    assert (done.is_done, RUN_REF in refs(bare)) == (True, True)


def test_a_server_without_atomic_pushes_gets_one_ref_after_the_other_sy7(
    repo: GitRepo, bare: GitRepo
) -> None:
    bare.git("config", "receive.advertiseAtomic", "false")
    one, two = commit(repo, "one"), commit(repo, "two")

    done = push(repo, Move(RUN_REF, ZERO, one), Move(META_REF, ZERO, two))
    refused = push(repo, Move(RUN_REF, two, two), Move(META_REF, two, one))

    assert (done.is_done, done.is_atomic) == (True, False)
    assert (refused.is_done, refused.refs[0].reason) == (False, "stale info")
    assert (refs(bare)[RUN_REF], refs(bare)[META_REF]) == (one, two)


def test_a_fetch_moves_tracking_refs_only(repo: GitRepo, bare: GitRepo, tmp_path: Path) -> None:
    one = commit(repo, "one")
    hidden = layout.meta_ref(RUN, "hidden")
    snapshot = f"{layout.snapshot_prefix(RUN)}01JKXYZ3F9QW0000000000000C"
    names = [RUN_REF, META_REF, hidden, layout.NOTES_REF, layout.PRUNED_REF, snapshot]
    push(repo, *(Move(name, ZERO, one) for name in [*names, layout.run_ref(OTHER)]))
    clone = GitRepo(tmp_path / "clone")
    repo.git("clone", "-q", str(bare.path), str(clone.path))
    clone.git("config", "--add", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
    before = clone.git("config", "--list", "--local")
    clone.git("update-ref", "-d", f"refs/remotes/origin/fabro/run/{RUN}")
    clone.git("update-ref", "-d", f"refs/remotes/origin/fabro/run/{OTHER}")
    local = {name: oid for name, oid in refs(clone).items() if name.startswith("refs/heads")}

    remote.fetch(open_repository(clone.path), "origin", run=RUN)

    found = refs(clone)
    assert [found.get(layout.tracking_ref("origin", name)) for name in names] == [one] * len(names)
    assert layout.tracking_ref("origin", layout.run_ref(OTHER)) not in found
    assert {name: oid for name, oid in found.items() if name.startswith("refs/heads")} == local
    assert not {layout.NOTES_REF, hidden, snapshot} & set(found)
    assert clone.git("config", "--list", "--local") == before
    assert not (clone.path / ".git/FETCH_HEAD").exists()


def test_a_fetch_follows_what_the_remote_took_back(repo: GitRepo, bare: GitRepo) -> None:
    one = commit(repo, "one")
    two = commit(repo, "two", one)
    push(repo, Move(RUN_REF, ZERO, two), Move(layout.NOTES_REF, ZERO, two))
    found = open_repository(repo.path)
    remote.fetch(found, "origin")
    bare.git("update-ref", RUN_REF, one)
    bare.git("update-ref", "-d", layout.NOTES_REF)

    remote.fetch(found, "origin")

    assert refs(repo)[f"refs/remotes/origin/fabro/run/{RUN}"] == one
    assert layout.tracking_ref("origin", layout.NOTES_REF) not in refs(repo)
    assert "refs/remotes/origin/main" in refs(repo)


def test_what_a_remote_has_is_told_by_whole_names(repo: GitRepo, bare: GitRepo) -> None:
    one = commit(repo, "one")
    push(repo, Move(RUN_REF, ZERO, one), Move(f"refs/heads/x/{META_REF}", ZERO, one))

    found = remote.advertised(open_repository(repo.path), "origin", META_REF, RUN_REF)

    assert found == {RUN_REF: one}


@pytest.mark.parametrize("setting", ["GIT_SSH_COMMAND", "core.sshCommand", "askpass"])
def test_a_remote_that_does_not_answer_is_given_up_with_all_that_was_started(
    repo: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    mark = tmp_path / "pid"
    slow = f'sh -c "echo \\$\\$ >{mark}; sleep 999" x'
    if setting == "GIT_SSH_COMMAND":
        monkeypatch.setenv(setting, slow)
    elif setting == "core.sshCommand":
        repo.git("config", setting, slow)
    else:
        folder = tmp_path / "bin"
        folder.mkdir()
        script(folder / "ssh", f"echo $$ >{mark}; exec sleep 999\n")
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    repo.git("remote", "add", "origin", "ssh://me:secret@example.invalid/x")
    commit(repo, "one")

    with pytest.raises(GitError, match=r"no answer within 0\.5 s: origin"):
        remote.advertised(open_repository(repo.path), "origin", timeout_s=0.5)

    pid = int(mark.read_text())
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}/stat").exists()


def test_our_own_ssh_asks_nobody(
    repo: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script(
        folder / "ssh",
        'test "$1" = -G && exit 0\n'
        "(: </dev/tty) 2>/dev/null || echo no terminal >&2\n"
        'echo "fatal: $* $GIT_TERMINAL_PROMPT $SSH_ASKPASS" >&2; exit 1\n',
    )
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    repo.git("remote", "add", "origin", "ssh://me@example.invalid/x")

    with pytest.raises(GitError) as failed:
        remote.fetch(open_repository(repo.path), "origin")

    assert "-o BatchMode=yes" in failed.value.stderr
    assert " 0 true\n" in failed.value.stderr
    assert "no terminal\n" in failed.value.stderr


def test_an_error_tells_no_password(repo: GitRepo) -> None:
    repo.git("remote", "add", "origin", "nope://me:secret@example.invalid/x")

    with pytest.raises(GitError) as failed:
        remote.fetch(open_repository(repo.path), "origin")

    assert "secret" not in f"{failed.value.message} {failed.value.stderr} {failed.value.hint}"


def chosen(repo: GitRepo, named: str | None = None) -> str:
    try:
        return remote.choose(open_repository(repo.path), named)
    except FabroError as exc:
        return f"{exc.message}; {exc.hint}"


def test_the_remote_is_the_named_the_set_the_branchs_origin_or_the_only_one(repo: GitRepo) -> None:
    repo.commit()
    none = chosen(repo)
    repo.git("remote", "add", "only", "x")
    only = chosen(repo)
    repo.git("remote", "add", "team/fork", "x")
    several = chosen(repo)
    repo.git("remote", "add", "origin", "x")
    origin = chosen(repo)
    repo.git("config", "branch.main.remote", "only")
    branchs = chosen(repo)
    repo.git("config", "fabro.remote", "team/fork")
    kept = chosen(repo)

    assert none == "there is no remote here; git remote add origin URL"
    assert only == "only"
    assert several == "which remote is meant: only, team/fork; git config fabro.remote NAME"
    assert (origin, branchs, kept, chosen(repo, "only")) == (
        "origin",
        "only",
        "team/fork",
        "only",
    )
    assert chosen(repo, "no\x1bne") == "no such remote: no\\x1bne; git remote -v"
