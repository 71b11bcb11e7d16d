"""The driver: takes a run from where it stands to its end, to a person, or to a stop.

Each line of execution (the run, or a branch of a fan-out) is a loop; a branch's runs in a thread of
its own. What is recorded and saved goes through the log, one at a time. Decisions are the engine's.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from git_fabro import adoption
from git_fabro.blobs import referenced
from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import Oid
from git_fabro.handlers.call import Call, Interrupted, Notice, Parked, Result, Stop
from git_fabro.handlers.table import run_node, simulate
from git_fabro.jobs.run.branches import Branches
from git_fabro.jobs.run.desk import Desk, Paused
from git_fabro.jobs.run.places import Places
from git_fabro.jobs.run.run_hooks import RunHooks, Verdict
from git_fabro.jobs.run.workshop import Workshop
from git_fabro.store import LostLeaseError, RequiredCheckpointError, RunLog
from git_fabro.workflow import conclusion, engine
from git_fabro.workflow.conclusion import Conclusion
from git_fabro.workflow.engine import Done
from git_fabro.workflow.graph import EXIT, PARALLEL, START, WAIT, Graph, Node
from git_fabro.workflow.records import (
    Event,
    NodeFinished,
    NodeStarted,
    RunFinished,
    RunPaused,
    RunStopped,
)
from git_fabro.workflow.state import CANCELLED, FAIL, Json, Outcome, Position, RunState, failed

_MOST_FILES = 1000


@dataclass(slots=True, kw_only=True)
class Driver:
    """Drives one run that this process holds.

    ``stops`` has one switch for the run (None) and one for each branch that runs.
    """

    graph: Graph
    log: RunLog
    workshop: Workshop
    places: Places
    desk: Desk
    hooks: RunHooks
    max_parallel: int | None = None
    simulated: bool = False
    signal: int | None = None
    stops: dict[str | None, Stop] = field(default_factory=dict)
    cause: str = ""
    interrupted: list[str] = field(default_factory=list)
    branches: Branches = field(init=False)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.stops[None] = Stop()
        self.branches = Branches(self)

    def drive(self) -> RunState:
        """Runs until the run has ended, waits for people, or is stopped.

        Raises:
            LostLeaseError: another process holds the run now.
            FabroError: the run cannot be recorded any more; it can be resumed.
        """
        self.desk.open()
        try:
            self._drive()
        except LostLeaseError:
            self.stop("lease")
            raise
        finally:
            self.desk.close()
        if self.desk.failure is not None:
            raise self.desk.failure
        return self.log.state

    def _drive(self) -> None:
        try:
            self.run_line(None)
            self._conclude()
        except RequiredCheckpointError as exc:
            self.log.required = False
            self._end(Conclusion(FAIL, f"checkpoint failed: {exc.message}"))
        except Parked:
            self.log.release("parked")
        except Paused:
            paused = RunPaused(request=self.desk.request)
            self.log.release("paused", events=(paused,))
        except Interrupted:
            if self.desk.failure is not None or self.cause == "lease":
                return
            stopped = RunStopped(
                cause=self.cause or "request",
                interrupted=tuple(self.interrupted),
                request=self.desk.request,
            )
            self.log.release("stopped", events=(stopped,))

    def _conclude(self) -> None:
        if None in self.log.behind:
            adoption.adopt(self.log, self.places.of(None))
            self.log.catch_up(self.places.of(None))
        self.log.prove(self.places.of(None))
        self._end(conclusion.conclude(self.graph, self.log.state.line))

    def _end(self, ended: Conclusion) -> None:
        state = self.log.state
        began = engine.moment(state.started_at)
        finished = RunFinished(
            status=ended.status,
            reason=ended.reason,
            unhandled=state.line.unhandled,
            duration_ms=int((self.now() - began).total_seconds() * 1000),
            head_sha=self.log.run_tip,
        )
        self.log.release("finished", subject=f"finalize run ({ended.status})", events=(finished,))
        self.hooks.tell("run_failed" if ended.status == FAIL else "run_complete", {})

    def stop(self, cause: str) -> None:
        """Ends whatever runs; safe in a signal handler."""
        self.cause = self.cause or cause
        for switch in list(self.stops.values()):
            switch.set("stop")

    def stop_for_signal(self, number: int) -> None:
        """Ends whatever runs because of a signal, which the exit status will tell."""
        self.signal = number
        self.stop("signal")

    def run_line(self, branch: str | None) -> None:
        """Visits node after node until nothing follows on this line.

        Raises:
            Parked: the line waits for a person.
            Paused: somebody asked for a pause.
            Interrupted: the line is stopped.
        """
        while (node := self._next(branch)) is not None:
            self.visit(branch, node)

    def _next(self, branch: str | None) -> Node | None:
        line = self.state.line_of(branch)
        target = line.next_node_id
        if target is None or target == self.branches.join_of(branch):
            return None
        # A pause that was asked for while a node ran holds before the next one.
        self.desk.look()
        if self.stops[branch].is_set():
            raise Interrupted(self.stops[branch].reason)
        if self.desk.pause_asked:
            raise Paused
        return self.graph.nodes[target]

    def visit(self, branch: str | None, node: Node) -> None:
        """One visit: attempts until none follows, then what it came to, then its checkpoint."""
        verdict = self._before(branch, node)
        while True:
            position = self._position(branch, node)
            result, duration_ms = self._attempt(node, position, verdict)
            done = Done(
                position=position,
                outcome=result.outcome,
                duration_ms=duration_ms,
                blocked=verdict.blocks,
            )
            again = engine.retry(self.graph, done, draw=random.uniform(0.5, 1.5), now=self.now())
            if again is None or verdict.decided:
                break
            self.log.note(again, position)
            self.hooks.tell("stage_retrying", self.hooks.about(node, position))
        self._finish(branch, node, done, result)

    def _before(self, branch: str | None, node: Node) -> Verdict:
        """What hooks decide before a visit: of the run before its first, of a fan-out, of any."""
        about = self.hooks.about(node, self._position(branch, node))
        events = {START: ("run_start", "stage_start"), PARALLEL: ("stage_start", "parallel_start")}
        for event in events.get(node.kind, ("stage_start",)):
            verdict = self.hooks.ask(event, about)
            if verdict.decided:
                return verdict
        return Verdict()

    def _position(self, branch: str | None, node: Node) -> Position:
        """The attempt that comes next: of the open visit, else of a new one."""
        line = self.state.line_of(branch)
        number = line.node_visits.get(node.id, 0)
        if line.open_visit != f"{node.id}@{number}":
            number += 1
        failed_so_far = self.state.attempts.get(f"{node.id}@{number}", 0)
        return Position(node=node.id, visit=number, attempt=failed_so_far + 1, branch=branch)

    def _attempt(self, node: Node, position: Position, verdict: Verdict) -> tuple[Result, int]:
        """One attempt; it begins with the rest of a retry's delay, then with a record."""
        visit = str(position)
        if verdict.outcome is not None:
            return Result(verdict.outcome), 0
        began = self.now()
        try:
            if position.attempt > 1 and node.kind != WAIT:
                self._wait_until(position.branch, self.state.deadlines.get(visit))
            began = self.now()
            result = self._run(node, position)
        except Interrupted as exc:
            if exc.args[:1] != ("join_policy",):
                self.interrupted.append(visit)
                raise
            result = Result(failed("another branch won", failure_class=CANCELLED))
        return result, int((self.now() - began).total_seconds() * 1000)

    def _run(self, node: Node, position: Position) -> Result:
        line = self.state.line_of(position.branch)
        fidelity, thread = self.workshop.thread_of(node, line)
        self.log.note(
            NodeStarted(
                handler=node.kind,
                fidelity=fidelity,
                thread=thread,
                deadline=self._deadline(node, str(position)),
            ),
            position,
            sync=False,
        )
        call = self._call(node, position, fidelity, thread)
        return simulate(call, self) if self.simulated else run_node(call, self)

    def _deadline(self, node: Node, visit: str) -> str | None:
        """The absolute end of a wait: as recorded, else counted from now."""
        if node.kind != WAIT:
            return None
        recorded = self.state.deadlines.get(visit)
        seconds = node.seconds("duration") or 0.0
        return recorded or engine.stamp(self.now() + timedelta(seconds=seconds))

    def _wait_until(self, branch: str | None, deadline: str | None) -> None:
        if deadline is None:
            return
        left_s = (engine.moment(deadline) - self.now()).total_seconds()
        if left_s > 0 and self.stops[branch].wait(left_s):
            raise Interrupted(self.stops[branch].reason)

    def _call(self, node: Node, position: Position, fidelity: str, thread: str) -> Call:
        place = self.places.of(position.branch)
        deadline = self.state.deadlines.get(str(position))

        def notice(said: Notice) -> None:
            self.log.notice(said.code, said.message, level=said.level, position=position)

        return self.workshop.call(
            node,
            position,
            self.state.line_of(position.branch),
            place,
            stop=self.stops[position.branch],
            notice=notice,
            fidelity=fidelity,
            thread=thread,
            deadline=engine.moment(deadline).timestamp() if deadline else None,
        )

    def _finish(self, branch: str | None, node: Node, done: Done, result: Result) -> None:
        """The visit ends: large values out, traces to the run directory, record and checkpoint."""
        with self.log.lock:
            outcome = done.outcome
            keep = referenced(self.state)
            updates = self.log.blobs.offload(outcome.context_updates, keep=keep)
            done = replace(done, outcome=replace(outcome, context_updates=updates))
            self._write_trace(done, result)
            place, position = self.places.of(branch), done.position
            adoption.adopt(self.log, place)

            def decide(touched: tuple[str, ...]) -> NodeFinished:
                files = touched[:_MOST_FILES]
                return self._decide(
                    node, replace(done, outcome=replace(done.outcome, files_touched=files))
                )

            if node.kind in (START, EXIT):
                record = self.log.note(decide(()), position)
            else:
                record = self.log.save(place, position, decide, merged=result.merged)
        assert isinstance(record.event, NodeFinished)
        self._tell(node, position, record.event)

    def _decide(self, node: Node, done: Done) -> NodeFinished:
        line = self.state.line_of(done.position.branch)
        decided = engine.decide(
            self.graph, line, done, draw=random.random(), resolve=self.log.blobs.resolve
        )
        return self.hooks.redirect(self.graph, line, done, decided)

    def _tell(self, node: Node, position: Position, event: NodeFinished) -> None:
        about = {**self.hooks.about(node, position), "status": event.outcome.status}
        failed_now = event.outcome.status == FAIL
        if node.kind == PARALLEL:
            self.hooks.tell("parallel_complete", about)
        self.hooks.tell("stage_failed" if failed_now else "stage_complete", about)
        self.hooks.tell("checkpoint_saved", about)

    def _write_trace(self, done: Done, result: Result) -> None:
        """The files of the visit that are not there yet: the handler's, and its status."""
        files = dict(result.trace)
        files.setdefault("status.json", self._status_file(done.outcome))
        self.log.directory.write_trace(str(done.position), files)

    def _status_file(self, outcome: Outcome) -> bytes:
        # Without the optional time, which the record has: equal outcomes are one blob.
        value: dict[str, Json] = {
            "status": outcome.text,
            "notes": outcome.notes or None,
            "failure_reason": outcome.failure.message if outcome.failure else None,
        }
        return codec.document(value)

    # What handlers may ask for; the names are those of ``handlers.call.Driver``.

    @property
    def state(self) -> RunState:
        return self.log.state

    @property
    def git(self) -> bool:
        return self.log.doors is not None

    def note(self, event: Event, position: Position) -> None:
        self.log.note(event, position)

    def seal(self, subject: str, event: Event, position: Position) -> None:
        self.log.seal(subject, event, position=position)

    def now(self) -> datetime:
        return self.log.clock()

    def tip(self, branch: str | None) -> Oid | None:
        return self.places.tip_of(branch).oid if self.git else None

    def await_answer(self, question: str, call: Call) -> None:
        self.desk.await_answer(question, call)

    def run_branches(self, visit: str, names: Sequence[str], call: Call) -> None:
        self.branches.run(visit, names, call)

    def resolve(self, value: Json) -> Json:
        return self.log.blobs.resolve(value)

    def take_trees(self, base: Oid, heads: Sequence[Oid], call: Call) -> tuple[str, ...]:
        return self.places.take_trees(call.position.branch, base, heads)
