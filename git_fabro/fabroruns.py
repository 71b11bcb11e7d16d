"""Runs that the Rust program Fabro made, read from their two branches. Nothing is written here.

What commits and files mean is decided in ``checkpoint/foreign.py`` and ``foreign_values.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from git_fabro.branches import Branches, Source
from git_fabro.checkpoint import foreign, foreign_values, layout
from git_fabro.checkpoint.foreign import Generation, MetaEntry, RunEntry
from git_fabro.checkpoint.foreign_graph import dot_of
from git_fabro.checkpoint.foreign_values import LIMIT_BYTES, Made
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Entry, Link
from git_fabro.errors import MissingObjectError, RecordError
from git_fabro.git import walks
from git_fabro.git.walks import Step
from git_fabro.place import LONGEST_WALK, Detail, Place, files_changed
from git_fabro.workflow.state import Json, RunState


@dataclass(frozen=True, slots=True)
class Held:
    """What one meta commit holds: its generation, None for no state, and its JSON files."""

    generation: Generation | None
    documents: foreign_values.Documents

    @property
    def state(self) -> Json:
        if self.generation is None:
            return None
        return foreign_values.state_in(self.generation, self.documents)


class FabroRun:
    """One run of Fabro's; ``problems`` is full once places were asked for."""

    def __init__(self, source: Source, branches: Branches) -> None:
        self.source = source
        self.branches = branches
        self.problems: list[str] = []
        self.made_by = "fabro"
        self._held: dict[Oid, Held] = {}

    def places(self) -> Iterator[Place]:
        """The places, the newest first: all are known before the first one is."""
        commits, base = self._commits
        entries = [RunEntry(step.oid, said, self._link(said.named)) for step, said in commits]
        steps = {step.oid: step for step, _ in commits}
        above = [step.oid for step, _ in commits]
        before = dict(zip(above, [base, *above], strict=False))
        metas = [entry for entry, _ in self._metas]
        times = {entry.meta: step.when for entry, step in self._metas}
        self.problems += [entry.problem for entry in metas if entry.problem]
        for entry in reversed(foreign.timeline(metas, entries)):
            step = steps.get(entry.run_commit or Oid(""))
            when = step.when if step is not None else times.get(entry.meta_commit or Oid(""))
            dated = entry._replace(when=when)
            yield Place(dated, step, before[step.oid] if step is not None else None)

    def base(self) -> Oid | None:
        """The first parent of the oldest commit of the run."""
        return self._commits[1]

    @cached_property
    def _metas(self) -> list[tuple[MetaEntry, Step]]:
        """The checkpoints of the metadata branch, the oldest first."""
        found = []
        for step in self._chain:
            if foreign.is_checkpoint(_text(step)):
                entry = self._meta_entry(step.oid)
                if entry is not None:
                    found.append((entry, step))
        return found

    @cached_property
    def _chain(self) -> list[Step]:
        """All commits of the metadata branch, the oldest first."""
        return list(reversed(list(self._walk(self.branches.meta_tip))))

    def _walk(self, tip: Oid | None) -> Iterator[Step]:
        """Steps from a tip down; one that is absent is a problem and the end."""
        at = tip
        for _ in range(LONGEST_WALK):
            if at is None:
                return
            try:
                step = walks.one_step(self.source.objects, at)
            except (MissingObjectError, RecordError) as exc:
                self.problems.append(exc.message)
                return
            yield step
            at = step.parent
        self.problems.append(f"only {LONGEST_WALK} commits below {(tip or '')[:12]} were read")

    def _meta_entry(self, meta: Oid) -> MetaEntry | None:
        try:
            state = self.held(meta).state
            return None if state is None else foreign_values.meta_entry(meta, state)
        except RecordError as exc:
            problem = f"checkpoint at {meta[:12]} cannot be read: {exc.message}"
            return MetaEntry(meta=meta, node="?", visit=1, status="?", problem=problem)

    @cached_property
    def _commits(self) -> tuple[list[tuple[Step, foreign.RunCommit]], Oid | None]:
        """The checkpoints of the run branch, the oldest first, and the base below them."""
        found: list[tuple[Step, foreign.RunCommit]] = []
        base: Oid | None = None
        begins = False
        for step in self._walk(self.branches.run_tip):
            said = foreign.parse_run_commit(_text(step), self.branches.run)
            of_run = foreign.is_of_run(_text(step), self.branches.run)
            # The first checkpoint of all has completed two nodes, of which start made no commit.
            if begins and not of_run:
                break
            if of_run:
                base = step.parent
            if said is not None:
                found.append((step, said))
                begins = said.completed <= 2
        found.reverse()
        return found, base

    def _link(self, named: Oid | None) -> Link:
        if named is None or named in {step.oid for step in self._chain}:
            is_entry = any(entry.meta == named for entry, _ in self._metas)
            return "ok" if is_entry else "none"
        return "foreign" if self.source.objects.exists(named) else "missing"

    def held(self, meta: Oid) -> Held:
        """What a meta commit holds.

        Raises:
            RecordError: a file is no JSON, or too large.
            MissingObjectError: an object is absent.
        """
        known = self._held.get(meta)
        if known is None:
            known = self._held[meta] = self._read(meta)
        return known

    def _read(self, meta: Oid) -> Held:
        objects = self.source.objects
        names = {
            name.decode("utf-8", "replace"): entry.oid
            for name, entry in objects.read_tree(objects.tree_of(meta)).items()
        }
        run_json = self._json(names, layout.RUN_JSON)
        generation = foreign.generation(names, run_json)
        wanted = foreign_values.files_of(generation) if generation is not None else ()
        documents = {name: self._json(names, name) for name in wanted if name != layout.RUN_JSON}
        return Held(generation, {**documents, layout.RUN_JSON: run_json})

    def _json(self, names: dict[str, Oid], name: str) -> Json:
        if name not in names:
            return None
        data = self.source.objects.read_blob(names[name], limit_bytes=LIMIT_BYTES)
        try:
            value: Json = json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise RecordError(f"{name} is no JSON: {exc}") from exc
        return value

    @property
    def is_final(self) -> bool:
        """Whether there is a ``finalize run``."""
        return any(foreign.is_final(_text(step)) for step in self._chain)

    def made(self) -> Made | None:
        """What the run was made with; None where there is no metadata."""
        held = self._last()
        if held is None or held.generation is None:
            return None
        return foreign_values.made_with(held.generation, held.documents)

    def status(self) -> str:
        """How the run ended: the word that is stored, or ``ended``, or ``unfinished``."""
        held = self._last()
        if held is None or held.generation is None:
            return foreign_values.ENDED if self.is_final else foreign_values.UNFINISHED
        return foreign_values.status_of(held.generation, held.documents, is_final=self.is_final)

    @property
    def has_ended(self) -> bool:
        return self.status() != foreign_values.UNFINISHED

    def _last(self) -> Held | None:
        tip = self.branches.meta_tip
        return self.held(tip) if tip is not None else None

    def state_json(self, entry: Entry | None = None) -> Json:
        """The state as it is stored: at an entry, or the last one.

        Raises:
            RecordError: it does not parse.
        """
        meta = self.branches.meta_tip if entry is None else entry.meta_commit
        if meta is None:
            return None
        return self.held(meta).state

    def state(self, entry: Entry | None = None) -> RunState:
        """The same as a state of ours, its status words as they are stored; raises as above."""
        value = self.state_json(entry)
        if value is None:
            return RunState(status=self.status())
        return foreign_values.run_state(value, status=self.status())

    def detail(self, place: Place) -> Detail:
        """How long an entry took and how many files it changed, as far as that is recorded."""
        entry, duration = place.entry, None
        if entry.meta_commit is not None and entry.node is not None and not entry.problem:
            state = self.held(entry.meta_commit).state
            duration = foreign_values.duration_ms(state, entry.node)
            if duration is None:
                duration = self._timed(entry)
        return Detail(duration, files_changed(self.source.objects, place))

    def _timed(self, entry: Entry) -> int | None:
        """What the script's timing says, in generations whose outcomes have no duration."""
        data = self.trace(entry, entry.node or "", "script_timing.json")
        try:
            value: Json = json.loads(data or b"{}")
        except ValueError:
            return None
        spent = value.get("duration_ms") if isinstance(value, dict) else None
        return spent if type(spent) is int else None

    def traces(self, meta: Oid) -> dict[tuple[str, int], str]:
        """Where the files of each visit are in a meta commit: ``{("verify", 2): "nodes/..."}``."""
        held = self.held(meta)
        if held.generation is None:
            return {}
        return foreign_values.trace_folders(
            held.generation,
            nodes=self._names(meta, layout.NODES),
            stages=self._names(meta, "stages"),
            ranked=foreign_values.has_ranks(held.documents),
        )

    def graph_source(self, meta: Oid | None) -> bytes | None:
        """The workflow as DOT: as run.json has it, else the file; None where it is nowhere.

        Raises:
            RecordError: a file is no JSON, or too large.
            MissingObjectError: an object is absent.
        """
        at = meta or self.branches.meta_tip
        if at is None:
            return None
        held = self.held(at)
        found = None
        if held.generation is not None:
            found = dot_of(foreign_values.graph_json(held.generation, held.documents))
        return found or self.source.objects.blob_at(at, layout.GRAPH) or None

    def trace(self, entry: Entry | None, node: str, file: str) -> bytes | None:
        """A file of a node's visit; None where there is none. See ``trace_folder``."""
        folder, tip = self.trace_folder(entry, node), self.branches.meta_tip
        if folder is None or tip is None:
            return None
        return self.source.objects.blob_at(tip, f"{folder}/{file}")

    def trace_folder(self, entry: Entry | None, node: str) -> str | None:
        """Where the files of a node's visit are in the last meta commit; None where they are not.

        A patch comes one commit after its node, and nothing is removed: the last one has most.

        Args:
            entry: The visit is the last one at this checkpoint; None at the end of the run.
            node: A node.
        """
        tip = self.branches.meta_tip
        if tip is None:
            return None
        found = self.traces(tip)
        visit = self._visit_at(entry, node)
        if visit is None:
            visit = max((number for name, number in found if name == node), default=1)
        return found.get((node, visit))

    def _visit_at(self, entry: Entry | None, node: str) -> int | None:
        if entry is None or entry.node == node:
            return entry.visit if entry is not None else None
        state = self.state_json(entry) if entry.meta_commit is not None else None
        visits = state.get("node_visits") if isinstance(state, dict) else None
        visit = visits.get(node) if isinstance(visits, dict) else None
        return visit if type(visit) is int else None

    def _names(self, meta: Oid, folder: str) -> list[str]:
        entry = self.source.objects.entry_at(meta, folder)
        if entry is None:
            return []
        return [
            name.decode("utf-8", "surrogateescape")
            for name in self.source.objects.read_tree(entry.oid)
        ]

    def interior(self) -> dict[str, str]:
        """The nodes inside fan-outs; empty, silently, without a graph that can be read."""
        tip = self.branches.meta_tip
        try:
            held = self._last()
            if tip is None or held is None or held.generation is None:
                return {}
            graph = foreign_values.graph_in(held.generation, held.documents)
            drawn = self.source.objects.blob_at(tip, layout.GRAPH) or b""
        except RecordError:
            return {}
        return foreign.interior(*(graph or foreign_values.graph_from_dot(drawn)))


def _text(step: Step) -> str:
    return step.message.decode("utf-8", "replace")
