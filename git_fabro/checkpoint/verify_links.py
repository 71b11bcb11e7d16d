"""The commits of a run branch: each linked to a meta commit of the run's own chain, and its files.

A link is judged by the chain and not by the run that a commit names: what a fork shares with its
source keeps the source's trailers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from git_fabro.checkpoint import foreign, message
from git_fabro.checkpoint.finding import Facts, Fault, Finding, Limits, first_parent, meeting, plain
from git_fabro.checkpoint.message import CheckpointTrailers
from git_fabro.checkpoint.model import Commit, Oid, parse_oid
from git_fabro.checkpoint.verify_chain import Chain, is_fabros
from git_fabro.checkpoint.verify_tree import Comparison, file_faults
from git_fabro.errors import MissingObjectError, RecordError

#: So many commits may follow one another without a checkpoint before a branch is none of a run.
MOST_BY_HAND = 10_000
_FABROS = ("fabro(", "arc(")


class Branch:
    """One run branch, or branch of a fan-out, that is being proved; ``findings`` fills.

    ``chain`` None is a run of Fabro's, or one without metadata whose commits name none.
    ``seen`` are all commits that were looked at, ``linked`` the meta commits that they name.
    ``unrecorded`` are those made by hand that no meta commit names yet, the newest first.
    """

    def __init__(
        self, facts: Facts, limits: Limits, ref: str, chain: Chain | None, *, loose: bool = False
    ) -> None:
        self.findings: list[Finding] = []
        self.linked: set[Oid] = set()
        self.unrecorded: list[Oid] = []
        self._sound: set[Oid] = set()
        self._facts = facts
        self._limits = limits
        self._ref = ref
        self._chain = chain
        self._is_loose = loose
        self.seen: set[Oid] = set()

    def prove(self, tip: Oid, *, old: Oid | None, base: Oid | None) -> None:
        """Proves the commits from a tip down to an old tip's history, or to the base.

        Args:
            tip: The tip of the branch.
            old: A tip that was proved before; None: there is none.
            base: Where the run began; None where nothing says so.
        """
        try:
            stop = meeting(self._facts, tip, old) if old is not None else None
            self._walk(tip, stop, base)
        except RecordError as exc:
            self._found(None, Fault("link", plain(exc.message)))
        # The oldest first: what lies above a broken commit may be broken by it.
        by_commit = [list(some) for _, some in groupby(self.findings, lambda one: one.commit)]
        self.findings = [one for some in reversed(by_commit) for one in some]

    def _walk(self, tip: Oid, stop: Oid | None, base: Oid | None) -> None:
        """The commits are counted first: what is no run's branch is not worth opening its files."""
        steps: list[tuple[Oid, Commit, CheckpointTrailers | None]] = []
        at: Oid | None = tip
        by_hand = 0
        while at not in (None, stop, base):
            assert at is not None
            commit = self._facts.commit(at)
            said = message.parse_checkpoint_message(commit.message)
            if self._ends_at(commit, said):
                break
            steps.append((at, commit, said))
            by_hand = by_hand + 1 if said is None else 0
            if by_hand > MOST_BY_HAND:
                self._found(at, Fault("link", f"no checkpoint among {MOST_BY_HAND} commits"))
                return
            if base is None and said is not None and said.ordinal == 1:
                break
            at = first_parent(self._facts, at, commit)
        if at is None and base is not None and not self._facts.boundary:
            self._found(None, Fault("link", f"it does not begin at its base {base[:12]}"))
            return
        for oid, commit, said in steps:
            self._commit(oid, commit, said)

    def _ends_at(self, commit: Commit, said: CheckpointTrailers | None) -> bool:
        """Whether nothing of the run lies below: what a fork shares with Fabro has no numbers."""
        if self._is_loose:
            return not commit.message.startswith(_FABROS) and not is_fabros(commit)
        return said is None and is_fabros_commit(commit)

    def prove_side(self, tip: Oid) -> None:
        """Proves the commits of a branch of a fan-out, down to where it began."""
        try:
            self._side(tip)
        except RecordError as exc:
            self._found(None, Fault("link", plain(exc.message)))

    def _side(self, tip: Oid) -> None:
        at: Oid | None = tip
        while at is not None and at not in self.seen:
            commit = self._facts.commit(at)
            said = message.parse_checkpoint_message(commit.message)
            if said is None or said.branch is None:
                return
            self._commit(at, commit, said)
            at = first_parent(self._facts, at, commit)

    def _commit(self, oid: Oid, commit: Commit, said: CheckpointTrailers | None) -> None:
        self.seen.add(oid)
        fault = None if said is None or self._is_loose else self._link_fault(oid, said)
        if said is None and self._chain is not None and oid not in self._chain.by_hand:
            self.unrecorded.append(oid)
        if fault is not None:
            self._found(oid, fault)
        for one in self.file_faults(commit):
            self._found(oid, one)
        for parent in commit.parents[1:] if oid not in self._facts.boundary else ():
            self._side(parent)

    def _link_fault(self, oid: Oid, said: CheckpointTrailers) -> Fault | None:
        """What is wrong with the meta commit that a run commit names."""
        shown = plain(said.checkpoint)[:12]
        if self._chain is None:
            return Fault("link", f"it names {shown}, and the run has no metadata branch")
        why = "is not on the chain of this run"
        try:
            named = parse_oid(said.checkpoint)
            is_on_it = self._chain.has(named)
        except MissingObjectError:
            if self._facts.boundary:
                # It may lie below the end of a shallow repository.
                return None
            is_on_it, why = False, "is not there"
        except RecordError:
            is_on_it, why = False, "is no commit"
        if not is_on_it:
            # What a meta commit names as made by hand may say what it likes.
            by_hand = self._chain.names(oid)
            return None if by_hand else Fault("link", f"it names {shown}, which {why}")
        self.linked.add(named)
        subject = self._chain.subjects[named]
        if f"{said.node}@{said.visit} (" not in subject and not self._chain.names(oid):
            return Fault("link", f"it names {shown}, which is of another visit")
        return None

    def file_faults(self, commit: Commit) -> Iterator[Fault]:
        """What is wrong with the files that a commit adds to those of its parent."""
        compared = Comparison.of(self._facts, self._limits)
        try:
            before = self._facts.commit(commit.parents[0]).tree if commit.parents else None
        except RecordError:
            # The last commit of a shallow repository.
            return
        yield from compared.faults(before, commit.tree)
        for added in compared.added:
            if added.oid not in self._sound:
                faults = list(file_faults(self._facts, self._limits, added))
                yield from faults
                if not faults:
                    self._sound.add(added.oid)

    def _found(self, oid: Oid | None, fault: Fault) -> None:
        self.findings.append(fault.at(self._ref, oid))


def is_fabros_commit(commit: Commit) -> bool:
    """Whether the Rust program made a run commit."""
    said = foreign.parse_run_commit(commit.message)
    return said is not None and not said.is_ours
