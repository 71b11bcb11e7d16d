"""How agent programs are called, and how what they print is read."""

from __future__ import annotations

import json

import pytest

from git_fabro.errors import RequestError
from git_fabro.handlers.presets import (
    PRESETS,
    Envelope,
    arguments,
    is_configured,
    program_of,
    split_command,
)
from tests.handlers.calls import a_settings

VALUES = {"model": "m1", "provider": "", "prompt_file": "/p", "thread": "", "node": "plan"}


@pytest.mark.parametrize(
    ("preset", "model", "expected"),
    [
        ("claude", "m1", "claude -p --output-format json --model m1"),
        ("claude", "", "claude -p --output-format json"),
        ("codex", "m1", "codex exec --json -s workspace-write -m m1 -"),
        ("codex", "", "codex exec --json -s workspace-write -"),
        ("gemini", "", "gemini -p  --output-format json --approval-mode yolo"),
        ("opencode", "m1", "opencode run --format json --auto -m m1"),
        ("aider", "", "aider --yes-always --no-auto-commits --message-file /p"),
        ("llm", "m1", "llm -m m1"),
    ],
)
def test_presets_are_called_as_their_programs_want(preset, model, expected) -> None:
    command = PRESETS[preset].command

    assert " ".join(arguments(command, VALUES | {"model": model})) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("a", "{node}-{model}", "{provider}"), ("a", "plan-m1", "")),
        (("a", ("--m", "{model}"), ("--p", "{provider}")), ("a", "--m", "m1")),
        (("a", ("--m", "{model}", "{provider}")), ("a",)),
        (("a", ("--plain", "b")), ("a", "--plain", "b")),
        (("a", "{unknown} {}", "{{model}}"), ("a", "{unknown} {}", "{m1}")),
    ],
)
def test_placeholders_are_filled_and_empty_groups_dropped(command, expected) -> None:
    assert arguments(command, VALUES) == expected


def test_what_is_filled_in_is_no_placeholder() -> None:
    assert arguments(("{model}",), {"model": "{node}", "node": "x"}) == ("{node}",)


@pytest.mark.parametrize(
    ("given", "split"),
    [
        ("sh -c 'echo {model} \"$X\"'", ("sh", "-c", 'echo {model} "$X"')),
        (["a", ["--m", "{model}"]], ("a", ("--m", "{model}"))),
        (("a",), ("a",)),
    ],
)
def test_a_text_is_split_as_a_shell_would(given, split) -> None:
    assert split_command(given) == split


@pytest.mark.parametrize("given", ["a 'b", "", "  ", ()])
def test_a_command_that_is_none_is_refused(given) -> None:
    with pytest.raises(RequestError):
        split_command(given)


def test_a_command_of_ones_own_is_read_as_the_preset_says() -> None:
    own = program_of(a_settings("claude", ("my-claude", "{thread}")))
    plain = program_of(a_settings("", "my-agent --x"))

    assert (own.name, own.command, own.read) == (
        "claude",
        ("my-claude", "{thread}"),
        PRESETS["claude"].read,
    )
    assert (own.uses("thread"), own.uses("model")) == (True, False)
    assert (plain.name, plain.command) == ("command", ("my-agent", "--x"))
    assert program_of(a_settings("codex")) == PRESETS["codex"]


@pytest.mark.parametrize("preset", ["", "cloud"])
def test_no_agent_and_no_such_preset_are_refused(preset: str) -> None:
    assert is_configured(a_settings(preset)) == bool(preset)
    with pytest.raises(RequestError):
        program_of(a_settings(preset))


def events(*values) -> str:
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values) + "\n"


CLAUDE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "done\u2028well",
    "total_cost_usd": 0.5,
    "usage": {"input_tokens": 3, "output_tokens": 4, "server_tool_use": {"web": 1}, "tier": "x"},
}
CLAUDE_USAGE = {
    "input_tokens": 3,
    "output_tokens": 4,
    "server_tool_use_web": 1,
    "total_cost_usd": 0.5,
}
DONE = {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 6}}
STEP = {"type": "step_finish", "part": {"cost": 0.25, "tokens": {"input": 1, "cache": {"read": 2}}}}


def message(text: str):
    return {"type": "item.completed", "item": {"type": "agent_message", "text": text}}


@pytest.mark.parametrize(
    ("preset", "stdout", "stderr", "expected"),
    [
        ("claude", events(CLAUDE), "", Envelope("done\u2028well", "", CLAUDE_USAGE)),
        (
            "claude",
            json.dumps([{"type": "system"}, CLAUDE]),
            "",
            Envelope("done\u2028well", "", CLAUDE_USAGE),
        ),
        (
            "claude",
            "warning\n" + json.dumps(CLAUDE, indent=1),
            "",
            Envelope("done\u2028well", "", CLAUDE_USAGE),
        ),
        (
            "claude",
            events({"type": "result", "subtype": "success", "is_error": True, "result": "log in"}),
            "",
            Envelope("log in", "log in"),
        ),
        (
            "claude",
            events({"type": "result", "subtype": "error_max_turns", "is_error": False}),
            "",
            Envelope("", "error_max_turns"),
        ),
        ("claude", "no json", "", Envelope("no json")),
        ("claude", "", "", Envelope("")),
        ("claude", "[1]", "", Envelope("[1]")),
        (
            "codex",
            events({"type": "thread.started"}, message("a"), message("b"), DONE, DONE),
            "",
            Envelope("b", "", {"input_tokens": 10, "output_tokens": 12}),
        ),
        (
            "codex",
            events({"type": "error", "message": "reconnecting"}, message("a"), DONE),
            "",
            Envelope("a", "", DONE["usage"]),
        ),
        (
            "codex",
            events(message("a"), {"type": "turn.failed", "error": {"message": "no quota"}}),
            "",
            Envelope("a", "no quota"),
        ),
        ("codex", "plain\ntext", "", Envelope("plain\ntext")),
        (
            "codex",
            events(message("a"))[:-1] + '\n{"type": "item.comp\n',
            "",
            Envelope("a"),
        ),
        (
            "gemini",
            json.dumps(
                {
                    "response": "r",
                    "stats": {
                        "models": {"x": {"tokens": {"total": 7}}, "y": {"tokens": {"total": 8}}}
                    },
                },
                indent=2,
            ),
            "Loaded cached credentials.",
            Envelope("r", "", {"total": 15}),
        ),
        (
            "gemini",
            '{"response": null, "error": {"message": "m", "code": 1}}',
            "",
            Envelope("", "m"),
        ),
        (
            "gemini",
            "",
            'noise\n{\n "error": {\n "type": "Auth", "message": "log in"}\n}\n',
            Envelope("", "log in"),
        ),
        ("gemini", "text", "text", Envelope("text")),
        (
            "opencode",
            events(
                {"type": "step_start", "part": {}},
                {"type": "text", "part": {"text": "a"}},
                STEP,
                {"type": "text", "part": {"text": "b"}},
                STEP,
            ),
            "",
            Envelope("a\nb", "", {"input": 2, "cache_read": 4, "cost": 0.5}),
        ),
        (
            "opencode",
            events({"type": "error", "error": {"name": "X", "data": {"message": "no model"}}}),
            "",
            Envelope("", "no model"),
        ),
        ("opencode", events({"type": "error", "error": {"name": "X"}}), "", Envelope("", "X")),
        ("opencode", "", "", Envelope("")),
        ("aider", "anything {", "err", Envelope("anything {")),
        ("llm", '{"result": "x"}', "", Envelope('{"result": "x"}')),
        ("fake", "echo\n", "", Envelope("echo\n")),
    ],
)
def test_envelopes_are_opened(preset, stdout, stderr, expected) -> None:
    assert PRESETS[preset].read(stdout, stderr) == expected


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "value",
    [
        {"type": "result", "usage": [1], "result": 5, "is_error": "x"},
        {"type": "item.completed", "item": "x"},
        {"type": "turn.completed", "usage": {"a": True, "b": 1e300, "c": None}},
        {"type": "text", "part": "x"},
        {"type": "step_finish"},
        {"type": "error"},
        {"response": 1, "stats": {"models": {"a": 1}}},
        {"error": True},
    ],
)
def test_odd_envelopes_are_read_without_complaint(preset, value) -> None:
    found = PRESETS[preset].read(events(value), events(value))

    assert isinstance(found.response, str)
    assert isinstance(found.error, str)
