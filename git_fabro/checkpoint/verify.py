"""Whether a push may move the refs of runs: facts about its updates in, findings out.

All updates of one push are judged together, as they are to be once all have happened. What a ref
held before counts as proved, so that a push costs what it adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.finding import Facts, Fault, Finding, Limits, Rule, above, meeting, plain
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.checkpoint.verify_chain import Chain, is_fabros, prove
from git_fabro.checkpoint.verify_links import Branch, is_fabros_commit
from git_fabro.checkpoint.verify_notes import note_faults
from git_fabro.checkpoint.verify_record import MetaFiles
from git_fabro.checkpoint.verify_tree import FOLDER, Comparison, entries, file_faults
from git_fabro.errors import RecordError

_OURS = (layout.RUN_PREFIX, layout.META_PREFIX, "refs/fabro/")
_PARALLEL = re.compile(r"(?P<run>[^/]+)/(?P<node>.+)@[0-9]{1,9}/(?P<branch>.+)\Z")
#: What is wrong with a ref that leaves those of runs no place.
IN_THE_WAY = "as long as it is there, refs of runs cannot be"
_LEFT = "it leaves commits behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One ref of a push; ``old`` is None where it is made, ``new`` where it is deleted."""

    ref: str
    old: Oid | None
    new: Oid | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What the pusher asked for, and what the server allows; it takes both."""

    rewind_asked: bool = False
    rewind_allowed: bool = False
    prune_asked: bool = False
    delete_allowed: bool = False

    @property
    def rewind(self) -> bool:
        return self.rewind_asked and self.rewind_allowed

    @property
    def delete(self) -> bool:
        return self.prune_asked and self.delete_allowed


def is_ours(ref: str) -> bool:
    """Whether a ref is one that a push of it is judged for."""
    return ref.startswith(_OURS) or ref == layout.NOTES_REF or layout.is_in_the_way(ref)


def judge(
    facts: Facts, limits: Limits, grants: Grants, updates: Sequence[Update]
) -> tuple[Finding, ...]:
    """What is wrong with a push; empty if it may happen. Refs of others are not looked at."""
    push = _Push(facts, limits, grants, updates)
    ours = sorted((one for one in updates if is_ours(one.ref)), key=lambda one: one.ref)
    return tuple(finding for update in ours for finding in push.findings(update))


def chain_of(facts: Facts, tip: Oid | None) -> Chain | None:
    """The chain of a run of ours; None without metadata, or where Fabro made it."""
    if tip is None or is_fabros(facts.commit(tip)):
        return None
    return Chain(facts, tip)


def base_of(facts: Facts, limits: Limits, tip: Oid) -> Oid | None:
    """Where a run began, as start.json at a meta commit says; None where that cannot be read."""
    value = MetaFiles(facts, limits, facts.commit(tip).tree).document(layout.START_JSON)
    base = None if isinstance(value, Fault) else value.get("base_sha")
    return Oid(base) if isinstance(base, str) else None


class _Push:
    """One push: where refs stand, and where they are to stand."""

    def __init__(
        self, facts: Facts, limits: Limits, grants: Grants, updates: Sequence[Update]
    ) -> None:
        self._facts = facts
        self._limits = limits
        self._grants = grants
        self._after = {one.ref: one.new for one in updates}

    def _ref(self, name: str) -> Oid | None:
        """Where a ref is to stand."""
        return self._after[name] if name in self._after else self._facts.ref(name)

    def findings(self, update: Update) -> Iterator[Finding]:
        ref = update.ref
        if not ref.isprintable():
            yield _finding("ref-name", update, "it holds what is no printable character")
            return
        if layout.is_in_the_way(ref):
            # Taking it away is how somebody makes room again.
            if update.new is not None:
                yield _finding("ref-name", update, IN_THE_WAY)
            return
        try:
            yield from self._by_kind(update)
        except RecordError as exc:
            yield _finding("chain", update, plain(exc.message))

    def _by_kind(self, update: Update) -> Iterator[Finding]:
        ref = update.ref
        for prefix, judged in (
            (layout.RUN_PREFIX, self._run),
            (layout.META_PREFIX, self._meta),
            (layout.HIDDEN_META_PREFIX, self._meta),
            (layout.LEASE_PREFIX, self._lease),
            (layout.PARALLEL_PREFIX, self._parallel),
            (layout.SNAPSHOT_PREFIX, self._snapshot),
        ):
            if ref.startswith(prefix):
                run, _, _ = ref.removeprefix(prefix).partition("/")
                if layout.is_run_id(run):
                    yield from (
                        self._deletion(update) if update.new is None else judged(update, RunId(run))
                    )
                else:
                    yield _finding("id", update, f"not a run id: {plain(run)[:80]}")
                return
        if ref in (layout.NOTES_REF, layout.PRUNED_REF):
            judged_notes = self._notes if ref == layout.NOTES_REF else self._pruned
            yield from self._deletion(update) if update.new is None else judged_notes(update)
        else:
            yield _finding("ref-name", update, "it belongs to one repository alone, or to nobody")

    def _deletion(self, update: Update) -> Iterator[Finding]:
        run = layout.run_of(update.ref)
        if not self._grants.delete:
            yield _finding("delete", update, self._why_not(layout.OPTION_PRUNE))
        elif run is not None and not update.ref.startswith(layout.RUN_PREFIX):
            stays = self._ref(layout.run_ref(run)) is not None
            others = [self._ref(one) for one in _meta_refs(run)]
            if stays and not any(others):
                yield _finding("delete", update, "the run branch stays without its record")

    def _why_not(self, option: str) -> str:
        asked = (
            self._grants.rewind_asked
            if option == layout.OPTION_REWIND
            else self._grants.prune_asked
        )
        what = _LEFT if option == layout.OPTION_REWIND else "it deletes what belongs to a run"
        if asked:
            return f"{what}, which this server does not allow"
        return f"{what}, and the push has not the option {option}"

    def _run(self, update: Update, run: RunId) -> Iterator[Finding]:
        tip = _new(update)
        if "/" in update.ref.removeprefix(layout.RUN_PREFIX):
            yield _finding("ref-name", update, "a run branch has one name of its own")
            return
        left = update.old is not None and not self._facts.is_ancestor(update.old, tip)
        if left and not self._grants.rewind:
            yield _finding("rewind", update, self._why_not(layout.OPTION_REWIND))
        yield from self._branch(update, run)

    def _branch(self, update: Update, run: RunId) -> Iterator[Finding]:
        facts, tip = self._facts, _new(update)
        meta = next(filter(None, map(self._ref, _meta_refs(run))), None)
        chain = chain_of(facts, meta)
        is_loose = chain is None and is_fabros_commit(facts.commit(tip))
        if meta is None and not is_loose:
            yield _finding("link", update, "the run has no metadata branch")
            return
        branch = Branch(facts, self._limits, update.ref, chain, loose=is_loose)
        base = base_of(facts, self._limits, meta) if meta is not None and chain else None
        branch.prove(tip, old=update.old, base=base)
        yield from branch.findings

    def _meta(self, update: Update, run: RunId) -> Iterator[Finding]:
        facts, tip, old = self._facts, _new(update), update.old
        if update.ref not in _meta_refs(run):
            yield _finding("ref-name", update, "a metadata branch has one name of its own")
            return
        if all(map(self._ref, _meta_refs(run))):
            yield _finding("ref-name", update, "the run has a metadata branch at another place")
        met = meeting(facts, tip, old) if old is not None else None
        if met != old:
            if met is None:
                yield _finding("append-only", update, "it is another chain than the one before")
            elif not self._grants.rewind:
                yield _finding("append-only", update, self._why_not(layout.OPTION_REWIND))
            elif layout.run_ref(run) not in self._after and self._ref(layout.run_ref(run)):
                stays = Update(
                    ref=layout.run_ref(run), old=None, new=self._ref(layout.run_ref(run))
                )
                yield from self._branch(stays, run)
        was_fabros = old is None or is_fabros(facts.commit(old))
        if was_fabros and is_fabros(facts.commit(tip)):
            yield from self._fabros(update)
            return
        yield from prove(facts, self._limits, update.ref, run, tip, old)

    def _fabros(self, update: Update) -> Iterator[Finding]:
        """What Fabro made has no records to be proved; its files are looked at."""
        branch = Branch(self._facts, self._limits, update.ref, None, loose=True)
        for oid, commit in above(self._facts, _new(update), update.old):
            if not is_fabros(commit):
                text = "Fabro's commits stand on one that Fabro did not make"
                yield Fault("chain", text).at(update.ref, oid)
                return
            for fault in branch.file_faults(commit):
                yield fault.at(update.ref, oid)

    def _lease(self, update: Update, run: RunId) -> Iterator[Finding]:
        yield from self._only_forward(update, "a lease moves forward only")
        yield from self._files(update)

    def _parallel(self, update: Update, run: RunId) -> Iterator[Finding]:
        tip = _new(update)
        if _PARALLEL.match(update.ref.removeprefix(layout.PARALLEL_PREFIX)) is None:
            yield _finding("ref-name", update, "not run, visit and branch")
            return
        left = update.old is not None and not self._facts.is_ancestor(update.old, tip)
        if left and not self._grants.rewind:
            yield _finding("rewind", update, self._why_not(layout.OPTION_REWIND))
        meta = next(filter(None, map(self._ref, _meta_refs(run))), None)
        branch = Branch(self._facts, self._limits, update.ref, chain_of(self._facts, meta))
        branch.prove_side(tip)
        yield from branch.findings

    def _snapshot(self, update: Update, run: RunId) -> Iterator[Finding]:
        name = update.ref.removeprefix(layout.snapshot_prefix(run))
        if not layout.is_ulid(name):
            yield _finding("ref-name", update, "not the id of a snapshot")
            return
        if update.old is not None:
            yield _finding("append-only", update, "a snapshot never changes")
        yield from self._files(update)

    def _files(self, update: Update) -> Iterator[Finding]:
        """The files of a commit beside its parent's, and those of a saved index beside them."""
        tip = _new(update)
        branch = Branch(self._facts, self._limits, update.ref, None, loose=True)
        commit = self._facts.commit(tip)
        for fault in branch.file_faults(commit):
            yield fault.at(update.ref, tip)
        for index in commit.parents[1:]:
            root = self._facts.tree(self._facts.commit(index).tree)
            for entry in entries(root, len(index) // 2):
                if entry.mode == FOLDER:
                    yield from self._compared(update, commit.tree, entry.oid)

    def _compared(self, update: Update, before: Oid, after: Oid) -> Iterator[Finding]:
        compared = Comparison.of(self._facts, self._limits)
        for fault in compared.faults(before, after):
            yield fault.at(update.ref, update.new)
        for added in {one.oid: one for one in compared.added}.values():
            for fault in file_faults(self._facts, self._limits, added):
                yield fault.at(update.ref, update.new)

    def _only_forward(self, update: Update, text: str) -> Iterator[Finding]:
        if update.old is not None and not self._facts.is_ancestor(update.old, _new(update)):
            yield _finding("append-only", update, text)

    def _notes(self, update: Update) -> Iterator[Finding]:
        yield from self._only_forward(update, "notes of others would be lost")
        before = self._facts.commit(update.old).tree if update.old is not None else None
        after = self._facts.commit(_new(update)).tree
        for noted, fault in note_faults(self._facts, self._limits, before, after):
            yield fault.at(update.ref, noted or update.new)

    def _pruned(self, update: Update) -> Iterator[Finding]:
        yield from self._only_forward(update, "tombstones of others would be lost")
        yield from self._files(update)


def _meta_refs(run: RunId) -> tuple[str, str]:
    return layout.meta_ref(run, "heads"), layout.meta_ref(run, "hidden")


def _new(update: Update) -> Oid:
    assert update.new is not None
    return update.new


def _finding(rule: Rule, update: Update, text: str) -> Finding:
    return Fault(rule, text).at(update.ref, update.new or update.old)
