"""Answers to the questions of gates, as records: which text is which choice, when time is up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from git_fabro.workflow import engine
from git_fabro.workflow.gate import Choice, match_choice
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import (
    Event,
    Principal,
    QuestionAnswered,
    QuestionExpired,
    QuestionRefused,
)
from git_fabro.workflow.state import Gate, Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What somebody answered: a text, or a refusal with its reason."""

    text: str
    refused: bool = False
    principal: Principal | None = None
    channel: str = "command"
    request: str | None = None


def answer_event(question: str, gate: Gate, reply: Reply) -> Event | None:
    """The record of an answer; None if it is no choice of this gate (git-fabro-workflow(7))."""
    if reply.refused:
        return QuestionRefused(
            question=question,
            ask=gate.ask,
            asked_seq=gate.asked_seq,
            reason=reply.text,
            principal=reply.principal,
            channel=reply.channel,
            request=reply.request,
        )
    choices = tuple(Choice(one.key, one.label, NodeId(one.target)) for one in gate.options)
    found = match_choice(choices, None, reply.text)
    if not isinstance(found, Choice) and not (gate.freeform and reply.text.strip()):
        return None
    chosen = found if isinstance(found, Choice) else None
    return QuestionAnswered(
        question=question,
        ask=gate.ask,
        asked_seq=gate.asked_seq,
        choice=chosen.key if chosen else None,
        label=chosen.label if chosen else "",
        target=chosen.target if chosen else "",
        text=None if chosen else reply.text,
        principal=reply.principal,
        channel=reply.channel,
        request=reply.request,
    )


def position_of(gate: Gate) -> Position:
    return Position(node=gate.node, visit=gate.visit, attempt=gate.attempt, branch=gate.branch)


def expired(question: str, gate: Gate, now: datetime) -> QuestionExpired | None:
    """The record that a deadline has passed; None while it has not, or there is none."""
    if gate.deadline is None or engine.stamp(now) < gate.deadline:
        return None
    waited = now - engine.moment(gate.asked_at)
    return QuestionExpired(
        question=question,
        ask=gate.ask,
        asked_seq=gate.asked_seq,
        waited_ms=int(waited.total_seconds() * 1000),
        default=gate.default,
    )
