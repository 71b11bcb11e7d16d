"""Proving the record of runs as they lie in this repository. Reads only, and needs no git program.

The rules are ``checkpoint/verify*.py``'s, the same that a server judges a push by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from git_fabro import branches, history
from git_fabro.branches import Branches, Source
from git_fabro.checkpoint import layout, message, verify, verify_chain
from git_fabro.checkpoint.finding import Fault, Finding, meeting, plain
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.checkpoint.verify_chain import Chain
from git_fabro.checkpoint.verify_links import Branch
from git_fabro.checkpoint.verify_notes import link_faults, trailers
from git_fabro.errors import FabroError, RecordError
from git_fabro.fabroruns import FabroRun
from git_fabro.facts import RepositoryFacts, limits_of
from git_fabro.git import notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of the proof of one run, the oldest finding of each ref first.

    ``run`` is None for what belongs to no run; ``made_by`` is ``git-fabro`` or ``fabro``, whose
    runs have no records to be proved. ``information`` is what is no fault. ``commits`` is how
    many were looked at.
    """

    run: RunId | None
    findings: tuple[Finding, ...]
    information: tuple[str, ...] = ()
    made_by: str = "git-fabro"
    commits: int = 0


@dataclass(slots=True)
class _Proof:
    """One run that is being proved."""

    found: Branches
    findings: list[Finding] = field(default_factory=list)
    information: list[str] = field(default_factory=list)
    #: Run commits and meta commits that were looked at.
    seen: set[Oid] = field(default_factory=set)
    #: Those of them that a note belongs on.
    checkpoints: set[Oid] = field(default_factory=set)


def check(source: Source, wanted: Sequence[Branches], *, every: bool) -> Iterator[Checked]:
    """Proves some runs, one after the other.

    Args:
        source: The repository.
        wanted: The runs.
        every: They are all runs that there are: notes of no run and refs in the way are named too.

    Raises:
        RequestError: the configuration is wrong.
    """
    prover = _Prover(source)
    for found in wanted:
        yield prover.run(found)
    if every:
        left = [*prover.refs_in_the_way(), *prover.notes_of_nobody()]
        if left:
            yield Checked(run=None, findings=tuple(left))


class _Prover:
    """The facts of one repository, and which of its notes nobody has asked for yet."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._facts = RepositoryFacts(source)
        self._limits = limits_of(source.repository)
        self._notes, self._notes_fault = self._all_notes()
        #: Notes on objects that are not here, by the run that they tell of.
        self._astray: dict[str, list[Finding]] | None = None

    def run(self, found: Branches) -> Checked:
        proof = _Proof(found)
        try:
            if not history.is_ours(self._source, found):
                return self._fabros(proof)
            self._ours(proof)
        except FabroError as exc:
            ref = found.meta_ref or found.run_ref or ""
            proof.findings.append(Fault("chain", plain(exc.message)).at(ref, None))
        self._check_notes(proof)
        return _checked(proof, "git-fabro")

    def _ours(self, proof: _Proof) -> None:
        found, facts, limits = proof.found, self._facts, self._limits
        if found.meta_tip is None or found.meta_ref is None:
            text = "the run has no metadata branch"
            proof.findings.append(Fault("link", text).at(found.run_ref or "", found.run_tip))
            return
        tip = self._on_course(proof, found.meta_tip)
        proof.findings += verify_chain.prove(facts, limits, found.meta_ref, found.run, tip, None)
        chain = Chain(facts, tip)
        chain.root()
        proof.seen |= set(chain.subjects)
        if found.run_tip is not None and found.run_ref is not None:
            branch = Branch(facts, limits, found.run_ref, chain)
            branch.prove(found.run_tip, old=None, base=verify.base_of(facts, limits, tip))
            self._take(proof, branch)
            self._say_what_is_ahead(proof, chain, branch)
            for commit in branch.unrecorded:
                proof.information.append(f"no meta commit names {commit[:12]} yet, made by hand")
        for name, oid in branches.parallels(self._source, found.run).items():
            side = Branch(facts, limits, layout.branch_ref(found.run, name), chain)
            side.prove_side(oid)
            self._take(proof, side)

    def _say_what_is_ahead(self, proof: _Proof, chain: Chain, branch: Branch) -> None:
        """A record may come before its run, and a rewind may have died between the two."""
        made = {meta for meta, text in chain.subjects.items() if text.startswith("checkpoint ")}
        ahead = len(made - branch.linked)
        if ahead and not branch.findings:
            proof.information.append(f"checkpoints whose run commit is not here: {ahead}")

    def _take(self, proof: _Proof, branch: Branch) -> None:
        known = {(one.commit, one.rule, one.message) for one in proof.findings}
        for one in branch.findings:
            if one.commit is None or (one.commit, one.rule, one.message) not in known:
                proof.findings.append(one)
        proof.seen |= branch.seen
        proof.checkpoints |= branch.seen - set(branch.unrecorded)

    def _on_course(self, proof: _Proof, meta_tip: Oid) -> Oid:
        """The meta commit to begin at: the run tip's own, where a crash left the ref behind it."""
        if proof.found.run_tip is None:
            return meta_tip
        text = self._facts.commit(proof.found.run_tip).message
        said = message.parse_checkpoint_message(text)
        if said is None or said.branch is not None:
            return meta_tip
        named = Oid(said.checkpoint)
        try:
            is_ahead = named != meta_tip and meeting(self._facts, named, meta_tip) == meta_tip
        except RecordError:
            return meta_tip
        if is_ahead:
            proof.information.append("the metadata branch is behind: git fabro resume moves it")
        return named if is_ahead else meta_tip

    def _fabros(self, proof: _Proof) -> Checked:
        """What Fabro made: that its commits and files can be read, and name nothing odd."""
        found = proof.found
        told = FabroRun(self._source, found)
        links = [place.entry.link for place in told.places()]
        ref = found.meta_ref or found.run_ref or ""
        proof.findings += [Fault("schema", plain(one)).at(ref, None) for one in told.problems]
        for name, tip, base in (
            (found.meta_ref, found.meta_tip, None),
            (found.run_ref, found.run_tip, told.base()),
        ):
            if name is not None and tip is not None:
                branch = Branch(self._facts, self._limits, name, None, loose=True)
                branch.prove(tip, old=None, base=base)
                self._take(proof, branch)
        missing = sum(link in ("missing", "foreign") for link in links)
        if missing:
            proof.information.append(f"checkpoints without metadata: {missing}")
        return _checked(proof, "fabro")

    def _all_notes(self) -> tuple[dict[Oid, Oid], str]:
        try:
            return notes.all_notes(self._source.objects, self._source.refs), ""
        except RecordError as exc:
            return {}, plain(exc.message)

    def _check_notes(self, proof: _Proof) -> None:
        for oid in sorted(proof.seen & self._notes.keys()):
            self._check_note(proof, oid)
        missing = len(proof.checkpoints - self._notes.keys())
        if missing:
            proof.information.append(f"checkpoints without a note: {missing}")
        proof.findings += self._notes_astray().get(proof.found.run, ())

    def _check_note(self, proof: _Proof, oid: Oid) -> None:
        try:
            text = self._note(oid)
        except RecordError as exc:
            fault = Fault("note", plain(exc.message))
            proof.findings.append(fault.at(layout.NOTES_REF, oid))
            return
        for fault in link_faults(self._facts, oid, text):
            proof.findings.append(fault.at(layout.NOTES_REF, oid))

    def _notes_astray(self) -> Mapping[str, list[Finding]]:
        """Findings on objects that are not here, by the run that the note tells of."""
        if self._astray is None:
            self._astray = {}
            for oid in self._notes:
                if not self._facts.exists(oid):
                    run, findings = self._astray_note(oid)
                    self._astray.setdefault(run, []).extend(findings)
        return self._astray

    def _astray_note(self, oid: Oid) -> tuple[str, list[Finding]]:
        try:
            text = self._note(oid)
        except RecordError:
            text = ""
        run = trailers(text).get(layout.TRAILER_RUN, "")
        known = branches.branches_of(self._source, RunId(run)) if layout.is_run_id(run) else None
        faults = link_faults(self._facts, oid, text)
        findings = [fault.at(layout.NOTES_REF, oid) for fault in faults]
        return run if known is not None and known.tips else "", findings

    def _note(self, oid: Oid) -> str:
        most = self._limits.record_bytes
        data = self._source.objects.read_blob(self._notes[oid], limit_bytes=most)
        return data.decode("utf-8", "replace")

    def refs_in_the_way(self) -> list[Finding]:
        refs = self._source.refs
        found: dict[str, Oid | None] = {}
        for folder in layout.FOLDERS_IN_THE_WAY:
            found |= refs.list(folder)
        for name in layout.NAMES_IN_THE_WAY:
            try:
                commit = refs.read(name)
            except RecordError:
                # What is no ref takes the place of one all the same.
                found[name] = None
            else:
                found |= {} if commit is None else {name: commit}
        fault = Fault("ref-name", verify.IN_THE_WAY)
        return [fault.at(ref, found[ref]) for ref in sorted(found)]

    def notes_of_nobody(self) -> list[Finding]:
        if self._notes_fault:
            return [Fault("note", self._notes_fault).at(layout.NOTES_REF, None)]
        return list(self._notes_astray().get("", ()))


def _checked(proof: _Proof, made_by: str) -> Checked:
    return Checked(
        run=proof.found.run,
        findings=tuple(proof.findings),
        information=tuple(proof.information),
        made_by=made_by,
        commits=len(proof.seen),
    )
