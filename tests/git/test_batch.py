"""Objects that are stored together, with git as the oracle: few stay loose, many are one pack."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import GitError
from git_fabro.git import batch
from git_fabro.git.batch import MOST_PACKS, PACK_OBJECTS
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import Objects, open_objects
from tests.conftest import GitRepo


@pytest.fixture
def objects(repo: GitRepo) -> Iterator[Objects]:
    repo.git("config", "gc.auto", "0")
    opened = open_objects(open_repository(repo.path))
    yield opened
    opened.close()


def stored(objects: Objects, count: int, *, text: str = "text") -> list[Oid]:
    """So many new blobs, stored together."""
    together = objects.batch()
    made = [together.write_new("blob", f"{text} {number}\n".encode()) for number in range(count)]
    together.store()
    return made


def counts(repo: GitRepo) -> tuple[int, int, int]:
    """Loose objects, packs, and files that git takes for garbage."""
    rows = dict(row.split(": ") for row in repo.git("count-objects", "-v").splitlines())
    return int(rows["count"]), int(rows["packs"]), int(rows["garbage"])


def in_git(repo: GitRepo, names: list[Oid]) -> list[str]:
    return [repo.git("cat-file", "blob", name) for name in names]


def test_a_hundred_become_one_pack(repo: GitRepo, objects: Objects) -> None:
    made = stored(objects, PACK_OBJECTS)

    assert counts(repo) == (0, 1, 0)
    assert in_git(repo, made) == [f"text {number}" for number in range(PACK_OBJECTS)]
    assert objects.read_blob(made[7]) == b"text 7\n"
    index = next((repo.path / ".git/objects/pack").glob("*.idx"))
    repo.git("verify-pack", str(index))
    assert repo.git_bytes("show-index", stdin=index.read_bytes()).count(b"\n") == PACK_OBJECTS
    assert {path.stat().st_mode & 0o777 for path in index.parent.iterdir()} == {0o444}
    repo.fsck()


def test_fewer_stay_loose(repo: GitRepo, objects: Objects) -> None:
    made = stored(objects, PACK_OBJECTS - 1)

    assert counts(repo) == (PACK_OBJECTS - 1, 0, 0)
    assert len(set(in_git(repo, made))) == PACK_OBJECTS - 1


def test_until_they_are_stored_nothing_is_there(repo: GitRepo, objects: Objects) -> None:
    together = objects.batch()
    waiting = together.write_new("blob", b"waits")

    assert not objects.exists(waiting)
    together.store()
    assert objects.exists(waiting)
    together.store()
    assert counts(repo) == (1, 0, 0)


def test_what_lies_there_already_is_not_stored_twice(repo: GitRepo, objects: Objects) -> None:
    first = stored(objects, PACK_OBJECTS)
    loose = stored(objects, 5, text="loose")
    old = repo.path / f".git/objects/{loose[0][:2]}/{loose[0][2:]}"
    os.utime(old, (1, 1))

    together = objects.batch()
    again = [together.write("blob", f"text {number}\n".encode()) for number in range(3)]
    again += [together.write_new("blob", f"loose {number}\n".encode()) for number in range(5)]
    new = [together.write("blob", b"new %d" % number) for number in range(PACK_OBJECTS)]
    together.store()

    assert again == [*first[:3], *loose]
    assert counts(repo) == (5, 2, 0)
    assert old.stat().st_mtime > 1
    assert len(in_git(repo, new)) == PACK_OBJECTS


def test_one_process_makes_only_so_many_packs(repo: GitRepo, objects: Objects) -> None:
    for number in range(MOST_PACKS + 1):
        stored(objects, PACK_OBJECTS, text=f"round {number}")

    assert counts(repo) == (PACK_OBJECTS, MOST_PACKS, 0)


def test_what_a_clean_up_takes_of_a_pack_is_written_again(repo: GitRepo, objects: Objects) -> None:
    """As a ``git gc --prune=now`` does with a pack of which no ref reaches anything yet."""
    made = stored(objects, PACK_OBJECTS)
    repo.git("gc", "-q", "--prune=now")
    assert counts(repo) == (0, 0, 0)

    assert objects.look_again() == PACK_OBJECTS

    assert in_git(repo, made) == [f"text {number}" for number in range(PACK_OBJECTS)]


def test_a_clean_up_that_takes_the_temporary_file_makes_them_loose(
    repo: GitRepo, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def swept(source: str, target: str) -> None:
        if target.endswith(".idx"):
            os.unlink(source)
        rename(source, target)

    monkeypatch.setattr(batch.os, "rename", swept)

    made = stored(objects, PACK_OBJECTS)

    assert counts(repo) == (PACK_OBJECTS, 0, 0)
    assert len(in_git(repo, made)) == PACK_OBJECTS


@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_a_full_disk_is_an_error_and_leaves_no_file(
    repo: GitRepo, objects: Objects, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    rename = os.rename

    def full(source: str, target: str) -> None:
        if target.endswith(ending):
            raise OSError(errno.ENOSPC, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(batch.os, "rename", full)

    with pytest.raises(GitError, match="cannot write a pack: No space left on device"):
        stored(objects, PACK_OBJECTS)

    assert not list((repo.path / ".git/objects/pack").iterdir())
    monkeypatch.undo()
    assert in_git(repo, stored(objects, PACK_OBJECTS))[0] == "text 0"
    repo.fsck()


def test_a_sha256_repository_is_packed_too(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "wide")
    repo.path.mkdir()
    repo.git("init", "-q", "--object-format=sha256")
    opened = open_objects(open_repository(repo.path))

    made = stored(opened, PACK_OBJECTS)

    opened.close()
    assert counts(repo) == (0, 1, 0)
    assert in_git(repo, made)[3] == "text 3"
    repo.fsck()


def test_durable_ones_are_synced_before_they_count(
    repo: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.git("config", "fabro.durable", "true")
    opened = open_objects(open_repository(repo.path))
    done: list[str] = []
    rename, fsync = os.rename, os.fsync
    monkeypatch.setattr(batch.os, "fsync", lambda handle: (done.append("sync"), fsync(handle)))
    monkeypatch.setattr(
        batch.os,
        "rename",
        lambda source, target: (done.append(Path(target).suffix), rename(source, target)),
    )

    stored(opened, PACK_OBJECTS)

    opened.close()
    assert done == ["sync", "sync", ".pack", ".idx", "sync"]
