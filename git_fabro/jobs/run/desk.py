"""Where requests reach a driver: answers, pause and stop from other processes, and the terminal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from git_fabro.gates import Reply, answer_event, expired, position_of
from git_fabro.handlers.call import Call, Interrupted, Parked
from git_fabro.rundir import Request
from git_fabro.store import RunLog
from git_fabro.workflow.records import Event, Principal
from git_fabro.workflow.state import Gate

_POLL_S = 0.1


class Paused(Exception):  # noqa: N818 - no error: somebody asked for it
    """The run rests after the nodes that were running."""


class Prompter(Protocol):
    """Asks a person at a terminal."""

    def __call__(self, question: str, gate: Gate, over: Callable[[], bool]) -> str | None:
        """What was typed; None at the end of input, or once ``over`` says so."""
        ...


@dataclass(slots=True, kw_only=True)
class Desk:
    """Turns requests into records while a driver runs, and finds answers to its questions."""

    log: RunLog
    on_stop: Callable[[str], None]
    auto_approve: bool = False
    prompter: Prompter | None = None
    principal: Principal | None = None
    pause_asked: bool = False
    request: str | None = None
    _answered: threading.Condition = field(default_factory=threading.Condition)
    _terminal: threading.Lock = field(default_factory=threading.Lock)
    _looking: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None
    failure: BaseException | None = None

    def open(self) -> None:
        """Begins to look into the folder of requests."""
        self._watcher = threading.Thread(target=self._watch, name="requests", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        self._over.set()
        if self._watcher is not None:
            self._watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(_POLL_S):
            try:
                self.look()
            except BaseException as exc:  # noqa: BLE001 - handed to the driver's own thread
                self.failure = exc
                self.on_stop("stop")
                return

    def look(self) -> None:
        """Records and removes what waits in the folder of requests; one thread at a time."""
        with self._looking:
            for request in self.log.directory.pending_requests():
                self._take(request)
                request.path.unlink(missing_ok=True)
        self.log.write_derived()

    def _take(self, request: Request) -> None:
        if request.kind == "answer":
            self._take_answer(request)
        elif request.kind == "pause":
            self.pause_asked, self.request = True, request.id or None
        elif request.kind == "stop":
            self.request = request.id or None
            self.on_stop("request")

    def _take_answer(self, request: Request) -> None:
        with self.log.lock:
            gate = self.log.state.gates.get(request.gate)
            if gate is None or gate.answer is not None:
                self.log.notice("answer_late", f"no open question: {request.gate}")
                return
            if request.body.get("asked_seq") not in (None, gate.asked_seq):
                self.log.notice("answer_late", f"the question was asked again: {request.gate}")
                return
            event = answer_event(request.gate, gate, _reply_of(request))
            if event is None:
                self.log.notice("request_refused", f"no choice of {request.gate}")
                return
            self.record(request.gate, gate, event)

    def record(self, question: str, gate: Gate, event: Event) -> None:
        """Brings an answer into Git and wakes the line that waits for it."""
        self.log.seal(f"answer {question}", event, position=position_of(gate))
        with self._answered:
            self._answered.notify_all()

    def await_answer(self, question: str, call: Call) -> None:
        """Returns once the question has an answer.

        Raises:
            Parked: nobody is there to ask.
            Interrupted: the run is stopped.
        """
        while not self._settled(question):
            if call.stop.is_set():
                raise Interrupted(call.stop.reason)
            gate = self.log.state.gates[question]
            if self.auto_approve:
                self._approve(question, gate)
            elif self.prompter is not None:
                self._ask_at_terminal(question, gate, call)
            else:
                self._park(question)

    def _park(self, question: str) -> None:
        """Nobody is here to ask; but an answer may lie there that nobody has read."""
        self.look()
        if self.log.state.gates[question].answer is None:
            raise Parked(question)

    def _settled(self, question: str) -> bool:
        """Whether there is an answer; the passing of a deadline is one."""
        with self.log.lock:
            gate = self.log.state.gates[question]
            if gate.answer is not None:
                return True
            late = expired(question, gate, self.log.clock())
            if late is None:
                return False
            self.log.note(late, position_of(gate))
            return True

    def _approve(self, question: str, gate: Gate) -> None:
        text = gate.options[0].key if gate.options else "auto-approved"
        event = answer_event(question, gate, Reply(text=text, channel="auto"))
        assert event is not None
        self.record(question, gate, event)

    def _ask_at_terminal(self, question: str, gate: Gate, call: Call) -> None:
        assert self.prompter is not None

        def over() -> bool:
            return call.stop.is_set() or self._settled(question)

        with self._terminal:
            if over():
                return
            typed = self.prompter(question, gate, over)
        if over():
            return
        if typed is None:
            self._park(question)
            return
        reply = Reply(text=typed, channel="terminal", principal=self.principal)
        event = answer_event(question, gate, reply)
        if event is not None:
            self.record(question, gate, event)


def _reply_of(request: Request) -> Reply:
    body = request.body
    name, email = body.get("name"), body.get("email")
    known = isinstance(name, str) and isinstance(email, str)
    return Reply(
        text=str(body.get("text", "")),
        refused=body.get("refused") is True,
        principal=Principal(name=str(name), email=str(email)) if known else None,
        channel="command",
        request=request.id or None,
    )
