"""Answers, pauses and stops from another process: left for the driver, or recorded without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from git_fabro import homes, lease, opening, reading
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import Doors, fresh_ulid
from git_fabro.errors import ConflictError, LeasedError, NotFoundError, RequestError
from git_fabro.gates import Reply, answer_event, expired, position_of
from git_fabro.opening import Session
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.records import Principal
from git_fabro.workflow.state import ENDED, Gate, RunState

PAUSE, STOP = "pause", "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A run, and where this process stands; ``doors`` is None outside a repository."""

    doors: Doors | None
    run: RunId
    folder: Path
    environment: Mapping[str, str]

    @property
    def home(self) -> Path:
        repository = self.doors.repository if self.doors is not None else None
        return homes.home(repository, self.folder, self.environment)

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory.of(self.home, self.run)

    @property
    def in_git(self) -> Doors | None:
        """The doors, if the run has metadata behind them; None of a run that is a journal only."""
        if self.doors is None or reading.tips_of(self.doors, self.run).meta_tip is None:
            return None
        return self.doors

    def state(self) -> RunState:
        """Where the run stands, its journal included."""
        return reading.state_now(self.doors, self.run, self.directory)

    def is_driven(self) -> bool:
        """Whether a process drives the run and is alive, or may be, on another machine."""
        doors = self.in_git
        if doors is None:
            return self.directory.is_locked()
        _, holder = lease.read(doors.refs, doors.objects, self.run)
        return holder is not None and lease.is_alive(holder) is not False


def open_questions(place: Place) -> dict[str, Gate]:
    """The questions of a run that nobody has answered, by gate id."""
    gates = place.state().gates
    return {name: gate for name, gate in gates.items() if gate.answer is None}


def answer(place: Place, question: str, reply: Reply) -> str:
    """Answers a question; gives ``recorded``, or ``left`` where a driver will record it.

    Raises:
        NotFoundError: the question is not open.
        RequestError: the answer is none of its choices.
        ConflictError: somebody else has answered.
    """
    gate = _open_gate(place, question)
    _check(place, question, gate, reply)
    if place.is_driven():
        _leave(place, question, gate, reply)
        return "left"
    try:
        _record(place, question, reply)
    except LeasedError:
        _leave(place, question, gate, reply)
        return "left"
    return "recorded"


def _open_gate(place: Place, question: str) -> Gate:
    gates = open_questions(place)
    if question not in gates:
        known = f"open: {', '.join(sorted(gates))}" if gates else "no question is open"
        raise NotFoundError(
            f"no open question: {question} ({known})", hint=f"git fabro answer {place.run}"
        )
    return gates[question]


def _check(place: Place, question: str, gate: Gate, reply: Reply) -> None:
    if answer_event(question, gate, reply) is not None:
        return
    choices = ", ".join(f"{one.key} ({one.label or one.target})" for one in gate.options)
    first = gate.options[0].key if gate.options else "TEXT"
    raise RequestError(
        f"no choice of {question}: '{reply.text}'; choices: {choices}",
        hint=f"git fabro answer {place.run} {question} {first}",
    )


def _leave(place: Place, question: str, gate: Gate, reply: Reply) -> None:
    body: dict[str, object] = {
        "id": fresh_ulid(),
        "asked_seq": gate.asked_seq,
        "text": reply.text,
        "refused": reply.refused,
    }
    if reply.principal is not None:
        body |= {"name": reply.principal.name, "email": reply.principal.email}
    place.directory.leave_request("answer", body, gate=question)


def _record(place: Place, question: str, reply: Reply) -> None:
    """Takes the run, records the answer, in a meta commit if it has any, and leaves the run."""
    doors, session = place.in_git, session_of(place)
    if doors is not None:
        log, _ = opening.take(doors, place.run, place.directory, session)
    else:
        log, _ = opening.take_journal(place.run, place.directory, session)
    try:
        gate = log.state.gates.get(question)
        if gate is None or gate.answer is not None:
            raise ConflictError(f"the question was answered meanwhile: {question}")
        late = expired(question, gate, log.clock())
        event = late or answer_event(question, gate, reply)
        assert event is not None
        log.seal(f"answer {question}", event, position=position_of(gate))
        if late is not None:
            raise ConflictError(
                f"the deadline of {question} has passed", hint=f"git fabro resume {place.run}"
            )
    finally:
        log.release("done")
        log.close()


def session_of(place: Place) -> Session:
    """This process, for a moment, as the holder of a run."""
    return Session.of_moment(place.doors, place.environment)


def ask_driver(place: Place, what: str) -> None:
    """Asks whoever drives a run to pause or to stop.

    Raises:
        RequestError: nobody drives it.
        ConflictError: the same was asked already.
    """
    status = place.state().status
    if status in ENDED:
        raise RequestError(
            f"the run has ended in {status}: {place.run}", hint=f"git fabro show {place.run}"
        )
    if not place.is_driven():
        raise RequestError(
            f"nobody drives the run: {place.run}", hint=f"git fabro resume {place.run}"
        )
    place.directory.leave_request(what, {"id": fresh_ulid()})


def principal_of(doors: Doors | None) -> Principal | None:
    """Who types here, as git knows it; None where git knows nobody."""
    if doors is None:
        return None
    name, email = doors.repository.config("user.name"), doors.repository.config("user.email")
    return Principal(name=name, email=email) if name and email else None
