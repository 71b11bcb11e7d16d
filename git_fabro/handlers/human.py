"""Human gates: the question is a record before anybody sees it; only an answer opens an edge."""

from __future__ import annotations

from datetime import datetime, timedelta

from git_fabro.handlers.call import Call, Driver, Result
from git_fabro.workflow.engine import stamp
from git_fabro.workflow.gate import choices, freeform_edge, match_choice
from git_fabro.workflow.records import QuestionAsked
from git_fabro.workflow.state import (
    CANCELLED,
    RETRY,
    SUCCESS,
    TIMED_OUT,
    Gate,
    Json,
    Option,
    Outcome,
    failed,
)


def run(call: Call, driver: Driver) -> Result:
    """Asks, waits, and turns the answer into an outcome.

    Raises:
        Parked: nobody can answer now.
        Interrupted: the run is stopped.
    """
    question = str(call.position)
    gate = driver.state.gates.get(question)
    if gate is None or gate.ask != call.position.attempt:
        driver.seal(f"question {question}", ask(call, driver.now()), call.position)
    driver.await_answer(question, call)
    return Result(outcome_of(driver.state.gates[question], call))


def ask(call: Call, now: datetime) -> QuestionAsked:
    """The question of a gate, with its choices and its absolute deadline."""
    timeout_s = call.node.seconds("timeout")
    deadline = stamp(now + timedelta(seconds=timeout_s)) if timeout_s is not None else None
    options = tuple(
        Option(key=choice.key, label=choice.label, target=choice.target)
        for choice in choices(call.graph, call.node.id)
    )
    freeform = freeform_edge(call.graph, call.node.id)
    return QuestionAsked(
        question=str(call.position),
        ask=call.position.attempt,
        text=call.mask.text(call.node.label),
        options=options,
        freeform=freeform is not None,
        default=_default_target(call),
        deadline=deadline,
    )


def _default_target(call: Call) -> str | None:
    """Where the default leads. It is a choice: a workflow whose default is none is not admitted."""
    wanted = call.node.text("human.default_choice")
    found = match_choice(choices(call.graph, call.node.id), None, wanted)
    return found.target if found is not None else None


def outcome_of(gate: Gate, call: Call) -> Outcome:
    """What an answered question comes to (git-fabro-workflow(7))."""
    answer = gate.answer
    assert answer is not None
    if answer.how == "refused":
        reason = answer.reason or "the question was refused"
        return failed(reason, failure_class=CANCELLED)
    if answer.how == "cancelled":
        return failed(f"the question was cancelled: {answer.reason}", failure_class=CANCELLED)
    if answer.how == "expired":
        option = next((one for one in gate.options if one.target == answer.target), None)
        if option is None:
            return failed("nobody answered in time", failure_class=TIMED_OUT, status=RETRY)
        return _chosen(option.key, option.label, option.target, text=None)
    if answer.choice is None:
        edge = freeform_edge(call.graph, call.node.id)
        target = edge.target if edge is not None else answer.target
        return _chosen("freeform", answer.label, target, text=answer.text)
    return _chosen(answer.choice, answer.label, answer.target, text=answer.text)


def _chosen(key: str, label: str, target: str, *, text: str | None) -> Outcome:
    updates: dict[str, Json] = {
        "human.gate.selected": key,
        "human.gate.label": label,
        "human.gate.text": text if text is not None else "",
    }
    return Outcome(
        status=SUCCESS,
        context_updates=updates,
        preferred_label=label,
        suggested_next_ids=(target,),
    )
