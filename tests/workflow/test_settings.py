"""Settings: every spelling, what is refused and where, layers, and the way through a record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.errors import RecordError
from git_fabro.workflow.settings import (
    HookSetting,
    Layer,
    Settings,
    SetupStep,
    command_line,
    dump,
    load,
    merge,
    parse,
    parse_foreign,
)


def read(text: str) -> Settings:
    layer, diagnostics = parse(text, "run.toml")
    assert diagnostics == ()
    return merge([layer])


def printed(text: str) -> str:
    _, diagnostics = parse(text, "run.toml")
    return "\n".join(one.render() for one in diagnostics)


STEP = SetupStep("npm ci", {}, 300.0)
HOOK = HookSetting(name="guard", event="stage_start", command="./guard", blocking=True)


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ('graph = "a.dot"', '[workflow]\ngraph = "a.dot"', {"workflow_file": "a.dot"}),
        ('goal = "g"', '[run]\ngoal = "g"', {"goal": "g"}),
        ('directory = "d"', '[run]\nworking_dir = "d"', {"directory": "d"}),
        (
            '[checkpoint]\nexclude_globs = ["**/*.bak"]',
            '[run.checkpoint]\nexclude_globs = ["**/*.bak"]',
            {"exclude_globs": ("**/*.bak",)},
        ),
        (
            "[checkpoint]\nrequired = true\nretention = {max_checkpoints = 5, auto_prune = false}",
            "[run.checkpoint]\nrequired=true\nretention={max_checkpoints=5, auto_prune=false}",
            {"checkpoint_required": True, "max_checkpoints": 5, "auto_prune": False},
        ),
        (
            '[checkpoint]\nauto_create_on = ["on_error"]',
            '[core.checkpoints]\nauto_create_on = ["on_error"]',
            {"auto_create_on": ("on_error",)},
        ),
        (
            '[setup]\ncommands = ["npm ci"]\ntimeout_ms = 1500',
            '[run.prepare]\ntimeout = 1.5\n[[run.prepare.steps]]\nscript = "npm ci"',
            {"setup": (replace(STEP, timeout_s=1.5),)},
        ),
        (
            "[setup]\ncommands = [\"npm run 'a b'\"]",
            '[[run.prepare.steps]]\ncommand = ["npm", "run", "a b"]',
            {"setup": (replace(STEP, script="npm run 'a b'"),)},
        ),
        (
            '[vars]\nteam = "night"\n[inputs]\nrows = 50',
            '[run.inputs]\nteam = "night"\nrows = "50"',
            {"variables": {"team": "night", "rows": "50"}},
        ),
        (
            '[git.author]\nname = "A"\nemail = "a@example.com"',
            '[run.git.author]\nname = "A"\nemail = "a@example.com"',
            {"author_name": "A", "author_email": "a@example.com"},
        ),
        (
            '[assets]\ninclude = ["r/*"]',
            '[run.artifacts]\ninclude = ["r/*"]',
            {"artifacts": ("r/*",)},
        ),
        (
            '[agent]\npreset = "llm"\ncommand = ["x", ["-m", "{model}"]]\ntimeout = "2h"',
            '[run.agent]\npreset = "llm"\ncommand = ["x", ["-m", "{model}"]]\ntimeout = 7200',
            {
                "agent_preset": "llm",
                "agent_command": ("x", ("-m", "{model}")),
                "agent_timeout_s": 7200.0,
            },
        ),
        (
            '[llm]\nmodel = "m"\nprovider = "p"',
            '[run.model]\nname = "m"\nprovider = "p"',
            {"model": "m", "provider": "p"},
        ),
        (
            '[sandbox]\nprovider = "docker"\n[sandbox.env]\nT = "{{ secrets.T }}"',
            '[run.sandbox]\nprovider = "docker"\n[run.sandbox.env]\nT = "{{ secrets.T }}"',
            {"sandbox_provider": "docker", "environment": {"T": "{{ secrets.T }}"}},
        ),
        (
            '[[hooks]]\nname="guard"\nevent="stage_start"\ncommand="./guard"\ntimeout_ms=60000',
            '[[run.hooks]]\nid="guard"\nevent="stage_start"\nscript="./guard"\ntimeout="1m"',
            {"hooks": (HOOK,)},
        ),
        ("version = 1", "_version = 1", {}),
        ('[workflow]\nengine = "x"', "", {}),
    ],
)
def test_both_spellings_say_the_same(older: str, newer: str, expected: dict[str, Any]) -> None:
    assert read(older) == read(newer) == replace(Settings(), **expected)


@pytest.mark.parametrize(
    ("event", "blocking"), [("run_start", True), ("edge_selected", True), ("run_failed", False)]
)
def test_hooks_of_some_events_block_unless_told_otherwise(event: str, blocking: bool) -> None:
    text = f'[[hooks]]\nevent = "{event}"\ncommand = "true"\n'

    assert [hook.blocking for hook in read(text).hooks] == [blocking]
    assert [hook.blocking for hook in read(text + "blocking = false").hooks] == [False]
    assert [hook.name for hook in read(text).hooks] == [event]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            'gaol = "x"',
            'run.toml:1:1: unknown key "gaol", did you mean "goal"? [setting_unknown]\n'
            'gaol = "x"\n^',
            id="unknown key",
        ),
        pytest.param(
            '[checkpoint]\n  # globs\n  exclude_glob = ["a"]',
            'run.toml:3:3: unknown key "checkpoint.exclude_glob", did you mean "exclude_globs"?'
            ' [setting_unknown]\n  exclude_glob = ["a"]\n  ^',
            id="unknown key of a table",
        ),
        pytest.param(
            "[chekpoint]\nrequired = true",
            'run.toml:1:2: unknown key "chekpoint", did you mean "checkpoint"? [setting_unknown]\n'
            "[chekpoint]\n ^",
            id="unknown table",
        ),
        pytest.param(
            'a.b.c = """\n[goal]\n"""\nquite_other = 1',
            'run.toml:1:1: unknown key "a" [setting_unknown]\na.b.c = """\n^\n'
            'run.toml:4:1: unknown key "quite_other" [setting_unknown]\nquite_other = 1\n^',
            id="no key is near",
        ),
        pytest.param(
            'goal = "a"\n[run]\ngoal = "b"',
            'run.toml:3:1: "goal" and "run.goal" set the same thing [setting_twice]\ngoal = "b"\n^',
            id="set twice",
        ),
        pytest.param(
            '[vars]\na = "1"\nb = "2"\n[inputs]\n"b" = "3"',
            'run.toml:5:1: "vars.b" and "inputs.b" set the same thing [setting_twice]\n'
            '"b" = "3"\n^',
            id="a variable set twice",
        ),
        pytest.param(
            '[setup]\ncommands = []\n[[run.prepare.steps]]\nscript = "a"',
            'run.toml:3:15: "setup.commands" and "run.prepare.steps" set the same thing'
            " [setting_twice]\n[[run.prepare.steps]]\n              ^",
            id="preparation set twice",
        ),
        pytest.param(
            "[github]\ntoken = 1\n[sandbox.daytona]\nx = 1\n[run.agent.mcps.y]\nz = 1",
            'run.toml:1:2: warning: "github" is not used by git-fabro [setting_unused]\n'
            "[github]\n ^\n"
            'run.toml:3:10: warning: "sandbox.daytona" is not used by git-fabro [setting_unused]\n'
            "[sandbox.daytona]\n         ^\n"
            'run.toml:5:12: warning: "run.agent.mcps" is not used by git-fabro [setting_unused]\n'
            "[run.agent.mcps.y]\n           ^",
            id="sections of Fabro",
        ),
        pytest.param(
            "goal = 5\ncheckpoint = 1\n[agent]\ncommand = []\ntimeout = 'soon'\npreset = 'gpt'",
            'run.toml:1:1: "goal" must be a text [attr_type]\ngoal = 5\n^\n'
            'run.toml:2:1: "checkpoint" must be a table [attr_type]\ncheckpoint = 1\n^\n'
            'run.toml:4:1: "agent.command" must be a list of arguments [attr_type]\n'
            "command = []\n^\n"
            "run.toml:5:1: \"agent.timeout\" must be a duration [attr_type]\ntimeout = 'soon'\n^\n"
            'run.toml:6:1: "agent.preset" must be one of "claude", "codex", "gemini", "opencode", '
            '"aider", "llm", "fake" [attr_value]\npreset = \'gpt\'\n^',
            id="types",
        ),
        pytest.param(
            '[[hooks]]\nevent = "run_start"\ncommand = "a"\n[[hooks]]\nevent = "run_begin"\n'
            'command = "b"\n[[hooks]]\nevent = "stage_start"\ntype = "http"\n'
            '[[hooks]]\nevent = "pre_tool_use"\n[[hooks]]\nevent = "run_start"\nmatcher = "("\n'
            'command = "c"\ncomand = "d"',
            'run.toml:5:1: "hooks.event" must be one of "run_start", "run_complete", "run_failed", '
            '"stage_start", "stage_complete", "stage_failed", "stage_retrying", "edge_selected", '
            '"parallel_start", "parallel_complete", "checkpoint_saved" [attr_value]\n'
            'event = "run_begin"\n^\n'
            'run.toml:7:3: "hook type http" is not used by git-fabro [attr_value]\n[[hooks]]\n  ^\n'
            'run.toml:10:3: warning: "hook event pre_tool_use" is not used by git-fabro'
            " [setting_unused]\n[[hooks]]\n  ^\n"
            'run.toml:14:1: "hooks.matcher" must be a regular expression [attr_type]\n'
            'matcher = "("\n^\n'
            'run.toml:16:1: unknown key "hooks.comand", did you mean "command"? [setting_unknown]\n'
            'comand = "d"\n^',
            id="hooks",
        ),
        pytest.param(
            "version = 2",
            'run.toml:1:1: "version" must be one of 1 [attr_value]\nversion = 2\n^',
            id="version",
        ),
        pytest.param(
            'goal = "a"\nx = = 1',
            "run.toml:2:5: invalid value [syntax]\nx = = 1\n    ^",
            id="no TOML",
        ),
        pytest.param(
            "goal = [",
            "run.toml:1:9: invalid value [syntax]\ngoal = [\n        ^",
            id="the file ends too soon",
        ),
    ],
)
def test_what_is_wrong_is_printed_with_its_place(text: str, expected: str) -> None:
    assert printed(text) == expected


def test_a_foreign_file_is_read_for_checkpoints_and_the_author_only() -> None:
    text = """
        [server]
        port = 1
        [checkpoint]
        required = true
        [git]
        app = "x"
        [git.author]
        name = "A"
        [llm]
        model = "m"
    """

    layer, diagnostics = parse_foreign(text, "server.toml")

    assert diagnostics == ()
    assert merge([layer]) == Settings(checkpoint_required=True, author_name="A")


def test_layers_are_merged_the_strongest_first() -> None:
    strong = command_line(goal="typed", inputs={"a": "1"}, preset="codex", model="m")
    middle = parse(
        """
        goal = "file"
        [vars]
        a = "2"
        b = "2"
        [checkpoint]
        exclude_globs = ["x", "y"]
        [agent]
        command = ["never"]
        timeout = "1m"
        [git.author]
        name = "Middle"
        [sandbox.env]
        E = "middle"
        [[hooks]]
        event = "run_start"
        command = "middle"
        [llm]
        provider = "p"
        """,
        "middle",
    )[0]
    weak = parse(
        """
        directory = "d"
        [vars]
        b = "3"
        c = "3"
        [checkpoint]
        exclude_globs = ["y", "z"]
        [setup]
        commands = ["weak"]
        [git.author]
        name = "Weak"
        email = "weak@example.com"
        [sandbox.env]
        E = "weak"
        F = "weak"
        [[hooks]]
        event = "run_start"
        command = "weak"
        """,
        "weak",
    )[0]

    found = merge([strong, middle, weak])

    assert [hook.command for hook in found.hooks] == ["weak", "middle"]
    assert replace(found, hooks=()) == Settings(
        goal="typed",
        directory="d",
        exclude_globs=("x", "y", "z"),
        variables={"a": "1", "b": "2", "c": "3"},
        setup=(SetupStep("weak"),),
        author_name="Middle",
        author_email="weak@example.com",
        agent_preset="codex",
        agent_timeout_s=60.0,
        model="m",
        provider="p",
        environment={"E": "middle", "F": "weak"},
    )


def test_nothing_is_said_by_default() -> None:
    assert merge([]) == merge([Layer(), command_line()]) == Settings()


FULL = Settings(
    goal="g",
    directory="d",
    workflow_file="w.dot",
    exclude_globs=("a", "b"),
    checkpoint_required=True,
    auto_create_on=(),
    max_checkpoints=1,
    auto_prune=False,
    setup=(SetupStep("a", {"E": "1"}, 1.5), SetupStep("b", {}, 1.5)),
    variables={"v": "1", "w": "true"},
    author_name="A",
    author_email="a@example.com",
    artifacts=("r/*.txt",),
    agent_preset="fake",
    agent_command=("x", ("-m", "{model}")),
    agent_timeout_s=0.25,
    model="m",
    provider="p",
    environment={"T": "{{ secrets.T }}", "U": "${env.U}"},
    hooks=(HOOK, HookSetting(name="n", event="run_failed", command="c", matcher="^a$")),
    sandbox_provider="docker",
)


@pytest.mark.parametrize("settings", [Settings(), FULL], ids=["default", "full"])
def test_settings_come_back_from_a_record(settings: Settings) -> None:
    assert load(json.loads(json.dumps(dump(settings)))) == settings


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """The record of full settings, with one value somewhere in it replaced, or a key added."""
    record: Any = dump(FULL)
    inner = record
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = draw(st.sampled_from(keys))
        if isinstance(inner[key], (dict, list)) and inner[key] and draw(st.booleans()):
            inner = inner[key]
            continue
        inner[key] = draw(JSON)
        if isinstance(inner, dict) and draw(st.booleans()):
            inner[draw(st.text())] = draw(JSON)
        return record


@given(st.one_of(JSON, damaged()))
def test_any_record_gives_settings_or_is_refused(record: Any) -> None:
    try:
        found = load(record)
    except RecordError:
        return

    assert load(dump(found)) == found


LINES = st.lists(
    st.sampled_from(
        [
            *("[run]", "[checkpoint]", "[[hooks]]", "[a.b]", "[vars]", "x = 1", 'goal = "a"', "{"),
            *("required = true", "[", "]", "'", '"""', "a.b = [", "k = {a = 1}", "#", "= 1"),
            *('event = "run_start"', "command = ['a']", "timeout = 1e400", "d = 2024-01-01", "\\"),
        ]
    )
)


@given(st.one_of(st.text(), LINES.map("\n".join), LINES.map("".join)))
def test_any_text_gives_a_layer_and_findings(text: str) -> None:
    layer, diagnostics = parse(text, "f")

    assert isinstance(merge([layer]), Settings)
    for one in (*diagnostics, *parse_foreign(text, "f")[1]):
        assert one.render()


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "9" * 100_000, "a" + ".a" * 2_000 + "=1"]
)
def test_what_python_cannot_hold_is_a_finding(text: str) -> None:
    assert printed(text)[:14] == "run.toml:1:1: "
