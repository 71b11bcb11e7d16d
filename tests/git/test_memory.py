from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Identity, Move, Oid
from git_fabro.git.discover import open_repository
from git_fabro.git.memory import Held, Memory, is_gc_at_work, wait_for_gc
from git_fabro.git.notes import write_notes
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.refs import Refs
from tests.conftest import WHEN, GitRepo


@dataclass(slots=True)
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def objects(repo: GitRepo, clock: Clock) -> Objects:
    return Objects(repo.path / ".git", "sha1", clock=clock)


def file_of(repo: GitRepo, oid: str) -> Path:
    return repo.path / ".git/objects" / oid[:2] / oid[2:]


def take(repo: GitRepo, oid: str) -> None:
    file_of(repo, oid).unlink()


def test_what_was_taken_before_the_first_look_is_written_again(
    repo: GitRepo, objects: Objects
) -> None:
    gone, kept = objects.write_blob(b"gone"), objects.write_blob(b"kept")
    take(repo, gone)

    assert objects.look_again() == 1

    assert repo.git("cat-file", "-p", gone) == "gone"
    assert repo.git("cat-file", "-p", kept) == "kept"
    assert objects.look_again() == 0


def test_what_existed_already_is_remembered_too(repo: GitRepo, objects: Objects) -> None:
    oid = repo.git("hash-object", "-w", "--stdin", stdin=b"content")
    objects.write_blob(b"content")
    take(repo, oid)

    assert objects.look_again() == 1


def test_what_was_taken_between_two_looks_is_written_again(
    repo: GitRepo, objects: Objects, clock: Clock
) -> None:
    oid = objects.write_blob(b"content")
    objects.look_again()
    take(repo, oid)
    clock.now += 2

    assert objects.look_again() == 1

    assert file_of(repo, oid).exists()


def test_an_object_is_forgotten_once_seen_twice_with_a_pause(
    repo: GitRepo, objects: Objects, clock: Clock
) -> None:
    oid = objects.write_blob(b"content")
    objects.look_again()
    clock.now += 1.9
    objects.look_again()
    clock.now += 0.1
    objects.look_again()
    take(repo, oid)

    assert objects.look_again(final=True) == 0


def test_an_object_that_is_asked_for_again_is_new_again(
    repo: GitRepo, objects: Objects, clock: Clock
) -> None:
    oid = objects.write_blob(b"content")
    objects.look_again()
    objects.write_blob(b"content")
    clock.now += 2
    objects.look_again()
    take(repo, oid)

    assert objects.look_again(final=True) == 1


def test_while_a_gc_runs_nothing_is_forgotten_and_all_is_looked_at(
    repo: GitRepo, objects: Objects, clock: Clock
) -> None:
    oid = objects.write_blob(b"content")
    pid_file = repo.path / ".git/gc.pid"
    pid_file.write_text(f"{os.getpid()} {socket.gethostname()}")
    objects.look_again()
    clock.now += 2
    objects.look_again()
    clock.now += 1
    just_seen = objects.write_blob(b"more")
    objects.look_again()
    take(repo, oid)
    assert objects.look_again() == 1

    take(repo, just_seen)

    assert objects.look_again() == 1


def test_one_that_is_gone_has_all_others_looked_at(repo: GitRepo, objects: Objects) -> None:
    first = objects.write_blob(b"first")
    objects.look_again()
    second = objects.write_blob(b"second")
    take(repo, first)
    take(repo, second)

    assert objects.look_again() == 2


def test_only_what_is_due_is_looked_at(repo: GitRepo, objects: Objects, clock: Clock) -> None:
    old = objects.write_blob(b"old")
    objects.look_again()
    clock.now += 1
    seen = objects.write_blob(b"seen a second ago")
    objects.look_again()
    clock.now += 1
    new = objects.write_blob(b"new")
    for oid in (old, new):
        take(repo, oid)

    assert objects.look_again() == 2

    take(repo, seen)
    assert objects.look_again() == 0
    clock.now += 1
    assert objects.look_again() == 1
    assert file_of(repo, seen).exists()


def test_bringing_back_forgets_nothing(repo: GitRepo, objects: Objects, clock: Clock) -> None:
    oid = objects.write_blob(b"content")
    for _ in range(3):
        clock.now += 2
        objects.bring_back()
    take(repo, oid)

    assert objects.bring_back() == 1


def test_only_those_since_a_turn_are_brought_back(repo: GitRepo, objects: Objects) -> None:
    before = objects.write_blob(b"before")
    turn = objects.turn
    after = objects.write_blob(b"after")
    take(repo, before)
    take(repo, after)

    assert objects.bring_back(since=turn) == 1

    assert file_of(repo, after).exists()
    assert not file_of(repo, before).exists()


def test_what_is_asked_for_and_remembered_is_there_again(repo: GitRepo, objects: Objects) -> None:
    oid, other = objects.write_blob(b"content"), objects.write_blob(b"other")
    take(repo, oid)
    take(repo, other)

    assert objects.read_blob(oid) == b"content"
    assert objects.exists(other)

    assert repo.git("cat-file", "-p", other) == "other"


def test_an_object_in_a_pack_that_a_repack_removed_is_not_present(
    repo: GitRepo, objects: Objects
) -> None:
    repo.commit({"a": "1"})
    blob = Oid(repo.git("rev-parse", "HEAD:a"))
    repo.git("gc", "-q", "--prune=now")
    objects.write_blob(b"1")
    assert not file_of(repo, blob).exists()
    for pack in (repo.path / ".git/objects/pack").iterdir():
        pack.unlink()

    assert objects.look_again() == 1

    assert repo.git("cat-file", "-p", blob) == "1"


@pytest.mark.parametrize("packed", [False, True])
def test_a_tree_of_gits_is_held_as_our_own(repo: GitRepo, objects: Objects, packed: bool) -> None:
    repo.commit({"a": "1", "same/b": "2"})
    before = Oid(repo.git("rev-parse", "HEAD^{tree}"))
    repo.commit({"a": "1", "new/c": "3"})
    names = ("HEAD^{tree}", "HEAD:new/c", "HEAD:new")
    tree, blob, folder = repo.git("rev-parse", *names).splitlines()
    if packed:
        repo.git("gc", "-q")

    assert objects.hold(Oid(tree), before) is None

    shutil.rmtree(repo.path / ".git/objects/pack")
    for oid in () if packed else (tree, blob, folder):
        take(repo, oid)
    assert objects.look_again() == 3
    assert repo.git("cat-file", "-p", blob) == "3"
    assert repo.git("ls-tree", "--name-only", tree) == "a\nnew\nsame"


def test_what_is_held_again_is_new_again(repo: GitRepo, objects: Objects, clock: Clock) -> None:
    repo.commit({"a": "1"})
    tree = Oid(repo.git("rev-parse", "HEAD^{tree}"))
    objects.hold(tree)
    objects.look_again()
    take(repo, tree)
    objects.hold(tree)
    clock.now += 2
    objects.look_again()
    take(repo, tree)

    assert objects.look_again(final=True) == 1


def test_of_a_tree_that_is_not_whole_an_object_that_is_gone_is_named(
    repo: GitRepo, objects: Objects
) -> None:
    repo.commit({"dir/a": "1"})
    tree, blob = repo.git("rev-parse", "HEAD^{tree}", "HEAD:dir/a").splitlines()
    take(repo, blob)

    assert objects.hold(Oid(tree)) == blob


def test_the_oldest_are_dropped_at_the_limit() -> None:
    memory = Memory(limit_bytes=10)
    names = [Oid(str(number) * 40) for number in range(4)]

    for name in names[:3]:
        memory.keep(name, Held("blob", b"1234"))

    assert [oid for oid, _ in memory.every()] == names[1:3]
    memory.keep(names[2], Held("blob", b"1234"))
    memory.keep(names[2], Held("blob", b"1234"))
    assert [oid for oid, _ in memory.every()] == names[1:3]
    memory.keep(names[3], Held("blob", b"more than ten"))
    assert memory.every() == []


@pytest.mark.parametrize(
    ("text", "age_s", "expected"),
    [
        pytest.param("{pid} {host}", 0, True, id="alive"),
        pytest.param("{dead} {host}", 0, False, id="dead"),
        pytest.param("{dead} elsewhere", 0, True, id="another machine"),
        pytest.param("{dead} elsewhere", 13 * 3600, False, id="left behind"),
        pytest.param("", 0, True, id="unreadable"),
    ],
)
def test_a_gc_is_known_by_its_file(tmp_path: Path, text: str, age_s: int, expected: bool) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    file = tmp_path / "gc.pid"
    file.write_text(text.format(pid=os.getpid(), dead=ended.pid, host=socket.gethostname()))
    os.utime(file, (file.stat().st_mtime - age_s,) * 2)

    assert is_gc_at_work(tmp_path) is expected


def test_the_wait_for_a_gc_ends_with_it_or_with_patience(tmp_path: Path) -> None:
    wait_for_gc(tmp_path, 60)
    (tmp_path / "gc.pid").write_text("1 elsewhere")
    wait_for_gc(tmp_path, 0.05)

    timer = threading.Timer(0.1, (tmp_path / "gc.pid").unlink)
    timer.start()
    wait_for_gc(tmp_path, 60)

    timer.join()
    assert not is_gc_at_work(tmp_path)


def test_a_commit_that_was_taken_before_its_ref_moved_is_written_again(repo: GitRepo) -> None:
    found = open_repository(repo.path)
    base = Oid(repo.commit({"a": "1"}))
    with open_objects(found) as objects, Refs(found, objects) as refs:
        made = objects.write_commit(objects.read_commit(base)._replace(message="more\n"))
        take(repo, made)

        refs.move([Move("refs/heads/other", Oid("0" * 40), made)], "fabro")

    assert repo.git("log", "-1", "--format=%s", "other") == "more"
    repo.fsck()


class Trusting(Objects):
    """Objects that take what was there a moment ago for there."""

    def exists(self, oid: Oid) -> bool:
        return True


def test_a_commit_that_was_taken_under_git_is_written_again(repo: GitRepo) -> None:
    found = open_repository(repo.path)
    base = Oid(repo.commit({"a": "1"}))
    with Trusting(repo.path / ".git", "sha1") as objects, Refs(found, objects) as refs:
        made = objects.write_commit(objects.read_commit(base)._replace(message="more\n"))
        take(repo, made)

        refs.move([Move("refs/heads/other", Oid("0" * 40), made)], "fabro")

    assert repo.git("log", "-1", "--format=%s", "other") == "more"


class Raced(Refs):
    """Refs beside a gc that takes a commit as soon as it stands on a ref."""

    def move(self, moves: Sequence[Move], message: str, *, patience_s: float | None = None) -> None:
        super().move(moves, message, patience_s=patience_s)
        for move in moves:
            (self._repo.common_dir / "objects" / move.new[:2] / move.new[2:]).unlink()


def test_a_note_that_was_taken_as_it_was_written_is_written_again(repo: GitRepo) -> None:
    found = open_repository(repo.path)
    commit = Oid(repo.commit({"a": "1"}))
    by = Identity("A. Tester", "tester@example.com")
    with open_objects(found) as objects, Raced(found, objects) as refs:
        write_notes(objects, refs, {commit: "text"}, by=by, when=WHEN)

    assert repo.git("notes", "--ref=fabro", "show", commit) == "text"


def test_notes_beside_a_loop_of_gc_are_whole(repo: GitRepo) -> None:
    commit = Oid(repo.commit({"a": "1"}))
    found = open_repository(repo.path)
    by = Identity("A. Tester", "tester@example.com")
    with open_objects(found) as objects, Refs(found, objects) as refs:
        for round_ in range(4):
            collecting = subprocess.Popen(["git", "gc", "-q", "--prune=now"], cwd=repo.path)
            number = 0
            while collecting.poll() is None:
                text = f"{round_} {number}"
                write_notes(objects, refs, {commit: text}, by=by, when=WHEN, patience_s=5)
                number += 1
            objects.bring_back()

    assert repo.git("notes", "--ref=fabro", "show", commit) == text
    repo.fsck()
