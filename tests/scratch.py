"""A run that is kept for real but not driven: the store's own path, with made-up visits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import lease, opening
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.checkpoint.secrets import Mask
from git_fabro.doors import Doors, Tip, fresh_ulid
from git_fabro.opening import NewRun, Session
from git_fabro.rundir import RunDirectory
from git_fabro.store import RunLog
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import (
    GitIdentity,
    Next,
    NodeFinished,
    NodeStarted,
    RunCreated,
)
from git_fabro.workflow.state import SUCCESS, Outcome, Position

#: The nodes of the loop, each visited in turn.
NODES = tuple(NodeId(name) for name in ("plan", "build", "test", "review", "fix"))
Visit = tuple[Position, NodeFinished]


@dataclass(slots=True)
class Scratch:
    """A run in a repository; each ``visit`` is a finished command node and its checkpoint."""

    log: RunLog
    tip: Tip
    count: int = 0
    visits: dict[NodeId, int] = field(default_factory=dict)

    def visit(self, *, tree: Oid | None = None, output: str | None = None) -> None:
        """One node more: what the driver writes of it, its records, its checkpoint.

        Args:
            tree: What the node leaves; None changes nothing.
            output: What it prints; None is a line that it never printed before.
        """
        self.save(self.start(output=output), tree=tree)

    def start(self, *, output: str | None = None) -> Visit:
        """The next visit up to its end: its first record and its traces."""
        node = NODES[self.count % len(NODES)]
        self.count += 1
        self.visits[node] = number = self.visits.get(node, 0) + 1
        position = Position(node=node, visit=number, attempt=1)
        text = f"line {self.count}\n" if output is None else output
        started = NodeStarted(handler="command", fidelity="compact", thread=node)
        self.log.note(started, position, sync=False)
        self.log.directory.write_trace(str(position), traces(node, text, self.count))
        return position, self._finished(text)

    def save(self, visit: Visit, *, tree: Oid | None = None) -> None:
        """As ``RunLog.save`` does once it has the snapshot's tree."""
        position, event = visit
        tree = tree or self.doors.objects.tree_of(self.tip.oid)
        record = self.log.note(event, position, tree=tree)
        self.log.checkpoint(self.tip, record, tree)

    def _finished(self, text: str) -> NodeFinished:
        updates = {"command.output": text, "command.stderr": ""}
        return NodeFinished(
            handler="command",
            outcome=Outcome(status=SUCCESS, context_updates=updates),
            duration_ms=self.count,
            next=Next(node=NODES[self.count % len(NODES)], edge=self.count % len(NODES)),
            reason="weight",
        )

    @property
    def doors(self) -> Doors:
        assert self.log.doors is not None
        return self.log.doors

    def close(self) -> None:
        self.log.close()
        self.doors.close()


def traces(node: str, output: str, number: int) -> dict[str, bytes]:
    """What the handler of a command and the driver write for a visit."""
    invocation = {"command": f"make {node}", "language": "shell", "timeout_ms": None}
    timing = {"duration_ms": number, "exit_code": 0, "timed_out": False}
    status = {"failure_reason": None, "notes": None, "status": SUCCESS}
    return {
        "stdout.log": output.encode(),
        "stderr.log": b"",
        "script_invocation.json": codec.document(invocation),
        "script_timing.json": codec.document(timing),
        "status.json": codec.document(status),
    }


def begin(repository: Path, directory: Path) -> Scratch:
    """A run that has just begun at the repository's HEAD."""
    doors = Doors.open(repository)
    base = doors.head()
    run = RunId(fresh_ulid())
    created = RunCreated(run_id=run, created_at="2024-01-01T00:00:00.000Z", digest="0" * 64)
    new = NewRun(
        created=created,
        graph_source=b"digraph Loop { plan -> build -> test -> review -> fix -> plan }\n",
        identity=GitIdentity(name="A. Tester", email="tester@example.com"),
        start=NODES[0],
        base=base,
    )
    session = Session(
        clock=lambda: datetime.now(UTC), mask=Mask.of(), holder=lease.me(fresh_ulid())
    )
    log = opening.begin(doors, new, RunDirectory.of(directory, run), session)
    assert log.run_tip is not None
    tip = Tip(branch=None, ref=layout.run_ref(run), oid=log.run_tip, exists=True)
    return Scratch(log, tip)
