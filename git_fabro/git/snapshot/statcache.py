"""The stat cache as a file: what is known of a work tree, kept from one process to the next.

Losing it costs one full scan, so in any doubt it is not read: another version, another index, a
checksum that is wrong. It holds no content, and nothing outside the work tree's own index folder.

    magic, version, checksum of all that follows
    signature of the index
    each folder before what is in it: path, signature, tree, .gitignore, guards, files
"""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections.abc import Iterator
from pathlib import Path

from git_fabro.git.snapshot.folders import Folder, Known, Signature

_MAGIC = b"git-fabro stat cache\n"
#: Another number for any change of the format.
VERSION = 1
_HEAD = struct.Struct(f">{len(_MAGIC)}sI32s")
_LENGTH = struct.Struct(">I")
_NUMBERS = 6
_NONE = (0,) * _NUMBERS


def save(file: Path, root: Folder, index: Signature) -> bool:
    """Write the cache; whether the disk took it."""
    body = b"".join(_packed([_numbers([index]), *_folders(root)]))
    data = _HEAD.pack(_MAGIC, VERSION, hashlib.sha256(body).digest()) + body
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    except OSError:
        temporary.unlink(missing_ok=True)
        return False
    return True


def load(file: Path, index: Signature) -> Folder | None:
    """The folders that were known when the index looked like this; None: nothing is known."""
    try:
        data = file.read_bytes()
        magic, version, checksum = _HEAD.unpack_from(data)
    except (OSError, struct.error):
        return None
    body = memoryview(data)[_HEAD.size :]
    if (magic, version) != (_MAGIC, VERSION) or hashlib.sha256(body).digest() != checksum:
        return None
    parts = _unpacked(body)
    if _signatures(next(parts)) != [index]:
        return None
    return _tree(parts)


def _packed(parts: list[bytes]) -> Iterator[bytes]:
    for part in parts:
        yield _LENGTH.pack(len(part))
        yield part


def _unpacked(body: memoryview) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        yield bytes(body[at : at + length])
        at += length


def _numbers(signatures: list[Signature | None]) -> bytes:
    return array("Q", [n for one in signatures for n in (one or _NONE)]).tobytes()


def _signatures(data: bytes) -> list[Signature | None]:
    numbers = array("Q")
    numbers.frombytes(data)
    every = zip(*[iter(numbers)] * _NUMBERS, strict=True)
    return [None if one == _NONE else one for one in every]


def _folders(root: Folder) -> Iterator[bytes]:
    for folder in root.walk():
        yield folder.path
        yield _numbers([folder.stat])
        yield folder.tree if folder.tree is not None else b"?"
        yield b"-" if folder.gitignore is None else b"+" + folder.gitignore
        yield b"\0".join(folder.guards)
        yield _numbers(list(folder.guards.values()))
        yield b"\0".join(folder.files)
        known = folder.files.values()
        yield _numbers([one.stat for one in known])
        yield b"".join([one.mode for one in known])
        yield b"".join([one.oid for one in known])


def _tree(parts: Iterator[bytes]) -> Folder:
    root = Folder(b"", None)
    for path in parts:
        folder = _entered(root, path)
        (folder.stat,) = _signatures(next(parts))
        tree = next(parts)
        folder.tree = None if tree == b"?" else tree
        gitignore = next(parts)
        folder.gitignore = gitignore[1:] if gitignore[:1] == b"+" else None
        folder.guards = dict(zip(_names(next(parts)), _signatures(next(parts)), strict=True))
        names, stats = _names(next(parts)), _signatures(next(parts))
        modes, oids = _cut(next(parts), 6), _cut(next(parts), 20)
        known = map(Known, stats, modes, oids)
        folder.files = dict(zip(names, known, strict=True))
    return root


def _entered(root: Folder, path: bytes) -> Folder:
    """The folder at a path, whose parent is known already: it was written first."""
    if not path:
        return root
    above, _, name = path[:-1].rpartition(b"/")
    parent = root.at(above + b"/") if above else root
    assert parent is not None
    folder = parent.folders[name] = Folder(name, parent)
    return folder


def _names(data: bytes) -> list[bytes]:
    return data.split(b"\0") if data else []


def _cut(data: bytes, length: int) -> list[bytes]:
    return [data[at : at + length] for at in range(0, len(data), length)]
