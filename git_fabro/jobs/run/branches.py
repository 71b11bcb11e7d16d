"""The branches of a fan-out: each a line in its own thread, as many at once as the node allows."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from git_fabro.gates import position_of
from git_fabro.handlers.call import Call, Interrupted, Parked, Stop
from git_fabro.jobs.run.desk import Paused
from git_fabro.jobs.run.places import Places
from git_fabro.store import RunLog
from git_fabro.workflow import conclusion, engine
from git_fabro.workflow.graph import FanOut, Graph, NodeId
from git_fabro.workflow.records import BranchFinished, QuestionCancelled
from git_fabro.workflow.state import CANCELLED, FAIL, SKIPPED, SUCCESS, Json, Line, Position

_POLL_S = 0.1
_ENGINE_KEYS = frozenset({"outcome", "preferred_label", "failure_class", "failure_signature"})
_ENGINE_PREFIXES = ("internal.", "current", "graph.", "parallel.", "thread.")


class Lines(Protocol):
    """What branches need of the driver."""

    graph: Graph
    log: RunLog
    places: Places
    stops: dict[str | None, Stop]
    max_parallel: int | None

    def run_line(self, branch: str | None) -> None: ...
    def now(self) -> datetime: ...


@dataclass(slots=True)
class _Crew:
    """The threads of one fan-out; each puts its name and what ended it into ``ended``."""

    running: set[str] = field(default_factory=set)
    waiting: deque[str] = field(default_factory=deque)
    parked: set[str] = field(default_factory=set)
    ended: queue.SimpleQueue[tuple[str, BaseException | None]] = field(
        default_factory=queue.SimpleQueue
    )
    broken: BaseException | None = None


class Branches:
    """Runs the branches of fan-outs for a driver."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def join_of(self, branch: str | None) -> NodeId | None:
        """The node at which a branch ends; None for the run itself."""
        if branch is None:
            return None
        opened = self._lines.log.state.fan_outs[branch.rpartition("/")[0]]
        return opened.join

    def run(self, visit: str, names: Sequence[str], call: Call) -> None:
        """Runs these branches until each has ended or waits for a person.

        Raises:
            Parked: those that have not ended wait.
            Interrupted: the run is stopped.
        """
        crew = _Crew(waiting=deque(names))
        limit = self._limit(visit)
        while crew.running or (crew.waiting and crew.broken is None):
            self._start(crew, visit, limit, call)
            self._collect(crew, visit)
            self._wake(crew, visit)
            if self._won(visit):
                self._cancel(crew, visit, call)
        if crew.broken is not None:
            raise crew.broken
        if crew.parked:
            raise Parked(visit)

    def _limit(self, visit: str) -> int:
        own = max(1, self._lines.log.state.fan_outs[visit].max_parallel)
        return min(own, self._lines.max_parallel or own)

    def _start(self, crew: _Crew, visit: str, limit: int, call: Call) -> None:
        while crew.waiting and len(crew.running) < limit and crew.broken is None:
            name = crew.waiting.popleft()
            crew.running.add(name)
            key = f"{visit}/{name}"
            self._lines.stops[key] = switch = Stop()
            # The switch of the line around may have been set before this one was known to it.
            if call.stop.is_set():
                switch.set(call.stop.reason)
            thread = threading.Thread(target=self._branch, args=(crew, visit, name, call), name=key)
            thread.start()

    def _branch(self, crew: _Crew, visit: str, name: str, call: Call) -> None:
        try:
            self._run_to_its_end(visit, name, call)
        except BaseException as exc:  # noqa: BLE001 - raised again where the fan-out is driven
            crew.ended.put((name, exc))
        else:
            crew.ended.put((name, None))

    def _run_to_its_end(self, visit: str, name: str, call: Call) -> None:
        try:
            self._lines.run_line(f"{visit}/{name}")
        except Interrupted as exc:
            if exc.args[:1] != ("join_policy",):
                raise
            lost: dict[str, Json] = {
                "message": "another branch won",
                "failure_class": CANCELLED,
            }
            self._end(visit, name, call, status=FAIL, failure=lost)
        else:
            self._conclude(visit, name, call)

    def _collect(self, crew: _Crew, visit: str) -> None:
        try:
            name, error = crew.ended.get(timeout=_POLL_S)
        except queue.Empty:
            return
        crew.running.discard(name)
        if isinstance(error, Parked):
            crew.parked.add(name)
        elif error is not None and crew.broken is None:
            crew.broken = error
            if not isinstance(error, (Interrupted, Paused)):
                self._stop_all(crew, visit, "stop")

    def _stop_all(self, crew: _Crew, visit: str, reason: str) -> None:
        for name in crew.running:
            for branch in self._with_inner(f"{visit}/{name}"):
                if branch in self._lines.stops:
                    self._lines.stops[branch].set(reason)

    def _wake(self, crew: _Crew, visit: str) -> None:
        """A parked branch whose question was answered meanwhile runs on."""
        state = self._lines.log.state
        for name in list(crew.parked):
            inside = self._with_inner(f"{visit}/{name}")
            gates = (gate for gate in state.gates.values() if gate.branch in inside)
            if any(gate.answer is not None for gate in gates):
                crew.parked.discard(name)
                crew.waiting.append(name)

    def _with_inner(self, branch: str) -> set[str]:
        """A branch and every branch inside it."""
        found, state = {branch}, self._lines.log.state
        for name, inner in state.branches.items():
            if inner.parent == branch:
                found |= self._with_inner(name)
        return found

    def _won(self, visit: str) -> bool:
        state = self._lines.log.state
        if state.fan_outs[visit].join_policy != "first_success":
            return False
        names = (f"{visit}/{name}" for name in state.fan_outs[visit].branches)
        return any(
            state.branches[name].status == SUCCESS for name in names if name in state.branches
        )

    def _cancel(self, crew: _Crew, visit: str, call: Call) -> None:
        """One branch has won: those that run are ended, those that wait are skipped."""
        self._stop_all(crew, visit, "join_policy")
        for name in [*crew.waiting, *crew.parked]:
            self._cancel_questions(f"{visit}/{name}")
            self._end(visit, name, call, status=SKIPPED, failure=None)
        crew.waiting.clear()
        crew.parked.clear()

    def _cancel_questions(self, branch: str) -> None:
        log, inside = self._lines.log, self._with_inner(branch)
        for question, gate in list(log.state.gates.items()):
            if gate.branch in inside and gate.answer is None:
                cancelled = QuestionCancelled(
                    question=question,
                    ask=gate.ask,
                    asked_seq=gate.asked_seq,
                    reason="join_policy",
                )
                log.note(cancelled, position_of(gate))

    def _conclude(self, visit: str, name: str, call: Call) -> None:
        line = self._lines.log.state.branches[f"{visit}/{name}"].line
        fan_out: FanOut = self._lines.graph.fan_outs[call.node.id]
        ended = conclusion.conclude_branch(self._lines.graph, fan_out, NodeId(name), line)
        failure: dict[str, Json] | None = None
        if ended.status == FAIL:
            blamed = (ended.visit or "").rpartition("@")[0]
            outcome = line.node_outcomes.get(blamed)
            cause = outcome.failure if outcome is not None else None
            kind = cause.failure_class if cause else "deterministic"
            failure = {"message": ended.reason, "failure_class": kind}
        self._end(visit, name, call, status=ended.status, failure=failure)

    def _end(
        self,
        visit: str,
        name: str,
        call: Call,
        *,
        status: str,
        failure: Mapping[str, Json] | None,
    ) -> None:
        key, log = f"{visit}/{name}", self._lines.log
        with log.lock:
            branch = log.state.branches[key]
            before = log.state.line_of(branch.parent)
            began = engine.moment(log.state.fan_outs[visit].started_at)
            finished = BranchFinished(
                id=name,
                status=status,
                head_sha=self._lines.places.head(key),
                nodes=visits_of(branch.line, before),
                context=changed(before.context_values, branch.line.context_values),
                failure=failure,
                duration_ms=int((self._lines.now() - began).total_seconds() * 1000),
            )
            position = Position(
                node=call.node.id,
                visit=call.position.visit,
                attempt=call.position.attempt,
                branch=key,
            )
            log.note(finished, position)
        self._lines.places.leave(key)


def visits_of(line: Line, before: Line) -> tuple[str, ...]:
    """The visits of a branch in order of completion: ``("api@1", "lint@1", "api@2")``."""
    seen = {
        node: count - line.completed_nodes.count(node) for node, count in line.node_visits.items()
    }
    visits: list[str] = []
    for node in line.completed_nodes:
        seen[node] = seen.get(node, before.node_visits.get(node, 0)) + 1
        visits.append(f"{node}@{seen[node]}")
    return tuple(visits)


def changed(before: Mapping[str, Json], after: Mapping[str, Json]) -> dict[str, Json]:
    """The context keys that a branch changed, never the engine's own."""
    return {
        key: value
        for key, value in after.items()
        if (key not in before or before[key] != value)
        and key not in _ENGINE_KEYS
        and not key.startswith(_ENGINE_PREFIXES)
    }
