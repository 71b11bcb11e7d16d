"""Trees: what one adds to another, and names, modes, sizes and secrets that no record may hold.

Source: fsck.c, fsck_tree; utf8.c, is_hfs_dotgit; path.c, is_ntfs_dotgit
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from git_fabro.checkpoint.finding import Facts, Fault, Limits, plain
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.unfolding import MOST_PATHS, unfolded
from git_fabro.errors import MissingObjectError, RecordError

FOLDER, FILE, LINK, GITLINK = 0o40000, 0o100644, 0o120000, 0o160000
_MODES = frozenset({FOLDER, FILE, 0o100755, 0o100664, LINK, GITLINK})
_DEEPEST = 200
_Pair = tuple[Oid | None, Oid]
_MODE = re.compile(rb"[1-7][0-7]{4,5}\Z")
# What HFS+ leaves out of a name when it compares two.
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_NTFS_GIT = re.compile(r"(?ia)(?:\.git|git~1)[ .]*(?::.*)?\Z", re.DOTALL)
_NTFS_MODULES = re.compile(r"(?ia)(?:\.gitmodules|gitmod~[1-4])[ .]*(?::.*)?\Z", re.DOTALL)
_NO_TEXT = re.compile("[\udc80-\udcff].*", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Named:
    """One entry of a tree as it is stored."""

    mode: int
    name: bytes
    oid: Oid


@dataclass(frozen=True, slots=True)
class Added:
    """A file, link or repository that a tree has and the one before had not, or had otherwise."""

    path: bytes
    mode: int
    oid: Oid


def entries(data: bytes, oid_bytes: int) -> Iterator[Named]:
    """The entries of a tree as they stand there, twice where one does.

    Raises:
        RecordError: the bytes are no tree, or a mode is not written as git writes it.
    """
    at = 0
    while at < len(data):
        space, end = data.find(b" ", at), data.find(b"\0", at)
        if not at < space < end:
            raise RecordError("not a tree")
        mode = data[at:space]
        if _MODE.match(mode) is None:
            raise RecordError(f"mode {plain(mode)} of {plain(data[space + 1 : end])}")
        at = end + 1 + oid_bytes
        if at > len(data):
            raise RecordError("not a tree")
        yield Named(int(mode, 8), data[space + 1 : end], Oid(data[end + 1 : at].hex()))


@dataclass(slots=True)
class Comparison:
    """A tree against the one before: what it adds, and every fault on the way to that.

    ``added`` fills as ``faults`` is consumed; folders that did not change are not opened, and one
    that stands at several paths is opened at one of them.
    """

    facts: Facts
    limits: Limits
    added: list[Added]

    @classmethod
    def of(cls, facts: Facts, limits: Limits) -> Comparison:
        return cls(facts, limits, [])

    def faults(self, before: Oid | None, after: Oid) -> Iterator[Fault]:
        """What is wrong with the names that changed; the first damaged tree ends its folder."""
        waiting: list[tuple[bytes, Oid | None, Oid]] = [(b"", before, after)]
        # A few trees that name one another many times would be more paths than there is time for.
        below: dict[_Pair, list[_Pair]] = {}
        paths: dict[_Pair, int] = {}
        while waiting:
            path, old, new = waiting.pop()
            if old == new or (old, new) in below:
                continue
            inside = below[old, new] = []
            known = self._known(old)
            try:
                found = self._read(new)
            except RecordError as exc:
                yield Fault("tree", f"{plain(path or b'the root')}: {exc.message}")
                continue
            yield from _order_faults(path, found)
            changed = [entry for entry in found if known.get(entry.name) != entry]
            paths[old, new] = len(changed)
            for entry in changed:
                same = known.get(entry.name)
                where = path + entry.name
                yield from _entry_faults(where, entry)
                if entry.mode != FOLDER:
                    self.added.append(Added(where, entry.mode, entry.oid))
                elif where.count(b"/") > _DEEPEST:
                    yield Fault("tree", f"folders {_DEEPEST} deep")
                else:
                    earlier = same.oid if same is not None and same.mode == FOLDER else None
                    inside.append((earlier, entry.oid))
                    waiting.append((where + b"/", earlier, entry.oid))
        if unfolded((before, after), below, paths, most=MOST_PATHS) > MOST_PATHS:
            yield Fault("size", f"it adds more than {MOST_PATHS} paths")

    def _read(self, oid: Oid) -> list[Named]:
        if self.facts.size(oid) > self.limits.record_bytes:
            raise RecordError("the folder is too large to be read")
        return list(entries(self.facts.tree(oid), len(oid) // 2))

    def _known(self, oid: Oid | None) -> dict[bytes, Named]:
        """The entries of a tree that was there before; a fault of it is no news."""
        if oid is None:
            return {}
        try:
            return {entry.name: entry for entry in self._read(oid)}
        except RecordError:
            return {}


def _order_faults(path: bytes, found: list[Named]) -> Iterator[Fault]:
    keys = [entry.name + b"/" if entry.mode == FOLDER else entry.name for entry in found]
    if any(one >= other for one, other in pairwise(keys)) or len({e.name for e in found}) != len(
        found
    ):
        yield Fault("tree", f"{plain(path or b'the root')}: names stand twice or out of order")


def _entry_faults(path: bytes, entry: Named) -> Iterator[Fault]:
    why = name_fault(entry.name, is_link=entry.mode == LINK)
    if why:
        yield Fault("tree", f"{plain(path)}: {why}")
    if entry.mode not in _MODES:
        yield Fault("tree", f"{plain(path)}: mode {entry.mode:o}")
    if set(entry.oid) == {"0"}:
        yield Fault("tree", f"{plain(path)}: names no object")


def name_fault(name: bytes, *, is_link: bool = False) -> str:
    """Why git would refuse a name in a tree, on any file system; "" if it would not."""
    if not name:
        return "an empty name"
    if name in (b".", b".."):
        return "a name that means another folder"
    if b"/" in name:
        return "a path in place of a name"
    text = name.decode("utf-8", "surrogateescape")
    parts = text.split("\\")
    # What is no UTF-8 ends a name there.
    hfs = _IGNORED_BY_HFS.sub("", _NO_TEXT.sub("", text)).lower()
    if hfs == ".git" or any(_NTFS_GIT.match(part) for part in parts):
        return "a name of git's own folder"
    if is_link and (hfs == ".gitmodules" or any(_NTFS_MODULES.match(part) for part in parts)):
        return "a link in place of a file that git reads"
    return ""


def record_fault(added: Added) -> str:
    """Why a path cannot be one of a record, where people did not choose the names; "" if it can."""
    if added.mode != FILE:
        return f"mode {added.mode:o}"
    if _CONTROL.search(added.path):
        return "a control character"
    try:
        added.path.decode("utf-8")
    except UnicodeDecodeError:
        return "no UTF-8"
    return ""


def file_faults(facts: Facts, limits: Limits, added: Added) -> Iterator[Fault]:
    """What is wrong with a file that a commit of a run branch adds."""
    if added.mode == GITLINK:
        return
    path = plain(added.path)
    try:
        size = facts.size(added.oid)
        if size > limits.file_bytes:
            yield Fault("size", f"{path}: {size} bytes, more than {limits.file_bytes}")
        elif limits.secrets == "all" and has_secret(limits, facts.blob(added.oid)):
            yield Fault("secret", f"{path}: holds a secret")
    except MissingObjectError:
        yield Fault("tree", f"{path}: the object is missing: {added.oid[:12]}")
    except RecordError as exc:
        yield Fault("tree", f"{path}: {exc.message}")


def has_secret(limits: Limits, data: bytes) -> bool:
    """Whether something in these bytes looks like a secret."""
    # What is masked already may look like one: then masking changes nothing.
    return limits.mask.data(data) != data
