"""The timeline of a run, read newest first as far as somebody wants it. Nothing is written here.

What an entry means is ``checkpoint/timeline.py``'s; Fabro's runs are read in ``fabroruns.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from git_fabro.branches import Branches, Source, branches_of
from git_fabro.checkpoint import layout, message
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.checkpoint.timeline import Entry, Link
from git_fabro.errors import FabroError, MissingObjectError, NotFoundError, RecordError
from git_fabro.git import walks
from git_fabro.git.walks import Step
from git_fabro.place import LONGEST_WALK, Detail, History, Place, files_changed

# What a run commit of ours is, character by character; anything else is parsed at leisure.
_EXACT = re.compile(
    r"fabro\(([^)]*)\): ([^\n]*) \(([^()\n]*)\)\n\n"
    r"Fabro-Run: [^\n]*\nFabro-Completed: \d+\nFabro-Checkpoint: ([0-9a-f]{40}|[0-9a-f]{64})\n"
    r"Fabro-Visit: (\d{1,9})\nFabro-Ordinal: (\d{1,9})\n*\Z",
    re.ASCII,
)
_SEQ = f"\n{layout.TRAILER_SEQ}: ".encode()
_NAMES_A_COMMIT = f"\n{layout.TRAILER_COMMIT}: ".encode()
_BASE = re.compile(rb'"base_sha"\s*:\s*"([0-9a-f]{40,64})"')
_NOTED = re.compile(
    rb"\nFabro-Checkpoint: ([0-9a-f]+)\n(?:Fabro-Visit: [^\n]*\n)?Fabro-Duration: (\d{1,12})ms\n"
)
_FINISHED = b'"kind":"node.finished"'
#: A meta commit that is on the chain is nearly always among the next ones.
_NEAR = 64


class Said(NamedTuple):
    """What a run commit of ours says of itself."""

    run: str
    node: str
    status: str
    named: Oid
    visit: int
    ordinal: int


def is_ours(source: Source, branches: Branches) -> bool:
    """Whether git-fabro made a run: its records are numbered, and its commits count themselves.

    Raises:
        RecordError: a tip is no commit.
        MissingObjectError: a tip is absent.
    """
    meta, at = branches.meta_tip, branches.run_tip
    if meta is not None and _SEQ in source.objects.commit_data(meta):
        return True
    # Imported here, and below: 10 ms that a table of a run of ours does not pay.
    from git_fabro.checkpoint import foreign

    for _ in range(LONGEST_WALK):
        if at is None:
            break
        step = walks.one_step(source.objects, at)
        said = foreign.parse_run_commit(_text(step.message), branches.run)
        if said is not None:
            return said.is_ours
        at = step.parent
    return False


def timeline_of(source: Source, run: RunId, *, detailed: bool = True) -> History:
    """The timeline of a run, whoever made it, from this repository or as a remote had it.

    Args:
        source: The repository.
        run: The exact id of the run.
        detailed: Whether most places will be asked for their details, which are read with them
            then. All can be asked for either way.

    Raises:
        NotFoundError: it has no branch.
    """
    branches = branches_of(source, run)
    if not branches.tips:
        raise NotFoundError(f"no such run: {run}", hint="git fabro list -a")
    # A tip that counts itself says all: nothing else is read before the first row is there.
    begun = _steps(source, branches.run_tip, layout.NOTES_REF if detailed else None)
    first = next(begun, None)
    if (first is not None and _EXACT.match(_text(first.message))) or is_ours(source, branches):
        return Timeline(source, branches, begun=chain([first] if first is not None else [], begun))
    # Imported here: 40 ms that looking at runs of ours does not pay.
    from git_fabro import fabroruns

    return fabroruns.FabroRun(source, branches)


def _steps(source: Source, tip: Oid | None, notes_ref: str | None) -> Iterator[Step]:
    """The commits of a run branch, newest first; what cannot be read is told to who goes on."""
    if tip is None:
        return iter(())
    return walks.steps(source.repository, source.objects, tip, notes_ref=notes_ref)


class Timeline:
    """The checkpoints of one run of ours; ``problems`` fills as places are asked for.

    ``begun`` are the steps of the run branch, if somebody has looked at them already.
    """

    def __init__(
        self, source: Source, branches: Branches, *, begun: Iterator[Step] | None = None
    ) -> None:
        self._begun = begun
        self.source = source
        self.branches = branches
        self.problems: list[str] = []
        self.made_by = "git-fabro"

    def places(self) -> Iterator[Place]:
        """The places, the newest first; what cannot be read ends them and is a problem."""
        try:
            yield from self._places()
        except (MissingObjectError, RecordError) as exc:
            self.problems.append(exc.message)

    def _places(self) -> Iterator[Place]:
        metas = Chain(self.source, self.branches.meta_tip)
        by_hand: list[Step] = []
        ordinal: int | None = None
        run, steps, self._begun = self.branches.run, self._begun, None
        for step in steps or _steps(self.source, self.branches.run_tip, layout.NOTES_REF):
            said = _said(step.message)
            # The base is looked up where a commit may lie below it; that costs three objects.
            is_sure = said is not None and said.run == run and not by_hand
            if not is_sure and (len(by_hand) > _most(ordinal) or step.oid == self._base):
                break
            if said is None and _is_fabros(step):
                yield from self._below_a_fork(metas, by_hand, step)
                return
            if said is None:
                by_hand.append(step)
                continue
            meta, link = metas.link(said.named)
            if by_hand:
                yield from _made_by_hand(metas, by_hand, said.ordinal)
                by_hand.clear()
            yield _place(step, said, meta, link)
            ordinal = said.ordinal
            if ordinal <= 1:
                return
        if by_hand and by_hand[-1].parent == self._base:
            yield from _made_by_hand(metas, by_hand, 0)

    @cached_property
    def _base(self) -> Oid | None:
        return self.base()

    def base(self) -> Oid | None:
        """The commit at which the run branch began, as start.json says."""
        if self.branches.meta_tip is None:
            return None
        data = self.source.objects.blob_at(self.branches.meta_tip, layout.START_JSON)
        found = _BASE.search(data or b"")
        return Oid(found[1].decode("ascii")) if found else None

    def _below_a_fork(self, metas: Chain, by_hand: list[Step], step: Step) -> Iterator[Place]:
        """What a fork of one of Fabro's runs shares with it; ours counts on from there."""
        # Imported here: 40 ms that only forks of Fabro's runs pay.
        from git_fabro import fabroruns
        from git_fabro.checkpoint import foreign

        said = foreign.parse_run_commit(_text(step.message))
        assert said is not None
        shared = Branches(run=RunId(said.run), run_tip=step.oid, meta_tip=metas.before_the_fork())
        found = fabroruns.FabroRun(self.source, shared)
        places = list(found.places())
        self.problems += found.problems
        top = places[0].entry.ordinal if places else 0
        yield from _made_by_hand(metas, by_hand, top or 0)
        yield from places

    def detail(self, place: Place) -> Detail:
        """How long an entry took and how many files it changed."""
        step, entry = place.step, place.entry
        if step is None or entry.kind == "snapshot":
            return Detail(None, None)
        return Detail(self._duration(entry, step), files_changed(self.source.objects, place))

    def interior(self) -> dict[str, str]:
        """The nodes inside fan-outs, and the outermost parallel node of each, as the graph says."""
        # Imported here: 30 ms that only those pay who name a node without a checkpoint.
        from git_fabro.checkpoint import foreign, foreign_values

        tip = self.branches.meta_tip
        data = self.source.objects.blob_at(tip, layout.GRAPH) if tip is not None else None
        return foreign.interior(*foreign_values.graph_from_dot(data or b""))

    def _duration(self, entry: Entry, step: Step) -> int | None:
        """Out of the note, if it is of this checkpoint; else out of the record."""
        if entry.node is None or entry.meta_commit is None:
            return None
        found = _NOTED.search(step.note) if step.note else None
        if found is not None and found[1].decode() == entry.meta_commit:
            return int(found[2])
        return _recorded_duration(self.source, entry.meta_commit, entry.node)


def _most(ordinal: int | None) -> int:
    """How many commits made by hand there can be above the next checkpoint."""
    return LONGEST_WALK if ordinal is None else ordinal - 1


def _said(data: bytes) -> Said | None:
    text = data.decode("utf-8", "replace")
    match = _EXACT.match(text)
    if match is not None:
        run, node, status, named, visit, ordinal = match.groups()
        return Said(run, node, status, Oid(named), int(visit), int(ordinal))
    if not text.startswith("fabro("):
        return None
    said = message.parse_checkpoint_message(text)
    if said is None or said.ordinal is None or said.branch is not None:
        return None
    oid = Oid(said.checkpoint)
    return Said(said.run, said.node, said.status, oid, said.visit, said.ordinal)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def said_at(source: Source, commit: Oid) -> Said | None:
    """What a run commit of ours says of itself; None if it is none.

    Raises:
        MissingObjectError: it is absent.
    """
    return _said(walks.one_step(source.objects, commit).message)


def is_near(source: Source, meta_tip: Oid, named: Oid) -> bool:
    """Whether a meta commit is among the last ones, and no checkpoint follows it.

    Raises:
        MissingObjectError: one is absent.
    """
    at: Oid | None = meta_tip
    for _ in range(_NEAR):
        if at is None or at == named:
            break
        step = walks.one_step(source.objects, at)
        if step.message.startswith((b"checkpoint ", b"commit ")):
            return False
        at = step.parent
    return at == named


def _is_fabros(step: Step) -> bool:
    if not step.message.startswith((b"fabro(", b"arc(")):
        return False
    from git_fabro.checkpoint import foreign

    said = foreign.parse_run_commit(_text(step.message))
    return said is not None and not said.is_ours


def _place(step: Step, said: Said, meta: Oid | None, link: Link) -> Place:
    entry = Entry(
        ordinal=said.ordinal,
        kind="node",
        node=said.node,
        visit=said.visit,
        status=said.status,
        run_commit=step.oid,
        meta_commit=meta,
        named_meta_commit=said.named,
        link=link,
        when=step.when,
    )
    return Place(entry, step, step.parent)


def _made_by_hand(metas: Chain, by_hand: list[Step], below: int) -> Iterator[Place]:
    """Commits by hand, newest first, above the checkpoint with this number."""
    for number, step in zip(range(below + len(by_hand), below, -1), by_hand, strict=True):
        meta = metas.meta_of(step.oid)
        entry = Entry(
            ordinal=number,
            kind="commit",
            node=None,
            visit=None,
            status=None,
            run_commit=step.oid,
            meta_commit=meta,
            named_meta_commit=meta,
            link="none" if meta is None else "ok",
            when=step.when,
        )
        yield Place(entry, step, step.parent)


class Chain:
    """The meta commits of a run, read from the tip down only as far as links ask for."""

    def __init__(self, source: Source, tip: Oid | None) -> None:
        self._source = source
        self._tip = tip
        self._rest = (
            iter(()) if tip is None else walks.chain(source.repository, source.objects, tip)
        )
        self._seen: set[Oid] = set()
        self._order: list[Oid] = []
        self._looked = 0
        self._of_hand: dict[Oid, Oid] = {}
        self._is_first = True

    def link(self, named: Oid) -> tuple[Oid | None, Link]:
        """The meta commit that a run commit names, if it is on the chain, and what the link is."""
        is_first, self._is_first = self._is_first, False
        if self._has(named, _NEAR) or (is_first and self._adopts(named)):
            return named, "ok"
        if not self._source.objects.exists(named):
            return None, "missing"
        return (named, "ok") if self._has(named, None) else (None, "foreign")

    def _has(self, meta: Oid, limit: int | None) -> bool:
        if meta in self._seen:
            return True
        for step in islice(self._rest, limit):
            self._seen.add(step)
            self._order.append(step)
            if step == meta:
                return True
        return False

    def _adopts(self, named: Oid) -> bool:
        """Whether the run tip's meta commit is ahead of the ref, as a crash may leave it."""
        if self._tip is None or not self._source.objects.exists(named):
            return False
        ahead: list[Oid] = []
        for step in self._source.objects.history(named, limit=_NEAR):
            if step == self._tip:
                self._seen.update(ahead)
                self._order[:0] = ahead
                return True
            ahead.append(step)
        return False

    def meta_of(self, commit: Oid) -> Oid | None:
        """The meta commit that names a commit made by hand, as far as the chain was read."""
        if self._looked == 0 and not self._order:
            self._has(Oid(""), _NEAR)
        for meta in self._order[self._looked :]:
            data = self._source.objects.commit_data(meta)
            if _NAMES_A_COMMIT in data:
                named = message.trailers_of(_text(data)).get(layout.TRAILER_COMMIT, "")
                self._of_hand.setdefault(Oid(named), meta)
        self._looked = len(self._order)
        return self._of_hand.get(commit)

    def before_the_fork(self) -> Oid | None:
        """The newest meta commit that Fabro made: the one below the first of ours."""
        while (step := next(self._rest, None)) is not None:
            self._seen.add(step)
            self._order.append(step)
        for step in self._order:
            if _SEQ not in self._source.objects.commit_data(step):
                return step
        return None


def _recorded_duration(source: Source, meta: Oid, node: str) -> int | None:
    # Imported here: 10 ms that a table out of notes does not pay.
    import json

    try:
        data = source.objects.blob_at(meta, layout.RECORDS) or b""
        for line in data.split(b"\n"):
            record = json.loads(line) if _FINISHED in line else {}
            if record.get("position", {}).get("node") == node:
                return int(record["data"]["duration_ms"])
    except (FabroError, ValueError, KeyError, TypeError, AttributeError):
        # A table is shown without what cannot be read; fsck says why.
        return None
    return None
