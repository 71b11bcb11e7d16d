"""Which engine records a work tree, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import RequestError
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Objects
from git_fabro.git.snapshot.fast import FastEngine
from git_fabro.git.snapshot.folders import Signature, signature_of
from git_fabro.git.snapshot.model import ENGINE_NOTICE, Notice, Rules, Snapshot, UncoveredError
from git_fabro.git.snapshot.reference import ReferenceEngine

#: How many snapshots git takes before the fast engine is asked again without a sign.
PATIENCE = 50


@dataclass(slots=True)
class _Refusal:
    """Why the fast engine does not serve, and how long that counts."""

    reason: str
    left: int
    evidence: Path | None
    seen: Signature | None

    def counts(self) -> bool:
        """Whether the fast engine need not be asked again; each call is a snapshot."""
        if self.evidence is not None:
            return _look(self.evidence) == self.seen
        self.left -= 1
        return self.left >= 0


class Engine:
    """Snapshots of one work tree: by the fast engine where it covers it exactly, else by git.

    Which of the two is decided before anything is written.
    """

    def __init__(
        self, top: Path, wanted: str, fast: FastEngine, reference: ReferenceEngine
    ) -> None:
        self._top = top
        self._wanted = wanted
        self._fast = fast
        self._reference = reference
        self._refusal: _Refusal | None = None
        self._by_fast: Oid | None = None
        #: Which engine took the last snapshot: ``fast``, or ``git`` and why.
        self.reason = ""

    def record(self) -> Snapshot:
        """The work tree as a tree. A notice says when git has to be the engine, and why.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
            GitError: a file cannot be read, or the disk refuses an object.
            UncoveredError: ``fabro.snapshot`` is ``fast``, and that engine cannot serve.
        """
        refusal = "fabro.snapshot is git" if self._wanted == "git" else self._refused()
        if refusal is None:
            try:
                taken = self._fast.record()
            except UncoveredError as exc:
                if self._wanted == "fast":
                    raise
                self._refuse(exc)
                refusal = exc.reason
            else:
                self._by_fast = taken.tree
                return self._said("fast", "snapshots by the fast engine again", taken)
        if self._by_fast is not None:
            # What was tracked and how it was read is to be known to git too.
            self._fast.settle(self._by_fast)
            self._by_fast = None
        taken = self._reference.record()
        return self._said(f"git: {refusal}", f"snapshots by git itself: {refusal}", taken)

    def _said(self, reason: str, text: str, taken: Snapshot) -> Snapshot:
        """The snapshot, with a notice if its engine is not the one that goes without saying."""
        former, self.reason = self.reason or "fast", reason
        if reason == former:
            return taken
        return Snapshot(taken.tree, (Notice(ENGINE_NOTICE, text), *taken.notices))

    def _refused(self) -> str | None:
        if self._refusal is not None and self._refusal.counts():
            return self._refusal.reason
        return None

    def _refuse(self, exc: UncoveredError) -> None:
        evidence = None
        if exc.evidence is not None:
            evidence = Path(os.fsdecode(os.path.join(os.fsencode(self._top), exc.evidence)))
        left = 0 if exc.once else PATIENCE
        self._refusal = _Refusal(exc.reason, left, evidence, _look(evidence) if evidence else None)

    def prove(self) -> tuple[Notice, ...]:
        """Look at every file if the last snapshot did not; what the journal had not told of.

        Raises:
            GitError: a file cannot be read, or git itself has to record the work tree.
        """
        return self._fast.prove() if self._by_fast is not None else ()

    def look_again(self, objects: Objects, before: Oid | None, tree: Oid) -> int:
        """As the engine's that took the last snapshot."""
        if self._by_fast is not None:
            return self._fast.look_again(before, tree)
        return self._reference.look_again(objects, before, tree)

    def remove_left_lock(self) -> bool:
        """Remove the lock that a killed git left on a run's own linked work tree; if it did."""
        return self._reference.remove_left_lock()

    def settle(self, tree: Oid) -> None:
        """Have the index hold the last snapshot, whose tree this is, with its stat data.

        Raises:
            BusyError: another process held the index's lock for longer than we wait.
        """
        if self._by_fast is not None:
            self._fast.settle(tree)

    def set_index_to(self, tree: Oid) -> None:
        """Have the index hold any tree, keeping the stat data of what stays the same; as above."""
        self._reference.set_index_to(tree)

    def close(self) -> None:
        """Keep the stat cache for the next process."""
        self._fast.close()


def choose_engine(
    repo: Repository, objects: Objects, index: Path, rules: Rules | None = None
) -> Engine:
    """The engine for a work tree and the index that belongs to its snapshots.

    Raises:
        RequestError: ``fabro.snapshot`` asks for an engine that there is not.
        GitError: there is no work tree, or no git program.
    """
    wanted = repo.config("fabro.snapshot") or "auto"
    if wanted not in ("auto", "fast", "git"):
        raise RequestError(
            f"no such snapshot engine: {wanted}", hint="git config fabro.snapshot auto"
        )
    rules = rules or rules_of(repo)
    reference = ReferenceEngine(repo, index, rules)
    assert repo.work_tree is not None
    fast = FastEngine(repo, objects, index, rules, set_index_to=reference.set_index_to)
    return Engine(repo.work_tree, wanted, fast, reference)


def _look(path: Path) -> Signature | None:
    try:
        return signature_of(os.lstat(path))
    except OSError:
        return None


def rules_of(repo: Repository, excludes: tuple[str, ...] = ()) -> Rules:
    """What stays out, as ``fabro.maxFileSize`` and these patterns say.

    Raises:
        RequestError: ``fabro.maxFileSize`` is no size.
    """
    return Rules(excludes=excludes, largest_bytes=_size(repo.config("fabro.maxFileSize")))


def _size(text: str | None) -> int | None:
    # Source: git-config(1), integer
    if text is None:
        return None
    number, unit = text[:-1], text[-1:].lower()
    if unit not in _UNITS:
        number, unit = text, ""
    if not number.isdecimal():
        raise RequestError(f"not a size: fabro.maxFileSize={text}")
    return int(number) * _UNITS[unit]


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
