from __future__ import annotations

from pathlib import Path

import pytest

from git_fabro.git.snapshot import statcache
from git_fabro.git.snapshot.folders import Folder, Known

_INDEX = (1, 2, 3, 4, 5, 6)
_STAT = (10, 20, 30, 40, 0o100644, 1)


def known_folders() -> Folder:
    root = Folder(b"", None)
    root.stat = _STAT
    root.files[b"a"] = Known(_STAT, b"100644", b"\1" * 20)
    below = root.enter(b"b").enter(b"\xff c")
    below.files[b"young"] = Known(None, b"120000", b"\2" * 20)
    below.gitignore, below.guards = b"", {b".gitignore": None}
    below.tree = b"\3" * 20
    root.enter(b"empty").tree = b""
    return root


def shown(root: Folder) -> list[tuple[object, ...]]:
    every = sorted(root.walk(), key=lambda folder: folder.path)
    return [(one.path, one.stat, one.files, one.tree, one.gitignore, one.guards) for one in every]


def test_what_was_kept_is_what_is_known_again(tmp_path: Path) -> None:
    file = tmp_path / "cache"

    assert statcache.save(file, known_folders(), _INDEX)

    found = statcache.load(file, _INDEX)
    assert found is not None
    assert shown(found) == shown(known_folders())


def test_a_cache_of_another_index_is_not_read(tmp_path: Path) -> None:
    statcache.save(tmp_path / "cache", known_folders(), _INDEX)

    assert statcache.load(tmp_path / "cache", (9, *_INDEX[1:])) is None


def test_a_cache_with_any_byte_changed_or_cut_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "cache"
    statcache.save(file, known_folders(), _INDEX)
    data = file.read_bytes()
    for place in range(len(data)):
        for damaged in (
            data[:place],
            data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :],
        ):
            file.write_bytes(damaged)

            assert statcache.load(file, _INDEX) is None


@pytest.mark.parametrize("content", [b"", b"git-fabro", b"something else entirely" * 9])
def test_what_is_no_cache_is_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cache").write_bytes(content)

    assert statcache.load(tmp_path / "cache", _INDEX) is None


def test_a_disk_that_refuses_the_cache_is_no_error(tmp_path: Path) -> None:
    assert not statcache.save(tmp_path / "no/such/folder", known_folders(), _INDEX)
