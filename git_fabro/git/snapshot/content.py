"""Reading what a file of a work tree holds, so that a change meanwhile is noticed."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass

from git_fabro.errors import GitError
from git_fabro.git.snapshot.folders import Signature, signature_of

# A pipe that took a file's place must not be waited for.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TRIES = 5
_OTHER_KIND = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL)


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds, and what it looked like meanwhile; None: it changed in every try."""

    data: bytes
    stat: Signature | None
    mode: int


def read_content(name: bytes, folder: int) -> Content | None:
    """A file's bytes, or where a symbolic link points; None: it is gone, or of another kind.

    Args:
        name: In the folder.
        folder: An open handle.

    Raises:
        GitError: it cannot be read.
    """
    try:
        return _file(name, folder)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            return _link(name, folder)
        if exc.errno in _OTHER_KIND:
            return None
        raise GitError(f"cannot read {os.fsdecode(name)!a}: {exc.strerror}") from exc


def _link(name: bytes, folder: int) -> Content | None:
    try:
        before = os.lstat(name, dir_fd=folder)
        target = os.readlink(name, dir_fd=folder)
        after = os.lstat(name, dir_fd=folder)
    except OSError:
        # No link any more: the scan looks again.
        return None
    same = signature_of(before) == signature_of(after)
    return Content(target, signature_of(after), after.st_mode) if same else None


def _file(name: bytes, folder: int) -> Content | None:
    handle = os.open(name, _OPEN, dir_fd=folder)
    try:
        for _ in range(_TRIES):
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return None
            data = _all(handle, before.st_size)
            after = os.fstat(handle)
            seen = signature_of(after)
            if seen == signature_of(before) and len(data) == after.st_size:
                return Content(data, seen, after.st_mode)
            os.lseek(handle, 0, os.SEEK_SET)
        return Content(data, None, after.st_mode)
    finally:
        os.close(handle)


def _all(handle: int, size: int) -> bytes:
    # One byte more than there should be, so that growth is seen without another call.
    data = os.read(handle, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def read_guard(name: bytes, folder: int) -> bytes:
    """A small file that says what is recorded.

    Raises:
        OSError: it cannot be read.
    """
    handle = os.open(name, _OPEN, dir_fd=folder)
    with open(handle, "rb") as file:
        return file.read()
