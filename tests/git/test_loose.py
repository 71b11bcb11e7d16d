from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest

from git_fabro.errors import GitError, RecordError
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import Objects, open_objects
from tests.conftest import GitRepo


def opened(repo: GitRepo) -> Objects:
    return open_objects(open_repository(repo.path))


def test_an_empty_object_file_is_written_anew_ob3(repo: GitRepo) -> None:
    objects = opened(repo)
    oid = objects.write_blob(b"content")
    file = repo.path / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    file.write_bytes(b"")

    assert not opened(repo).exists(oid)
    objects.write_blob(b"content")

    assert objects.read_blob(oid) == b"content"
    repo.fsck()


def test_a_damaged_object_is_named_and_written_anew_ob3(repo: GitRepo) -> None:
    objects = opened(repo)
    oid = objects.write_blob(b"content" * 1000)
    file = repo.path / ".git/objects" / oid[:2] / oid[2:]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-3])

    with pytest.raises(RecordError, match=oid):
        objects.read_blob(oid)
    objects.write_blob(b"content" * 1000)

    repo.fsck()


def test_a_left_over_lock_of_another_program_does_not_stop_a_writer_ob2(repo: GitRepo) -> None:
    objects = opened(repo)
    oid = repo.git("hash-object", "--stdin", stdin=b"content")
    folder = repo.path / ".git/objects" / oid[:2]
    folder.mkdir()
    (folder / f"{oid[2:]}.lock").touch()

    assert objects.write_blob(b"content") == oid

    assert repo.git("cat-file", "-p", oid) == "content"


def test_object_files_are_read_only_and_no_temporary_is_left(repo: GitRepo) -> None:
    objects = opened(repo)

    oid = objects.write_blob(b"content")

    assert os.stat(repo.path / ".git/objects" / oid[:2] / oid[2:]).st_mode & 0o777 == 0o444
    assert not list((repo.path / ".git/objects").glob("tmp_obj_*"))


def test_an_object_that_exists_gets_a_new_time_ob11(repo: GitRepo) -> None:
    objects = opened(repo)
    oid = objects.write_blob(b"content")
    file = repo.path / ".git/objects" / oid[:2] / oid[2:]
    os.utime(file, (1, 1))

    objects.write_blob(b"content")

    assert file.stat().st_mtime > 1


def test_a_durable_store_writes_the_same_objects(repo: GitRepo) -> None:
    repo.git("config", "fabro.durable", "true")

    oid = opened(repo).write_blob(b"content")

    assert repo.git("cat-file", "-p", oid) == "content"


def _write_many(path: str, barrier: object) -> None:
    with Objects(Path(path), "sha1") as objects:
        barrier.wait()  # type: ignore[attr-defined]
        for number in range(200):
            objects.write_blob(b"%d" % number)
            objects.tree_from({})


def test_six_processes_write_the_same_objects_at_once_ob1(repo: GitRepo) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(6)
    path = str(repo.path / ".git")
    workers = [context.Process(target=_write_many, args=(path, barrier)) for _ in range(6)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 6
    assert repo.git("count-objects").startswith("201 objects")
    repo.fsck()


def _clear_folders(path: str, stop: object) -> None:
    """What ``git gc --prune=now`` removes: files that begin with tmp_, and folders without one."""
    while not stop.wait(0.0005):  # type: ignore[attr-defined]
        for entry in os.scandir(path):
            with contextlib.suppress(OSError):
                if entry.name.startswith("tmp_"):
                    os.unlink(entry.path)
                elif entry.is_dir():
                    os.rmdir(entry.path)


@pytest.mark.parametrize("durable", [False, True])
def test_a_writer_beside_a_loop_of_clean_up_never_fails_ob11(repo: GitRepo, durable: bool) -> None:
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    folder = repo.path / ".git/objects"
    cleaner = context.Process(target=_clear_folders, args=(str(folder), stop))
    cleaner.start()
    try:
        with Objects(folder.parent, "sha1", durable) as objects:
            for number in range(1500):
                objects.write_blob(b"%d" % number)
    finally:
        stop.set()
        cleaner.join()

    assert repo.git("count-objects").startswith("1500 objects")
    assert not list(folder.glob("tmp_obj_*"))


def test_an_objects_folder_that_is_gone_is_an_error_at_once(repo: GitRepo) -> None:
    objects = opened(repo)
    shutil.rmtree(repo.path / ".git/objects")

    with pytest.raises(GitError, match="cannot write object"):
        objects.write_blob(b"content")
