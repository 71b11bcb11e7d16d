"""How a run's two branches stand to each other: read from refs and commits alone.

Neither records nor states are looked at, so that a hook need not load what they are.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple, Protocol

from git_fabro.checkpoint import layout, message
from git_fabro.checkpoint.model import Commit, Oid, RunId
from git_fabro.errors import RecordError
from git_fabro.git.objects import Objects
from git_fabro.git.refs import Refs

_LONGEST_WALK = 10_000


class Reads(Protocol):
    """What is read from: the objects and refs of one repository."""

    @property
    def objects(self) -> Objects:
        """Its objects."""

    @property
    def refs(self) -> Refs:
        """Its refs."""


class Tips(NamedTuple):
    """Where the refs of a run stand; None where there is no such ref."""

    run: RunId
    run_tip: Oid | None
    meta_tip: Oid | None
    lease: Oid | None
    namespace: layout.Namespace


class Course(NamedTuple):
    """How the metadata tip stands to the run tip (the manual, "The invariant").

    ``meta`` is the meta commit to read. ``verdict`` is ``on`` course, ``forward`` (the ref is
    behind the run tip's meta commit) or ``back`` (a checkpoint follows: an interrupted rewind).
    ``unrecorded`` are commits by hand above the last one that a meta commit knows, oldest first;
    ``ordinal`` counts the checkpoints below them.
    """

    meta: Oid
    verdict: Literal["on", "forward", "back"]
    ordinal: int
    recorded_tip: Oid | None
    unrecorded: tuple[Oid, ...] = ()


def tips_of(source: Reads, run: RunId) -> Tips:
    """Where a run's refs stand now."""
    heads = source.refs.read(layout.meta_ref(run, "heads"))
    hidden = None if heads else source.refs.read(layout.meta_ref(run, "hidden"))
    return Tips(
        run=run,
        run_tip=source.refs.read(layout.run_ref(run)),
        meta_tip=heads or hidden,
        lease=source.refs.read(layout.lease_ref(run)),
        namespace="hidden" if hidden else "heads",
    )


def course_of(source: Reads, tips: Tips) -> Course:
    """How the metadata tip stands to the run tip.

    Raises:
        RecordError: neither is reachable from the other.
    """
    assert tips.meta_tip is not None
    if tips.run_tip is None:
        return Course(meta=tips.meta_tip, verdict="on", ordinal=0, recorded_tip=None)
    unrecorded: list[Oid] = []
    named = _named_commits(source, tips)
    tip: Oid | None = tips.run_tip
    while tip is not None and len(unrecorded) < _LONGEST_WALK:
        found = _link(source, tips, tip, named)
        if found is not None:
            meta, verdict, ordinal = found
            return Course(
                meta=meta,
                verdict=verdict,
                ordinal=ordinal,
                recorded_tip=tip,
                unrecorded=tuple(reversed(unrecorded)),
            )
        unrecorded.append(tip)
        parents = source.objects.parents(tip)
        tip = parents[0] if parents else None
    return _before_the_first(source, tips, unrecorded)


def _before_the_first(source: Reads, tips: Tips, unrecorded: list[Oid]) -> Course:
    """No checkpoint yet: what lies above the base was committed by hand."""
    assert tips.meta_tip is not None
    base = base_of(source, tips.meta_tip)
    above = unrecorded[: unrecorded.index(base)] if base in unrecorded else []
    first = tips.meta_tip
    for step, commit in source.objects.walk(tips.meta_tip):
        if _is_checkpoint(commit):
            first = commit.parents[0] if commit.parents else step
    return Course(
        meta=first,
        verdict="on" if first == tips.meta_tip else "back",
        ordinal=0,
        recorded_tip=base,
        unrecorded=tuple(reversed(above)),
    )


def base_of(source: Reads, meta: Oid) -> Oid | None:
    """The commit at which the run branch began, as start.json says."""
    data = source.objects.blob_at(meta, layout.START_JSON)
    try:
        value = json.loads(data) if data else {}
    except ValueError as exc:
        raise RecordError(f"{layout.START_JSON}: not JSON: {exc}") from exc
    base = value.get("base_sha") if isinstance(value, dict) else None
    return Oid(base) if isinstance(base, str) else None


Link = tuple[Oid, Literal["on", "forward", "back"], int]


def _link(
    source: Reads, tips: Tips, commit: Oid, named: dict[Oid, tuple[Oid, int, bool]]
) -> Link | None:
    """The meta commit of a run commit: the one that names it, else the one its trailer names."""
    assert tips.meta_tip is not None
    if commit in named:
        meta, ordinal, followed = named[commit]
        return meta if followed else tips.meta_tip, "back" if followed else "on", ordinal
    said = message.parse_checkpoint_message(source.objects.read_commit(commit).message)
    if said is None or said.branch is not None:
        return None
    meta = Oid(said.checkpoint)
    followed = False
    for step in source.objects.history(tips.meta_tip, limit=_LONGEST_WALK):
        if step == meta:
            verdict: Literal["on", "back"] = "back" if followed else "on"
            return (meta if followed else tips.meta_tip), verdict, said.ordinal or 0
        followed = followed or _follows(source, tips.run_tip, source.objects.read_commit(step))
    if source.objects.exists(meta) and source.objects.is_ancestor(tips.meta_tip, meta):
        return meta, "forward", said.ordinal or 0
    return None


def _is_checkpoint(commit: Commit) -> bool:
    return commit.subject.startswith(("checkpoint ", "commit "))


def _follows(source: Reads, run_tip: Oid | None, commit: Commit) -> bool:
    """Whether a meta commit is of a checkpoint that does not lie below the run tip.

    One that names a commit below it was made later for another reason: that commit was rewritten.
    """
    if not commit.subject.startswith("commit "):
        return _is_checkpoint(commit)
    named = message.trailers_of(commit.message).get(layout.TRAILER_COMMIT)
    if named is None or run_tip is None or not source.objects.exists(Oid(named)):
        return True
    return not source.objects.is_ancestor(Oid(named), run_tip)


def _named_commits(source: Reads, tips: Tips) -> dict[Oid, tuple[Oid, int, bool]]:
    """Commits by hand that meta commits name: meta commit, ordinal, whether a checkpoint follows.

    Looks as far back as the last checkpoint of a node, which is where a run tip can be.
    """
    assert tips.meta_tip is not None
    found: dict[Oid, tuple[Oid, int, bool]] = {}
    followed = False
    for step in source.objects.history(tips.meta_tip, limit=_LONGEST_WALK):
        commit = source.objects.read_commit(step)
        if commit.subject.startswith("checkpoint "):
            break
        trailers = message.trailers_of(commit.message)
        if layout.TRAILER_COMMIT in trailers:
            ordinal = int(trailers.get(layout.TRAILER_ORDINAL, "0") or 0)
            found.setdefault(Oid(trailers[layout.TRAILER_COMMIT]), (step, ordinal, followed))
            followed = followed or _follows(source, tips.run_tip, commit)
    return found


def named_by_hand(source: Reads, meta_tip: Oid) -> dict[Oid, Oid]:
    """All commits made by hand that the chain names, and the meta commits that name them."""
    return {named: meta for named, (meta, _) in ordinals_by_hand(source, meta_tip).items()}


def ordinals_by_hand(source: Reads, meta_tip: Oid) -> dict[Oid, tuple[Oid, int]]:
    """The same, each meta commit with the ordinal that it gives the commit."""
    found: dict[Oid, tuple[Oid, int]] = {}
    for meta, commit in source.objects.walk(meta_tip):
        trailers = message.trailers_of(commit.message)
        if layout.TRAILER_COMMIT in trailers:
            ordinal = int(trailers.get(layout.TRAILER_ORDINAL, "0") or 0)
            found.setdefault(Oid(trailers[layout.TRAILER_COMMIT]), (meta, ordinal))
    return found
