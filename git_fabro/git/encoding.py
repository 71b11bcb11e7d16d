"""Trees and commits as bytes, in both object formats. Values in, values out: no disk is read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dulwich.errors import ObjectFormatException

from git_fabro.checkpoint.model import Commit, Identity, Oid, TreeEntry, parse_oid
from git_fabro.errors import RecordError, RequestError

TREE_MODE = 0o040000
FILE_MODE = 0o100644
GITLINK_MODE = 0o160000

_MODES = frozenset({TREE_MODE, FILE_MODE, GITLINK_MODE, 0o100755, 0o100664, 0o120000})
_FORBIDDEN_NAMES = frozenset({b"", b".", b"..", b".git", b"git~1"})
_FORBIDDEN_IN_IDENTITY = re.compile(r"[<>\n\0]")
# What git itself strips from the ends of a name. Source: ident.c, crud()
_CRUD = " .,:;<>\"\\'" + "".join(map(chr, range(32)))
_PERSON = re.compile(rb"(?P<name>[^<\n]*?) ?<(?P<email>[^>\n]*)> ?(?P<when>-?\d+)?")
_LATEST = 2**63 - 1


def object_name(kind: str, data: bytes, object_format: str) -> Oid:
    """The name of an object: the hash of its header and its bytes."""
    # Imported here: 3 ms that those do not pay who only follow commits.
    import hashlib

    header = b"%s %d\0" % (kind.encode(), len(data))
    return Oid(hashlib.new(object_format, header + data, usedforsecurity=False).hexdigest())


def tree_bytes(entries: Mapping[bytes, TreeEntry]) -> bytes:
    """A tree as git stores it.

    Raises:
        RecordError: a name that no tree may hold, or a mode that git does not write.
    """
    parts = []
    for name in sorted(entries, key=lambda name: _sort_key(name, entries[name].mode)):
        entry = entries[name]
        if name.lower() in _FORBIDDEN_NAMES or b"/" in name or b"\0" in name:
            raise RecordError(f"not a name for a tree entry: {name!r}")
        if entry.mode not in _MODES:
            raise RecordError(f"not a mode for a tree entry: {entry.mode:o} {name!r}")
        parts.append(b"%o %s\0%s" % (entry.mode, name, bytes.fromhex(entry.oid)))
    return b"".join(parts)


def _sort_key(name: bytes, mode: int) -> bytes:
    # A folder sorts as if its name ended in a slash. Source: tree.c, base_name_compare
    return name + b"/" if mode == TREE_MODE else name


def parse_tree(data: bytes, object_format: str) -> dict[bytes, TreeEntry]:
    """The entries of a tree, in git's order.

    Raises:
        RecordError: the bytes are no tree.
    """
    # Imported here: 20 ms that those do not pay who only follow commits.
    from dulwich.objects import parse_tree as parse_entries

    length = 20 if object_format == "sha1" else 32
    try:
        return {
            name: TreeEntry(mode, Oid(oid.decode("ascii")))
            for name, mode, oid in parse_entries(data, length)
        }
    except (ObjectFormatException, ValueError) as exc:
        raise RecordError(f"not a tree: {exc}") from exc


def check_identity(who: Identity) -> None:
    """Nothing, if git accepts this identity in a commit.

    Raises:
        RequestError: it does not. traps: OB8
    """
    for part in (who.name, who.email):
        if not part.strip(_CRUD) or _FORBIDDEN_IN_IDENTITY.search(part) or not _encodes(part):
            raise RequestError(
                f"not an identity for a commit: {who.name!r} {who.email!r}",
                hint="git config user.name NAME; git config user.email MAIL",
            )


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def commit_bytes(commit: Commit) -> bytes:
    """A commit as git stores it.

    Raises:
        RequestError: an identity that git would not accept.
        RecordError: a time or a message that a commit cannot hold.
    """
    check_identity(commit.author)
    check_identity(commit.committer)
    if not 0 <= commit.when <= _LATEST:
        raise RecordError(f"not a time for a commit: {commit.when}")
    if "\0" in commit.message or not _encodes(commit.message):
        raise RecordError(f"not a message for a commit: {commit.subject[:80]!r}")
    lines = [f"tree {commit.tree}", *(f"parent {parent}" for parent in commit.parents)]
    for role, who in (("author", commit.author), ("committer", commit.committer)):
        lines.append(f"{role} {who.name} <{who.email}> {commit.when} +0000")
    return ("\n".join(lines) + "\n\n" + commit.message).encode()


def parse_commit(data: bytes) -> Commit:
    """A commit, whoever wrote it; undecodable bytes of names and message are replaced.

    Raises:
        RecordError: no tree, no author, no committer.
    """
    head, _, body = data.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        # A line that begins with a space belongs to a signature or another long field.
        key, _, value = line.partition(b" ")
        fields.setdefault(key, []).append(value)
    try:
        author, _ = _parse_person(fields[b"author"][0])
        committer, when = _parse_person(fields[b"committer"][0])
        tree = parse_oid(fields[b"tree"][0].decode("ascii"))
        parents = tuple(parse_oid(name.decode("ascii")) for name in fields.get(b"parent", ()))
    except (KeyError, ValueError) as exc:
        raise RecordError(f"not a commit: {data[:60]!r}") from exc
    return Commit(
        tree=tree,
        parents=parents,
        author=author,
        committer=committer,
        when=when,
        message=_decode(body, fields.get(b"encoding", [b"utf-8"])[0]),
    )


def _parse_person(value: bytes) -> tuple[Identity, int]:
    found = _PERSON.match(value)
    if found is None:
        raise ValueError(value)
    name, email = (found[part].decode(errors="replace") for part in ("name", "email"))
    return Identity(name, email), int(found["when"] or 0)


def _decode(body: bytes, encoding: bytes) -> str:
    try:
        return body.decode(encoding.decode("ascii", errors="replace"), errors="replace")
    except LookupError:
        return body.decode(errors="replace")


def tree_of(data: bytes) -> Oid:
    """The tree of a commit, and nothing else of it.

    Raises:
        RecordError: the bytes are no commit.
    """
    key, _, name = data[: data.find(b"\n")].partition(b" ")
    if key != b"tree":
        raise RecordError(f"not a commit: {data[:60]!r}")
    return parse_oid(name.decode("ascii", "replace"))


def parents_of(data: bytes) -> tuple[Oid, ...]:
    """The parents of a commit, and nothing else of it: a tenth of the time of a whole parse."""
    parents = []
    start = data.find(b"\n") + 1
    while data.startswith(b"parent ", start):
        end = data.index(b"\n", start)
        parents.append(Oid(data[start + 7 : end].decode("ascii")))
        start = end + 1
    return tuple(parents)
