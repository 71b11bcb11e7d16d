"""An index file as the fast engine reads it: entries, their stat data, and the trees it knows.

Source: gitformat-index(5), versions 2 to 4.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from git_fabro.git.snapshot.model import UncoveredError

_NS = 1_000_000_000
_OID_LENGTH = 20
_FIXED = struct.Struct(">10I20sH")
_ASSUME_VALID, _EXTENDED, _STAGE, _NAME = 0x8000, 0x4000, 0x3000, 0x0FFF
_GITLINK, _FOLDER = 0o160000, 0o040000
_TREE_NODE = re.compile(rb"([^\0]*)\0(-?\d+) (\d+)\n")


class Entry(NamedTuple):
    """A tracked path: what is staged, and the stat data that its file had then."""

    mode: int
    oid: bytes
    mtime_ns: int
    ctime_ns: int
    inode: int  # its lower 32 bits
    size: int  # its lower 32 bits


@dataclass(frozen=True, slots=True)
class IndexFile:
    """The tracked paths, and the trees of the folders that nothing changed since: ``{b"a/": oid}``.

    The top is ``b""``.
    """

    entries: Mapping[bytes, Entry]
    trees: Mapping[bytes, bytes]


def read_index(data: bytes) -> IndexFile:
    """The index of a repository with SHA-1 names.

    Raises:
        UncoveredError: it is damaged, or holds what only git itself knows how to record.
    """
    version = int.from_bytes(data[4:8])
    if data[:4] != b"DIRC" or version not in (2, 3, 4) or not _is_whole(data):
        raise UncoveredError("the index is damaged, or of a version that is not known")
    entries: dict[bytes, Entry] = {}
    at, name = 12, b""
    try:
        for _ in range(int.from_bytes(data[8:12])):
            cs, cn, ms, mn, _, inode, mode, _, _, size, oid, flags = _FIXED.unpack_from(data, at)
            if flags & (_ASSUME_VALID | _EXTENDED | _STAGE) or mode in (_GITLINK, _FOLDER):
                raise _special(flags, mode)
            if version == 4:
                name, at = _compressed(data, at + _FIXED.size, name)
            else:
                name, at = _padded(data, at, flags & _NAME)
            entries[name] = Entry(mode, oid, ms * _NS + mn, cs * _NS + cn, inode, size)
    except (struct.error, ValueError, IndexError) as exc:
        raise UncoveredError(f"the index is damaged near byte {at}") from exc
    return IndexFile(entries, _trees_of(data, at))


def _special(flags: int, mode: int) -> UncoveredError:
    if mode == _GITLINK:
        return UncoveredError("a submodule")
    if mode == _FOLDER:
        return UncoveredError("a sparse index")
    if flags & _STAGE:
        return UncoveredError("unmerged paths in the index")
    return UncoveredError(
        "paths in the index marked assume-unchanged, skip-worktree or intent-to-add"
    )


def _is_whole(data: bytes) -> bool:
    # index.skipHash leaves zeros where the checksum would stand.
    checksum, body = data[-_OID_LENGTH:], memoryview(data)[:-_OID_LENGTH]
    return not any(checksum) or hashlib.sha1(body, usedforsecurity=False).digest() == checksum


def _padded(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    start = at + _FIXED.size
    if length == _NAME:
        length = data.index(b"\0", start) - start
    # Padded with one to eight NULs to a multiple of eight bytes.
    return data[start : start + length], at + ((_FIXED.size + length + 8) & ~7)


def _compressed(data: bytes, at: int, former: bytes) -> tuple[bytes, int]:
    """A name as what is cut from the end of the former one, and what follows instead."""
    byte = data[at]
    cut = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        cut = ((cut + 1) << 7) | (byte & 0x7F)
    if cut > len(former):
        raise ValueError(cut)
    end = data.index(b"\0", at + 1)
    return former[: len(former) - cut] + data[at + 1 : end], end + 1


def _trees_of(data: bytes, at: int) -> dict[bytes, bytes]:
    trees: dict[bytes, bytes] = {}
    for name, body in _extensions(data, at):
        if name == b"link":
            raise UncoveredError("a split index")
        # A small letter begins what must be understood by whoever reads the index.
        if name == b"FSMN" or name[:1].islower():
            raise UncoveredError(f"an index with the extension {os.fsdecode(name)!a}")
        if name == b"TREE":
            trees.update(_tree_nodes(body))
    return trees


def _extensions(data: bytes, at: int) -> Iterator[tuple[bytes, bytes]]:
    end = len(data) - _OID_LENGTH
    while at + 8 <= end:
        length = int.from_bytes(data[at + 4 : at + 8])
        yield data[at : at + 4], data[at + 8 : at + 8 + length]
        at += 8 + length


def _tree_nodes(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Folders and their trees, in the order of a walk; those that have changed are left out."""
    at, above = 0, [(b"", 1)]
    while at < len(body):
        node = _TREE_NODE.match(body, at)
        if node is None:
            return
        while above and above[-1][1] == 0:
            above.pop()
        if not above:
            return
        prefix, left = above[-1]
        above[-1] = prefix, left - 1
        path = prefix + node[1] + b"/" if node[1] else prefix
        at = node.end()
        if not node[2].startswith(b"-"):
            yield path, body[at : at + _OID_LENGTH]
            at += _OID_LENGTH
        above.append((path, int(node[3])))
