"""Notes: each on an object that is there, and naming the commit that the chain names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from git_fabro.checkpoint import layout, message
from git_fabro.checkpoint.finding import Facts, Fault, Limits, plain
from git_fabro.checkpoint.model import Oid, parse_oid
from git_fabro.checkpoint.verify_chain import head_of
from git_fabro.checkpoint.verify_tree import Added, Comparison, has_secret, record_fault
from git_fabro.errors import MissingObjectError, RecordError

_HEX = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


def note_faults(
    facts: Facts, limits: Limits, before: Oid | None, after: Oid
) -> Iterator[tuple[Oid | None, Fault]]:
    """What is wrong with the notes that a notes tree has and the one before had not.

    Returns:
        The object that the note is on, None for a file that is no note, and the fault.
    """
    compared = Comparison.of(facts, limits)
    for fault in compared.faults(before, after):
        yield None, fault
    for added in compared.added:
        noted = noted_object(added.path)
        for fault in _faults(facts, limits, added, noted):
            yield noted, fault


def noted_object(path: bytes) -> Oid | None:
    """The object that a path of a notes tree is about; None where it is about none."""
    name = path.replace(b"/", b"").decode("ascii", "replace")
    return Oid(name) if _HEX.match(name) else None


def _faults(facts: Facts, limits: Limits, added: Added, noted: Oid | None) -> Iterator[Fault]:
    why, shown = record_fault(added), plain(added.path)
    if why:
        yield Fault("tree", f"{shown}: {why}")
        return
    try:
        if facts.size(added.oid) > limits.record_bytes:
            yield Fault("size", f"{shown}: more than {limits.record_bytes} bytes")
            return
        data = facts.blob(added.oid)
    except RecordError as exc:
        yield Fault("tree", f"{shown}: {plain(exc.message)}")
        return
    if limits.secrets != "none" and has_secret(limits, data):
        yield Fault("secret", f"{shown}: holds a secret")
    if noted is not None:
        yield from link_faults(facts, noted, data.decode("utf-8", "replace"))


def link_faults(facts: Facts, noted: Oid, text: str) -> Iterator[Fault]:
    """Whether a note is on something and names what the commits name; a person's names nothing."""
    said = trailers(text)
    if not facts.exists(noted):
        if not _was_left(facts, said.get(layout.TRAILER_CHECKPOINT)):
            yield Fault("note", "it is on an object that is not there")
        return
    meta, commit = said.get(layout.TRAILER_CHECKPOINT), said.get(layout.TRAILER_COMMIT)
    if meta is not None and not _are_linked(facts, noted, Oid(meta)):
        yield Fault("note", f"it names {plain(meta)[:12]}, which is not linked to its commit")
    if commit is not None and not _are_linked(facts, Oid(commit), noted):
        yield Fault("note", f"it names {plain(commit)[:12]}, which is not linked to its commit")


def _was_left(facts: Facts, meta: str | None) -> bool:
    """Whether a note is of a commit that an amend left behind: its meta commit stays."""
    try:
        return meta is not None and head_of(facts.commit(parse_oid(meta))) is not None
    except RecordError:
        return False


def trailers(text: str) -> dict[str, str]:
    """The trailers of a note, which has no subject before them."""
    return message.trailers_of(f"note\n\n{text}")


def _are_linked(facts: Facts, run_commit: Oid, meta_commit: Oid) -> bool:
    """Whether one of the two commits names the other; what is not here cannot be judged."""
    pairs = (
        (run_commit, layout.TRAILER_CHECKPOINT, meta_commit),
        (meta_commit, layout.TRAILER_COMMIT, run_commit),
    )
    for commit, trailer, named in pairs:
        try:
            said = message.trailers_of(facts.commit(commit).message)
        except MissingObjectError:
            return True
        except RecordError:
            return False
        if said.get(trailer) == named:
            return True
    return False
