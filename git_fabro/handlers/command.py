"""Command nodes: a script in the work tree, judged by its exit status alone."""

from __future__ import annotations

from pathlib import Path

from git_fabro.checkpoint import codec
from git_fabro.handlers.call import Call, Result
from git_fabro.handlers.process import Ran, failure_of, run_program
from git_fabro.workflow.state import FAIL, SUCCESS, Json, Outcome

PYTHON = "python"

#: The kernel refuses a longer argument (execve(2), MAX_ARG_STRLEN); such a script goes by a file.
_LONGEST_ARGUMENT_BYTES = 120_000


def run(call: Call) -> Result:
    """Runs the script; its output is text for the context and is never searched for anything.

    Raises:
        Interrupted: ``call.stop`` was set; nothing of the script is left running.
    """
    language = PYTHON if call.node.text("language") == PYTHON else "shell"
    ran = run_program(call, _arguments(call, language))
    return Result(_outcome(call, ran), _trace(call, language, ran))


def _arguments(call: Call, language: str) -> tuple[str, ...]:
    script = call.text.encode("utf-8", "surrogateescape")
    if len(script) <= _LONGEST_ARGUMENT_BYTES:
        return ("python3", "-c", call.text) if language == PYTHON else ("sh", "-c", call.text)
    path = _written(call.logs / "script", script)
    if language == PYTHON:
        return "python3", "-c", f"exec(compile(open({path!r}).read(), {path!r}, 'exec'))"
    return "sh", "-c", '. "$0"', path


def _written(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path.absolute())


def _outcome(call: Call, ran: Ran) -> Outcome:
    failure = failure_of(call, ran)
    return Outcome(
        status=FAIL if failure else SUCCESS,
        context_updates={
            "command.output": ran.stdout.decode("utf-8", "replace"),
            "command.stderr": ran.stderr.decode("utf-8", "replace"),
        },
        failure=failure,
    )


def _trace(call: Call, language: str, ran: Ran) -> dict[str, bytes]:
    invocation: dict[str, Json] = {
        "command": call.text,
        "language": language,
        "timeout_ms": None if call.timeout_s is None else round(call.timeout_s * 1000),
    }
    timing: dict[str, Json] = {
        "duration_ms": ran.duration_ms,
        "exit_code": ran.status,
        "timed_out": ran.timed_out,
    }
    return {
        "script_invocation.json": codec.document(call.mask.json(invocation)),
        "script_timing.json": codec.document(timing),
    }
