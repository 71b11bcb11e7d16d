"""Histories made of values: objects in a table, and a run that grows by checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from git_fabro.checkpoint import codec, layout, message
from git_fabro.checkpoint.message import CheckpointTrailers
from git_fabro.checkpoint.model import Commit, Identity, Oid, RunId
from git_fabro.checkpoint.verify_record import workflow_digest
from git_fabro.errors import MissingObjectError, RecordError
from git_fabro.workflow import fold
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import (
    Event,
    Next,
    NodeFinished,
    NodeStarted,
    Record,
    RunCreated,
    RunForked,
    RunStarted,
)
from git_fabro.workflow.state import SUCCESS, Outcome, Position, RunState

RUN = RunId("01JKXYZ0000000000000000000")
FORK = RunId("01JKY30000000000000000000A")
SOURCE = b"digraph Loop {}\n"
DIGEST = workflow_digest(SOURCE, {"settings": {}})
WHO = Identity("A. Tester", "tester@example.com")
AT = "2024-01-01T00:00:00.000Z"
Tree = dict[bytes, tuple[int, Oid]]


@dataclass
class Objects:
    """Objects and refs in tables; ``reads`` counts what was asked for."""

    held: dict[Oid, tuple[str, bytes | Commit]] = field(default_factory=dict)
    refs: dict[str, Oid] = field(default_factory=dict)
    sizes: dict[Oid, int] = field(default_factory=dict)
    boundary: frozenset[Oid] = frozenset()
    reads: int = 0

    def _get(self, kind: str, oid: Oid) -> bytes | Commit:
        self.reads += 1
        if oid not in self.held:
            raise MissingObjectError(f"object is missing: {oid}", hint="git fsck")
        found, value = self.held[oid]
        if found != kind:
            raise RecordError(f"object {oid} is a {found}, not a {kind}")
        return value

    def commit(self, oid: Oid) -> Commit:
        value = self._get("commit", oid)
        assert isinstance(value, Commit)
        return value

    def tree(self, oid: Oid) -> bytes:
        value = self._get("tree", oid)
        assert isinstance(value, bytes)
        return value

    def blob(self, oid: Oid) -> bytes:
        assert oid not in self.sizes, "what is too large is never read"
        value = self._get("blob", oid)
        assert isinstance(value, bytes)
        return value

    def size(self, oid: Oid) -> int:
        if oid not in self.held:
            raise MissingObjectError(f"object is missing: {oid}", hint="git fsck")
        value = self.held[oid][1]
        return self.sizes.get(oid, len(value) if isinstance(value, bytes) else 0)

    def exists(self, oid: Oid) -> bool:
        return oid in self.held

    def is_ancestor(self, ancestor: Oid, tip: Oid) -> bool:
        waiting = [tip]
        while waiting:
            at = waiting.pop()
            if at == ancestor:
                return True
            waiting += self.commit(at).parents
        return False

    def ref(self, name: str) -> Oid | None:
        return self.refs.get(name)

    def write(self, kind: str, value: bytes | Commit) -> Oid:
        data = value if isinstance(value, bytes) else repr(value).encode()
        oid = Oid(hashlib.sha1(kind.encode() + b"\0" + data).hexdigest())
        self.held[oid] = (kind, value)
        return oid

    def write_tree(self, files: Mapping[str, bytes | tuple[int, Oid]]) -> Oid:
        """A tree of files by path; a tuple is an entry as it is to stand there."""
        here: Tree = {}
        below: dict[str, dict[str, bytes | tuple[int, Oid]]] = {}
        for path, content in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = content
            elif isinstance(content, tuple):
                here[name.encode()] = content
            else:
                here[name.encode()] = (0o100644, self.write("blob", content))
        for name, inside in below.items():
            here[name.encode()] = (0o40000, self.write_tree(inside))
        rows = sorted(here.items(), key=lambda row: row[0] + b"/" * (row[1][0] == 0o40000))
        return self.raw_tree(*((f"{mode:o}", name, oid) for name, (mode, oid) in rows))

    def raw_tree(self, *rows: tuple[str, bytes, Oid]) -> Oid:
        return self.write(
            "tree",
            b"".join(
                m.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for m, name, oid in rows
            ),
        )

    def write_commit(self, tree: Oid, text: str, *parents: Oid) -> Oid:
        return self.write(
            "commit",
            Commit(tree=tree, parents=parents, author=WHO, committer=WHO, when=0, message=text),
        )


@dataclass(slots=True)
class History:
    """A run in ``objects``, its refs at ``run_tip`` and ``meta_tip``."""

    objects: Objects
    run: RunId
    files: dict[str, bytes]
    state: RunState = RunState()
    run_tip: Oid = Oid("")
    meta_tip: Oid = Oid("")
    count: int = 0

    @classmethod
    def begin(cls, objects: Objects | None = None, *, start: bytes | None = None) -> History:
        """A run with its base and ``init run``."""
        objects = objects or Objects()
        base = objects.write_commit(objects.write_tree({"file": b"base\n"}), "work\n")
        made = {"schema": 1, "run_id": RUN, "settings": {}, "digest": DIGEST}
        usual = codec.document({"schema": 1, "run_id": RUN, "base_sha": base})
        files = {
            layout.RUN_JSON: codec.document(made),
            layout.START_JSON: usual if start is None else start,
            layout.GRAPH: SOURCE,
        }
        history = cls(objects, RUN, files, run_tip=base)
        history.meta(
            "init run", RunCreated(run_id=RUN, created_at=AT, digest=DIGEST), RunStarted(start="a")
        )
        return history

    @property
    def run_ref(self) -> str:
        return layout.run_ref(self.run)

    @property
    def meta_ref(self) -> str:
        return layout.meta_ref(self.run)

    def stand(self) -> History:
        """Both refs at their tips: what is pushed from here on stands on this."""
        self.objects.refs |= {self.run_ref: self.run_tip, self.meta_ref: self.meta_tip}
        return self

    def records(self, *events: Event, position: Position | None = None) -> list[Record]:
        numbers = range(self.state.seq + 1, self.state.seq + 1 + len(events))
        return [
            Record(seq=number, at=AT, event=event, position=position)
            for number, event in zip(numbers, events, strict=True)
        ]

    def meta(
        self,
        subject: str,
        *events: Event,
        position: Position | None = None,
        commit: Oid | None = None,
        files: Mapping[str, bytes | tuple[int, Oid]] | None = None,
        seq: int | None = None,
    ) -> Oid:
        """The next meta commit; ``files`` stand there in place of what should."""
        records = self.records(*events, position=position)
        self.state = fold.replay(records, self.state)
        whole: dict[str, bytes | tuple[int, Oid]] = {
            **self.files,
            layout.CHECKPOINT_JSON: codec.StateWriter().document(self.state),
            layout.RECORDS: b"".join(map(codec.record_line, records)),
            **(files or {}),
        }
        text = message.meta_message(
            subject,
            run=self.run,
            seq=self.state.seq if seq is None else seq,
            status=self.state.status,
            commit=commit,
        )
        parents = (self.meta_tip,) if self.meta_tip else ()
        self.meta_tip = self.objects.write_commit(self.objects.write_tree(whole), text, *parents)
        return self.meta_tip

    def checkpoint(
        self,
        files: Mapping[str, bytes | tuple[int, Oid]] | None = None,
        *,
        meta_files: Mapping[str, bytes | tuple[int, Oid]] | None = None,
    ) -> Oid:
        """A finished visit of node ``a``: both commits."""
        self.count += 1
        position = Position(node=NodeId("a"), visit=self.count)
        outcome = Outcome(status=SUCCESS)
        meta = self.meta(
            f"checkpoint {position} (success)",
            NodeStarted(handler="command", fidelity="", thread=""),
            NodeFinished(
                handler="command",
                outcome=outcome,
                duration_ms=1,
                next=Next(node=NodeId("a"), edge=0),
                reason="weight",
            ),
            position=position,
            files=meta_files,
        )
        return self.commit(meta, files)

    def commit(self, meta: str, files: Mapping[str, bytes | tuple[int, Oid]] | None = None) -> Oid:
        """A run commit that names a meta commit."""
        text = message.checkpoint_message(
            CheckpointTrailers(
                run=self.run,
                node="a",
                status=SUCCESS,
                completed=self.count + 1,
                checkpoint=meta,
                visit=self.count,
                ordinal=self.count,
                branch=None,
            )
        )
        return self.by_hand(text, files or {"file": f"{self.count}\n".encode()})

    def by_hand(self, text: str, files: Mapping[str, bytes | tuple[int, Oid]] | None = None) -> Oid:
        tree = self.objects.write_tree(files or {"file": b"by hand\n"})
        self.run_tip = self.objects.write_commit(tree, text, self.run_tip)
        return self.run_tip

    def fork(self) -> History:
        """A fork of where this run stands."""
        made = {"schema": 1, "run_id": FORK, "settings": {}, "digest": DIGEST}
        start = codec.parse_json(self.files[layout.START_JSON], "") | {"run_id": FORK}
        files = {
            **self.files,
            layout.RUN_JSON: codec.document(made),
            layout.START_JSON: codec.document(start),
        }
        fork = History(
            self.objects, FORK, files, self.state, self.run_tip, self.meta_tip, self.count
        )
        fork.meta(f"fork from {RUN} @{self.count}", RunForked(from_={"run": RUN}, run_id=FORK))
        return fork
