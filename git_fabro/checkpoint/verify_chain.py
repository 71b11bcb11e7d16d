"""The metadata branch of a run: one commit after the other, each the fold of its records.

A chain is proved from where it was proved before: the state there is read, and each commit above it
costs what it adds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from git_fabro.checkpoint import codec, foreign, layout, message
from git_fabro.checkpoint.finding import Facts, Fault, Finding, Limits, above, first_parent, plain
from git_fabro.checkpoint.model import Commit, Oid
from git_fabro.checkpoint.verify_record import MetaFiles
from git_fabro.errors import RecordError
from git_fabro.workflow import fold
from git_fabro.workflow.records import Record, RunCreated, RunForked
from git_fabro.workflow.state import RunState

_SEQ = re.compile(r"[0-9]{1,12}\Z")
_FORK = "fork from "
_FABROS = ("init run", "initialize branch")
#: What evolving a state raises where records are not those of a run.
_NO_FOLD = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
#: Fields of checkpoint.json that no fold knows.
_NOT_FOLDED = frozenset({"git_commit_sha"})


@dataclass(frozen=True, slots=True)
class Head:
    """What a meta commit of ours says of itself."""

    run: str
    seq: int
    status: str


def head_of(commit: Commit) -> Head | None:
    """The trailers of a meta commit; None where one is missing, as in all of Fabro's."""
    said = message.trailers_of(commit.message)
    seq = said.get(layout.TRAILER_SEQ, "")
    run, status = said.get(layout.TRAILER_RUN), said.get(layout.TRAILER_STATUS)
    if run is None or status is None or _SEQ.match(seq) is None:
        return None
    return Head(run, int(seq), status)


def is_fabros(commit: Commit) -> bool:
    """Whether the Rust program made a meta commit: its subjects, and no number."""
    text = commit.message
    known = foreign.is_checkpoint(text) or foreign.is_final(text) or text.startswith(_FABROS)
    return known and head_of(commit) is None


class Chain:
    """The meta commits below a tip, read from there down only as far as somebody asks.

    ``subjects`` are those read so far, ``by_hand`` the commits that they name as made by hand.
    """

    def __init__(self, facts: Facts, tip: Oid) -> None:
        self.tip = tip
        self.subjects: dict[Oid, str] = {}
        self.by_hand: dict[str, Oid] = {}
        self._facts = facts
        self._next: Oid | None = tip

    def has(self, meta: Oid) -> bool:
        """Whether a meta commit is on the chain.

        Raises:
            MissingObjectError: it, or one above it, is absent.
            RecordError: it, or one above it, is no commit.
        """
        if meta not in self.subjects:
            # Said first, as it is another thing to be absent than to be another run's.
            self._facts.commit(meta)
        while meta not in self.subjects and self._step():
            continue
        return meta in self.subjects

    def names(self, commit: Oid) -> bool:
        """Whether a meta commit names a commit as made by hand; the whole chain is asked."""
        while commit not in self.by_hand and self._step():
            continue
        return commit in self.by_hand

    def root(self) -> Oid:
        """The oldest commit of the chain."""
        while self._step():
            continue
        return next(reversed(self.subjects), self.tip)

    def _step(self) -> bool:
        at = self._next
        if at is None:
            return False
        commit = self._facts.commit(at)
        self.subjects[at] = commit.subject
        named = message.trailers_of(commit.message).get(layout.TRAILER_COMMIT)
        if named is not None:
            self.by_hand.setdefault(named, at)
        self._next = first_parent(self._facts, at, commit)
        return True


def prove(
    facts: Facts, limits: Limits, ref: str, run: str, tip: Oid, proved: Oid | None
) -> list[Finding]:
    """What is wrong with a metadata branch; its first broken commit is the last one looked at.

    Args:
        facts: The objects.
        limits: How large files may be, and which secrets are looked for.
        ref: The branch, for the findings.
        run: Whose branch it is to be.
        tip: Its tip.
        proved: A commit whose state holds already, on the same chain or on one that was left;
            None: all is proved.
    """
    try:
        steps = list(above(facts, tip, proved))
        steps.reverse()
        if steps and steps[0][0] in facts.boundary:
            # Nothing is known of what lies below in a shallow repository: its end is believed.
            below: Oid | None = steps.pop(0)[0]
        else:
            below = first_parent(facts, *steps[0]) if steps else tip
        proved_there = (below, facts.commit(below)) if below is not None else None
        walk = Walk(facts, limits, ref, proved_there)
        # What Fabro made has no records; a fork of ours that stands on it begins with a state.
        while steps and below is None and is_fabros(steps[0][1]):
            walk.stand_on_fabros(steps.pop(0)[1])
    except RecordError as exc:
        return [Fault("chain", plain(exc.message)).at(ref, None)]
    for oid, commit in steps:
        if not walk.step(oid, commit):
            return walk.findings
    if walk.run != run:
        walk.findings.append(
            Fault("chain", f"it is the record of run {plain(walk.run)}").at(ref, tip)
        )
    return walk.findings


class Walk:
    """A proof on its way: the state so far, and the tree of the last commit."""

    def __init__(
        self, facts: Facts, limits: Limits, ref: str, below: tuple[Oid, Commit] | None
    ) -> None:
        self.run = ""
        self.findings: list[Finding] = []
        self._facts = facts
        self._limits = limits
        self._ref = ref
        self._sound: set[tuple[Oid, bool]] = set()
        self._writer = codec.StateWriter()
        self._tree: Oid | None = None
        #: None where no record tells how the state of the next commit came to be.
        self._state: RunState | None = RunState()
        if below is not None:
            self._stand_on(*below)

    def stand_on_fabros(self, commit: Commit) -> None:
        """Goes on from a commit of Fabro's, whose state no record tells."""
        self._state, self._tree = None, commit.tree

    def _stand_on(self, oid: Oid, commit: Commit) -> None:
        """Goes on from a commit that was proved before."""
        head = head_of(commit)
        if head is None:
            self.stand_on_fabros(commit)
            return
        found = MetaFiles(self._facts, self._limits, commit.tree).state()
        if isinstance(found, Fault):
            self._wrong(oid, found)
            self.stand_on_fabros(commit)
        else:
            self._state = found
        self.run, self._tree = head.run, commit.tree

    def step(self, oid: Oid, commit: Commit) -> bool:
        """Whether one commit more is good enough for the next one to be judged by it."""
        head = head_of(commit)
        if head is None:
            return self._wrong(oid, Fault("chain", "no Fabro-Run, Fabro-Seq or Fabro-Status"))
        if len(commit.parents) > 1:
            return self._wrong(oid, Fault("chain", "it has more than one parent"))
        files = MetaFiles(self._facts, self._limits, commit.tree, self._sound)
        records = files.records()
        is_import = _is_import(records)
        faults = list(files.faults(self._tree, head.run, is_import=is_import))
        self._tree = commit.tree
        fault = records if isinstance(records, Fault) else self._fault(commit, head, records, files)
        for one in [*faults, *([fault] if fault is not None and fault not in faults else [])]:
            self._wrong(oid, one)
        return not faults and fault is None

    def _fault(
        self, commit: Commit, head: Head, records: tuple[Record, ...], files: MetaFiles
    ) -> Fault | None:
        after = self._state.seq if self._state is not None else 0
        for record in records:
            if record.seq != after + 1:
                return Fault("records", f"record {record.seq} follows {after}")
            after = record.seq
        if head.seq != after:
            return Fault("records", f"Fabro-Seq is {head.seq}, the last record is {after}")
        return self._run_fault(commit, head, records) or self._fold_fault(head, records, files)

    def _run_fault(self, commit: Commit, head: Head, records: tuple[Record, ...]) -> Fault | None:
        """What is wrong with whose commit it is: the chain's run changes where a fork begins."""
        if not layout.is_run_id(head.run):
            return Fault("id", f"not a run id: {plain(head.run)[:80]}")
        named = [one.event for one in records if isinstance(one.event, (RunCreated, RunForked))]
        if not self.run or (named and commit.subject.startswith(_FORK)):
            self.run = head.run
        if head.run != self.run:
            return Fault("chain", f"it is of run {plain(head.run)}, not of {self.run}")
        for event in named:
            if event.run_id != self.run:
                return Fault("id", f"its records are of run {plain(event.run_id)[:80]}")
        return None

    def _fold_fault(
        self, head: Head, records: tuple[Record, ...], files: MetaFiles
    ) -> Fault | None:
        if _is_import(records):
            held = files.state()
            if isinstance(held, Fault):
                return held
            if held.seq != head.seq:
                return Fault("fold", "seq is not what the records add up to")
            self._state = held
        elif self._state is None:
            return Fault("fold", "what Fabro made is followed by no fork")
        else:
            try:
                self._state = fold.replay(records, self._state)
            except _NO_FOLD:
                return Fault("fold", "its records do not follow from those before")
        fault = self._state_fault(self._state, files)
        if fault is None and head.status != self._state.status:
            return Fault("fold", f"Fabro-Status is not {self._state.status}")
        return fault

    def _state_fault(self, state: RunState, files: MetaFiles) -> Fault | None:
        stored = files.file(layout.CHECKPOINT_JSON)
        if isinstance(stored, Fault) or stored == self._writer.document(state):
            return stored if isinstance(stored, Fault) else None
        value = files.document(layout.CHECKPOINT_JSON)
        if isinstance(value, Fault):
            return value
        wrong = _differing(value, self._writer.to_json(state))
        return Fault("fold", f"{wrong} is not what the records add up to") if wrong else None

    def _wrong(self, oid: Oid, fault: Fault) -> bool:
        self.findings.append(fault.at(self._ref, oid))
        return False


def _is_import(records: tuple[Record, ...] | Fault) -> bool:
    """Whether a commit begins with the state that it holds: a fork of a run that Fabro made."""
    if isinstance(records, Fault) or not records:
        return False
    return records[0].seq == 1 and isinstance(records[0].event, RunForked)


def _differing(stored: dict[str, Any], expected: dict[str, Any]) -> str:
    """The first field that is not as expected; "" where all are. Keys of others are theirs."""
    for key in sorted(expected):
        if key not in _NOT_FOLDED and (key not in stored or stored[key] != expected[key]):
            return key
    return ""
