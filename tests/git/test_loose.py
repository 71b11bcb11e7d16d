from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
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


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        pytest.param({}, 1, id="as git does"),
        pytest.param({"core.compression": "0"}, 0, id="core.compression"),
        pytest.param({"core.looseCompression": "9"}, 9, id="core.looseCompression"),
        pytest.param({"core.compression": "0", "core.looseCompression": "9"}, 9, id="both"),
    ],
)
@pytest.mark.parametrize("size", [600, 60_000])
def test_objects_are_compressed_as_the_configuration_says(
    repo: GitRepo, settings: dict[str, str], level: int, size: int
) -> None:
    for key, value in settings.items():
        repo.git("config", key, value)
    data = b"".join(b"%d " % (number * number) for number in range(size // 4))[:size]
    whole = b"blob %d\0%b" % (len(data), data)

    oid = opened(repo).write_blob(data)

    stored = (repo.path / ".git/objects" / oid[:2] / oid[2:]).read_bytes()
    assert zlib.decompress(stored) == whole
    # A small object has a small window, which the first two bytes say; the rest is the same.
    assert abs(len(stored) - len(zlib.compress(whole, level))) <= 8
    assert repo.git_bytes("cat-file", "blob", oid) == data
    repo.fsck()


SIZES = (0, 1, 4083, 4084, 4085, 4086, 4087, 4088, 4089, 65_536)


@pytest.mark.parametrize("size", SIZES)
def test_git_reads_objects_of_any_size(repo: GitRepo, size: int) -> None:
    data = os.urandom(size)

    oid = opened(repo).write_blob(data)

    assert repo.git_bytes("cat-file", "blob", oid) == data
    repo.fsck()


_DURABLE = """
import sys
from git_fabro.checkpoint.model import Move, Oid
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import open_objects
from git_fabro.git.refs import Refs
repository = open_repository(sys.argv[1])
with open_objects(repository) as objects, Refs(repository, objects) as refs:
    commit = objects.read_commit(refs.read("refs/heads/main"))
    tree = objects.tree_from({"new/file": b"content"})
    made = objects.write_commit(commit._replace(tree=tree))
    refs.move([Move("refs/heads/other", Oid("0" * 40), made)], "fabro")
"""


def _strace(repo: GitRepo, log: Path) -> list[str]:
    """The syncs and renames of a program that writes four objects and then a ref, in order."""
    calls = "trace=fsync,fdatasync,rename,renameat,renameat2"
    argv = ["strace", "-f", "-y", "-o", str(log), "-e", calls]
    done = subprocess.run(
        [*argv, sys.executable, "-c", _DURABLE, str(repo.path)], capture_output=True, text=True
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    return [line for line in log.read_text().splitlines() if "+++" not in line]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_durable_objects_and_their_folders_are_synced_before_a_ref_moves_ob5_p12(
    repo: GitRepo, tmp_path: Path
) -> None:
    repo.commit({"a": "1"})
    repo.git("config", "fabro.durable", "true")

    calls = _strace(repo, tmp_path / "calls")

    moved = next(place for place, call in enumerate(calls) if "heads/other.lock" in call)
    placed = {}
    for place, call in enumerate(calls):
        found = re.search(r'rename\("[^"]*/(tmp_obj_\w+)", "([^"]*)/[0-9a-f]{38}"\) = 0', call)
        if found is not None:
            placed[found[1]] = (place, found[2])
    assert len(placed) == 4
    for temporary, (place, folder) in placed.items():
        synced = [at for at, call in enumerate(calls) if "sync(" in call and temporary in call]
        after = [
            at
            for at, call in enumerate(calls)
            if "sync(" in call and f"{folder}>" in call and at > place
        ]
        assert synced
        assert after
        assert synced[0] < place < after[0] < moved


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few pages."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", folder], text=True)
    if done.returncode != 0:
        pytest.skip("needs leave to mount")
    yield folder
    subprocess.run(["umount", folder], check=True)


def _refused(objects: Objects, data: bytes) -> str:
    with pytest.raises(GitError, match=r"^cannot write object [0-9a-f]{40}: ") as caught:
        objects.write_blob(data)
    return caught.value.message.rpartition(": ")[2]


def test_a_full_disk_is_an_error_and_leaves_nothing(tiny: Path) -> None:
    (tiny / "objects").mkdir()
    with Objects(tiny, "sha1") as objects:
        kept = objects.write_blob(b"small")
        before = sorted(tiny.rglob("*"))

        said = _refused(objects, os.urandom(50_000))

        assert said == os.strerror(errno.ENOSPC)
        assert sorted(tiny.rglob("*")) == before
        assert objects.read_blob(kept) == b"small"


@contextlib.contextmanager
def limited(limit: int, value: int) -> Iterator[None]:
    former = resource.getrlimit(limit)
    resource.setrlimit(limit, (value, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(limit, former)


def _too_many_files() -> contextlib.AbstractContextManager[None]:
    lowest_free = os.dup(0)
    os.close(lowest_free)
    return limited(resource.RLIMIT_NOFILE, lowest_free)


def _too_large_a_file() -> contextlib.AbstractContextManager[None]:
    return limited(resource.RLIMIT_FSIZE, 10_000)


@pytest.mark.parametrize(
    ("limit", "number"),
    [
        pytest.param(_too_many_files, errno.EMFILE, id="EMFILE"),
        pytest.param(_too_large_a_file, errno.EFBIG, id="EFBIG"),
    ],
)
def test_a_limit_of_the_process_is_an_error_and_leaves_nothing(
    repo: GitRepo, limit: Callable[[], contextlib.AbstractContextManager[None]], number: int
) -> None:
    objects = opened(repo)
    objects.write_blob(b"the packs have been looked at")
    before = sorted((repo.path / ".git").rglob("*"))
    data = os.urandom(50_000)

    with limit():
        said = _refused(objects, data)

    assert said == os.strerror(number)
    assert sorted((repo.path / ".git").rglob("*")) == before
    oid = objects.write_blob(data)
    assert repo.git_bytes("cat-file", "blob", oid) == data


def test_a_folder_that_refuses_is_an_error_and_leaves_nothing(repo: GitRepo) -> None:
    folder = repo.path / ".git/objects"
    objects = opened(repo)
    objects.write_blob(b"before")
    before = sorted(folder.rglob("*"))
    done = subprocess.run(["chattr", "+i", folder], capture_output=True)
    if done.returncode != 0:
        pytest.skip("needs a file system with immutable folders")
    try:
        said = _refused(objects, b"content")
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)

    assert said in (os.strerror(errno.EACCES), os.strerror(errno.EPERM))
    assert sorted(folder.rglob("*")) == before
