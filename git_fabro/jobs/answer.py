"""Answers, pauses and stops from another process: left for the driver, or recorded without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from git_fabro import lease, opening, reading, rundir
from git_fabro.checkpoint.model import RunId
from git_fabro.checkpoint.secrets import Mask, secret_values
from git_fabro.doors import Doors, fresh_ulid
from git_fabro.errors import ConflictError, LeasedError, NotFoundError, RequestError
from git_fabro.gates import Reply, answer_event, expired, position_of
from git_fabro.opening import Session
from git_fabro.reading import View
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.records import Principal
from git_fabro.workflow.state import ENDED, Gate

PAUSE, STOP = "pause", "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A run, and where this process stands."""

    doors: Doors
    run: RunId
    folder: Path
    environment: Mapping[str, str]

    @property
    def directory(self) -> RunDirectory:
        home = rundir.home(self.doors.repository, self.folder, self.environment)
        return RunDirectory.of(home, self.run)

    def view(self) -> View:
        return reading.view(self.doors, self.run, self.directory)

    def holder(self) -> lease.Holder | None:
        """Whoever drives the run and is alive, or may be, on another machine."""
        _, holder = lease.read(self.doors.refs, self.doors.objects, self.run)
        if holder is None or lease.is_alive(holder) is False:
            return None
        return holder


def open_questions(place: Place) -> dict[str, Gate]:
    """The questions of a run that nobody has answered, by gate id."""
    gates = place.view().state.gates
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
    if place.holder() is not None:
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
    """Takes the lease, records the answer in a meta commit, and frees the lease."""
    log, _ = opening.take(place.doors, place.run, place.directory, session_of(place))
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
    _, values = secret_values(place.environment)
    patterns = place.doors.repository.config_all("fabro.secrets.pattern")
    return Session(
        clock=lambda: datetime.now(UTC),
        mask=Mask.of(values, patterns),
        holder=lease.me(fresh_ulid()),
    )


def ask_driver(place: Place, what: str) -> None:
    """Asks whoever drives a run to pause or to stop.

    Raises:
        RequestError: nobody drives it.
        ConflictError: the same was asked already.
    """
    status = place.view().state.status
    if status in ENDED:
        raise RequestError(
            f"the run has ended in {status}: {place.run}", hint=f"git fabro show {place.run}"
        )
    if place.holder() is None:
        raise RequestError(
            f"nobody drives the run: {place.run}", hint=f"git fabro resume {place.run}"
        )
    place.directory.leave_request(what, {"id": fresh_ulid()})


def principal_of(doors: Doors) -> Principal | None:
    """Who types here, as git knows it; None where git knows nobody."""
    name, email = doors.repository.config("user.name"), doors.repository.config("user.email")
    return Principal(name=name, email=email) if name and email else None
