"""Agent programs that are known: how each is called, and where in its output the answer stands.

Source: ``claude --help``, ``codex exec --help``, ``gemini --help``, ``opencode run --help``,
``aider --help``, ``llm --help``, and each program's documentation of its output format.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from git_fabro.errors import RequestError
from git_fabro.handlers.response import last_object_with
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Json

#: Arguments; an inner tuple is dropped as a whole when a placeholder in it is empty.
Command = tuple[str | tuple[str, ...], ...]

_PLACEHOLDER = re.compile(r"\{(model|provider|reasoning_effort|thread|node|run|prompt_file)\}")


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a program printed, opened: its answer, its complaint if it failed, and its numbers."""

    response: str
    error: str = ""
    usage: Mapping[str, Json] | None = None


Reader = Callable[[str, str], Envelope]


@dataclass(frozen=True, slots=True)
class Program:
    """How the agent is called and read. ``name`` is the preset's, or ``command``."""

    name: str
    command: Command
    read: Reader

    def uses(self, placeholder: str) -> bool:
        """Whether a placeholder stands anywhere in the arguments."""
        return any(f"{{{placeholder}}}" in argument for argument in _flat(self.command))


def is_configured(settings: Settings) -> bool:
    """Whether the settings name an agent at all."""
    return bool(settings.agent_preset or settings.agent_command)


def program_of(settings: Settings) -> Program:
    """The agent that the settings name; a command of one's own beats the preset's.

    Raises:
        RequestError: no agent is configured, or no such preset is known.
    """
    preset, command = settings.agent_preset, settings.agent_command
    if preset and preset not in PRESETS:
        raise RequestError(
            f"unknown agent preset: {preset}", hint=f"known presets: {', '.join(sorted(PRESETS))}"
        )
    if not is_configured(settings):
        raise RequestError(
            "a node needs an agent and none is configured",
            hint="git fabro run --agent claude, or [agent] preset in the settings",
        )
    known = PRESETS[preset] if preset else Program("command", (), read_text)
    return replace(known, command=split_command(command)) if command else known


def split_command(command: str | Sequence[str | Sequence[str]]) -> Command:
    """A command as arguments; a text is split as a shell would.

    Raises:
        RequestError: a quotation mark is not closed, or there is no program.
    """
    if isinstance(command, str):
        try:
            found: Command = tuple(shlex.split(command))
        except ValueError as exc:
            raise RequestError(f"agent command cannot be split: {exc}: {command}") from exc
    else:
        found = tuple(one if isinstance(one, str) else tuple(one) for one in command)
    if not found:
        raise RequestError("agent command is empty")
    return found


def arguments(command: Command, values: Mapping[str, str]) -> tuple[str, ...]:
    """The arguments with placeholders filled in, once; what is no placeholder stays."""

    def fill(argument: str) -> str:
        return _PLACEHOLDER.sub(lambda found: values.get(found[1], ""), argument)

    def is_empty(group: tuple[str, ...]) -> bool:
        names = [found[1] for argument in group for found in _PLACEHOLDER.finditer(argument)]
        return any(not values.get(name) for name in names)

    filled: list[str] = []
    for one in command:
        if isinstance(one, str):
            filled.append(fill(one))
        elif not is_empty(one):
            filled += [fill(argument) for argument in one]
    return tuple(filled)


def _flat(command: Command) -> Iterator[str]:
    for one in command:
        yield from (one,) if isinstance(one, str) else one


def read_text(stdout: str, stderr: str) -> Envelope:
    """The whole output is the answer."""
    return Envelope(stdout)


def _read_claude(stdout: str, stderr: str) -> Envelope:
    """One object, or a list whose last one is the result (``--verbose``)."""
    result = _last_with(stdout, {"is_error", "result"})
    if result is None:
        return Envelope(stdout)
    subtype, said = _text(result.get("subtype")), _text(result.get("result"))
    # "success" is what it calls its end even where it could not log in.
    has_failed = result.get("is_error") is True or subtype.startswith("error")
    cost = _numbers({"total_cost_usd": result.get("total_cost_usd")})
    usage = _numbers(result.get("usage")) | cost
    return Envelope(said, (said or subtype or "error") if has_failed else "", usage or None)


def _read_codex(stdout: str, stderr: str) -> Envelope:
    """Event lines: the last agent message; an error counts unless a turn was completed after it."""
    response, error, usage = "", "", dict[str, Json]()
    events = list(_objects(stdout))
    for event in events:
        kind, item = event.get("type"), event.get("item")
        if kind == "item.completed" and isinstance(item, dict):
            if item.get("type", item.get("item_type")) in ("agent_message", "assistant_message"):
                response = _text(item.get("text"))
        elif kind in ("error", "turn.failed"):
            error = _message(event) or "error"
        elif kind == "turn.completed":
            error = ""
            usage = _sum(usage, _numbers(event.get("usage")))
    if not any("type" in event for event in events):
        return Envelope(stdout)
    return Envelope(response, error, usage or None)


def _read_gemini(stdout: str, stderr: str) -> Envelope:
    """One object on stdout; an error may stand there or, as an object too, on stderr."""
    result = _last_with(stdout, {"response", "error"})
    errors = [one for one in (result, _last_with(stderr, {"error"})) if one and one.get("error")]
    error = (_message(errors[0]) or "error") if errors else ""
    if result is None:
        return Envelope(stdout, error)
    usage: dict[str, Json] = {}
    stats = result.get("stats")
    models = stats.get("models") if isinstance(stats, dict) else None
    for model in models.values() if isinstance(models, dict) else ():
        usage = _sum(usage, _numbers(model.get("tokens") if isinstance(model, dict) else None))
    return Envelope(_text(result.get("response")), error, usage or None)


def _read_opencode(stdout: str, stderr: str) -> Envelope:
    """Event lines: the text parts together; an error event is a failure whatever the status."""
    texts, error, usage = list[str](), "", dict[str, Json]()
    events = list(_objects(stdout))
    for event in events:
        kind, part = event.get("type"), event.get("part")
        part = part if isinstance(part, dict) else {}
        if kind in ("error", "session.error"):
            error = _message(event) or "error"
        elif kind == "text":
            texts.append(_text(part.get("text")))
        elif kind == "step_finish":
            usage = _sum(usage, _numbers(part.get("tokens")) | _numbers({"cost": part.get("cost")}))
    if not any("type" in event for event in events):
        return Envelope(stdout)
    return Envelope("\n".join(texts), error, usage or None)


#: A file, not a module: nothing in a work tree can stand in its way, and it starts in 10 ms.
_FAKE = str(Path(__file__).with_name("fake.py"))

PRESETS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program(
            "claude",
            ("claude", "-p", "--output-format", "json", ("--model", "{model}")),
            _read_claude,
        ),
        Program(
            "codex",
            ("codex", "exec", "--json", "-s", "workspace-write", ("-m", "{model}"), "-"),
            _read_codex,
        ),
        Program(
            "gemini",
            (
                *("gemini", "-p", "", "--output-format", "json", "--approval-mode", "yolo"),
                ("-m", "{model}"),
            ),
            _read_gemini,
        ),
        Program(
            "opencode",
            ("opencode", "run", "--format", "json", "--auto", ("-m", "{model}")),
            _read_opencode,
        ),
        Program(
            "aider",
            (
                *("aider", "--yes-always", "--no-auto-commits", "--message-file", "{prompt_file}"),
                ("--model", "{model}"),
            ),
            read_text,
        ),
        Program("llm", ("llm", ("-m", "{model}")), read_text),
        Program("fake", (sys.executable, "-I", "-S", _FAKE), read_text),
    )
}


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a text: it is one, or a list of them, or has one on some lines."""
    whole = _loaded(text)
    # Not splitlines: JSON may hold other line separators as they are.
    values: Iterable[Any] = (_loaded(line) for line in text.split("\n") if line.strip())
    if isinstance(whole, dict):
        values = [whole]
    elif isinstance(whole, list):
        values = whole
    return (value for value in values if isinstance(value, dict))


def _last_with(text: str, fields: Collection[str]) -> Mapping[str, Any] | None:
    """The last object with one of the fields, also behind lines that are no JSON."""
    found = [value for value in _objects(text) if not value.keys().isdisjoint(fields)]
    return found[-1] if found else last_object_with(text, fields)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _message(event: Mapping[str, Any]) -> str:
    """What an error says: ``{"message": …}``, ``{"error": {"message": …}}`` or a level deeper."""
    for _ in range(4):
        if said := _text(event.get("message")):
            return said
        inner = event.get("error") or event.get("data") or event.get("properties")
        if not isinstance(inner, dict):
            return _text(inner) or _text(event.get("name")) or _text(event.get("type"))
        event = inner
    return ""


def _numbers(value: Any) -> dict[str, Json]:
    """The numbers of an object, by name; those of an inner one with its name before theirs."""
    found: dict[str, Json] = {}
    for key, item in value.items() if isinstance(value, dict) else ():
        if isinstance(item, dict):
            found.update({f"{key}_{inner}": number for inner, number in _numbers(item).items()})
        elif isinstance(item, (int, float)) and not isinstance(item, bool) and abs(item) < 1e18:
            found[key] = item
    return found


def _sum(left: Mapping[str, Json], right: Mapping[str, Json]) -> dict[str, Json]:
    found = dict(left)
    for key, number in right.items():
        before = found.get(key, 0)
        assert isinstance(before, (int, float))
        assert isinstance(number, (int, float))
        found[key] = before + number
    return found
