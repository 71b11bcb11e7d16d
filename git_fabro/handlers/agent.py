"""Agent and prompt nodes: a program is given the prompt, and its answer decides."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

from git_fabro.checkpoint import codec
from git_fabro.handlers import presets
from git_fabro.handlers.call import Call, Notice, Result
from git_fabro.handlers.presets import Envelope, Program
from git_fabro.handlers.process import Ran, failure_of, last_line, run_program
from git_fabro.handlers.response import (
    ROUTING,
    ROUTING_OF_FILE,
    Verdict,
    last_object_with,
    verdict_of,
)
from git_fabro.workflow.graph import outcome_words
from git_fabro.workflow.state import (
    BUDGET,
    DETERMINISTIC,
    FAIL,
    RETRY,
    SUCCESS,
    TIMED_OUT,
    TRANSIENT,
    Failure,
    Json,
    Outcome,
)

STATUS_FILE = "status.json"
_STATUS_FILE_BYTES = 1024 * 1024

#: How much of a response the context key ``last_response`` holds, in characters.
_SHOWN = 200

_CLASS_WORDS = (
    (
        TRANSIENT,
        (
            *("rate limit", "too many requests", "429", "overloaded", "502", "503"),
            *("connection reset", "connection refused", "temporarily unavailable"),
        ),
    ),
    (BUDGET, ("context length", "token limit", "quota")),
)


def run(call: Call) -> Result:
    """Calls the agent program with the prompt on stdin; see the manual, "Agents".

    Raises:
        Interrupted: ``call.stop`` was set; nothing of the program is left running.
        RequestError: no agent is configured.
    """
    program = presets.program_of(call.settings)
    if not call.tracked_status_json:
        _remove_status_file(call.directory)
    ran = _ran(call, program)
    envelope = program.read(_text(ran.stdout), _text(ran.stderr))
    trace = {
        "prompt.md": call.mask.text(call.text).encode("utf-8", "replace"),
        "response.md": envelope.response.encode("utf-8", "replace"),
        "provider_used.json": codec.document(_provider_used(call, program)),
    }
    verdict = _verdict(call, envelope, trace)
    for notice in verdict.notices:
        call.notice(notice)
    outcome = judge(verdict, _failure(call, ran, envelope))
    said: dict[str, Json] = {
        "last_stage": call.node.id,
        "last_response": envelope.response[:_SHOWN],
        f"response.{call.node.id}": envelope.response,
    }
    updates = {**said, **outcome.context_updates}
    return Result(replace(outcome, context_updates=updates, usage=envelope.usage), trace)


def _ran(call: Call, program: Program) -> Ran:
    values = _placeholders(call)
    prompt = call.text.encode("utf-8", "surrogateescape")
    if not program.uses("prompt_file"):
        return run_program(call, presets.arguments(program.command, values), stdin=prompt)
    path = (call.logs / "prompt").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(prompt)
    values["prompt_file"] = str(path)
    return run_program(call, presets.arguments(program.command, values))


def _placeholders(call: Call) -> dict[str, str]:
    return {
        "model": _chosen(call, "model"),
        "provider": _chosen(call, "provider"),
        "reasoning_effort": call.node.text("reasoning_effort"),
        "thread": call.thread,
        "node": call.node.id,
        "run": call.environment.get("FABRO_RUN_ID", ""),
    }


def _provider_used(call: Call, program: Program) -> Json:
    return {
        "mode": program.name,
        "model": _chosen(call, "model") or None,
        "provider": _chosen(call, "provider") or None,
    }


def _chosen(call: Call, what: str) -> str:
    """The model or provider: of the node, its stylesheet, the settings, the graph; else ""."""
    of_settings = {"model": call.settings.model, "provider": call.settings.provider}
    return call.node.text(what) or of_settings[what] or call.graph.text(f"default_{what}")


def judge(verdict: Verdict, failure: Failure | None) -> Outcome:
    """What a program's answer is worth once it is known how the program ended.

    Args:
        verdict: What the answer asks for.
        failure: How the program failed; None if it did not.
    """
    outcome = verdict.outcome
    if failure is None:
        return outcome
    if outcome.failure is None or failure.failure_class == TIMED_OUT:
        # The word of a program that failed says nothing about where to go.
        return Outcome(
            status=FAIL,
            failure=failure,
            context_updates=outcome.context_updates,
            notes=outcome.notes,
        )
    assert outcome.status in (FAIL, RETRY)
    if verdict.names_class:
        return outcome
    return replace(outcome, failure=replace(outcome.failure, failure_class=failure.failure_class))


def _failure(call: Call, ran: Ran, envelope: Envelope) -> Failure | None:
    """How the program failed; only then do words in its complaints tell the class."""
    error = last_line(envelope.error.encode("utf-8", "replace"))
    answer = last_line(envelope.response.encode("utf-8", "replace"))
    failure = failure_of(call, ran, error or last_line(ran.stderr) or answer)
    if failure is None and envelope.error:
        failure = Failure(f"the agent failed: {error}" if error else "the agent failed")
    if failure is None or failure.failure_class != DETERMINISTIC:
        return failure
    complaints = f"{_text(ran.stderr)}\n{envelope.error}".lower()
    for failure_class, words in _CLASS_WORDS:
        if any(word in complaints for word in words):
            return replace(failure, failure_class=failure_class)
    return failure


def _verdict(call: Call, envelope: Envelope, trace: dict[str, bytes]) -> Verdict:
    """What the response asks for, else the file ``status.json``, else success."""
    found = last_object_with(envelope.response, ROUTING)
    if call.tracked_status_json:
        if found is None and (call.directory / STATUS_FILE).exists():
            call.notice(
                Notice(
                    "status_json_tracked",
                    "status.json belongs to the project: not read as a status",
                )
            )
    else:
        data = _read_status_file(call.directory)
        _remove_status_file(call.directory)
        if found is None and data is not None:
            trace[STATUS_FILE] = call.mask.data(data)
            found = last_object_with(_text(trace[STATUS_FILE]), ROUTING_OF_FILE)
            if found is None:
                call.notice(Notice("status_json_unreadable", "status.json holds no status"))
    if found is None:
        return Verdict(Outcome(status=SUCCESS))
    return verdict_of(found, outcome_words(call.graph, call.node.id))


def _read_status_file(directory: Path) -> bytes | None:
    """The file's bytes; None unless it is a regular file of a sensible size."""
    try:
        descriptor = os.open(
            directory / STATUS_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        )
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _STATUS_FILE_BYTES:
            return None
        return os.read(descriptor, _STATUS_FILE_BYTES)
    finally:
        os.close(descriptor)


def _remove_status_file(directory: Path) -> None:
    path = directory / STATUS_FILE
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)


def _text(stream: bytes) -> str:
    return stream.decode("utf-8", "replace")
