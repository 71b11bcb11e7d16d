"""What a run is told besides its graph: layers of settings, merged into values.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from git_fabro.errors import RecordError
from git_fabro.workflow.diagnostic import ERROR, Diagnostic, Findings
from git_fabro.workflow.graph import Place
from git_fabro.workflow.layer import Argument
from git_fabro.workflow.layer import HookSetting as HookSetting
from git_fabro.workflow.layer import Layer as Layer
from git_fabro.workflow.layer import SetupStep as SetupStep
from git_fabro.workflow.setting_tables import TRIGGERS, read_tables
from git_fabro.workflow.state import Json
from git_fabro.workflow.toml_places import key_offsets, nearest_offset

_T = TypeVar("_T")

_AGENT_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All layers, merged; what no layer says has its default.

    ``agent_command`` is empty where none is set; an inner tuple of it is dropped as a whole when a
    placeholder in it is empty. ``environment`` still holds ``${env.X}`` and ``{{ secrets.X }}``.
    """

    goal: str | None = None
    directory: str | None = None
    workflow_file: str = "workflow.fabro"
    exclude_globs: tuple[str, ...] = ()
    checkpoint_required: bool = False
    auto_create_on: tuple[str, ...] = TRIGGERS
    max_checkpoints: int = 50
    auto_prune: bool = True
    setup: tuple[SetupStep, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    author_name: str = ""
    author_email: str = ""
    artifacts: tuple[str, ...] = ()
    agent_preset: str = ""
    agent_command: tuple[Argument, ...] = ()
    agent_timeout_s: float = _AGENT_TIMEOUT_S
    model: str = ""
    provider: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    hooks: tuple[HookSetting, ...] = ()
    sandbox_provider: str = "local"


def parse(text: str, file: str) -> tuple[Layer, tuple[Diagnostic, ...]]:
    """What a settings file says, and all that is wrong with it. Never raises."""
    findings = Findings(file, text)
    return _read(findings, _load_toml(findings)), findings.sorted()


def parse_foreign(text: str, file: str) -> tuple[Layer, tuple[Diagnostic, ...]]:
    """What a settings file of Fabro says of checkpoints and of the author; nothing else is read."""
    findings = Findings(file, text)
    data = _load_toml(findings)
    git = data.get("git")
    wanted: dict[str, object] = {}
    if "checkpoint" in data:
        wanted["checkpoint"] = data["checkpoint"]
    if isinstance(git, Mapping) and "author" in git:
        wanted["git"] = {"author": git["author"]}
    return _read(findings, wanted), findings.sorted()


def command_line(
    *,
    goal: str | None = None,
    inputs: Mapping[str, str] | None = None,
    preset: str | None = None,
    command: Sequence[Argument] | None = None,
    model: str | None = None,
    provider: str | None = None,
) -> Layer:
    """The layer of what was typed, which wins over every file."""
    return Layer(
        goal=goal,
        variables=dict(inputs or {}),
        agent_preset=preset,
        agent_command=None if command is None else tuple(command),
        model=model,
        provider=provider,
    )


def merge(layers: Sequence[Layer]) -> Settings:
    """The settings that layers make, the strongest first."""

    def first(of: Callable[[Layer], _T | None], default: _T) -> _T:
        return next((value for layer in layers if (value := of(layer)) is not None), default)

    # A preset and a command are one thing: a stronger preset is not undone by a weaker command.
    agent = next((one for one in layers if one.agent_preset or one.agent_command), Layer())
    steps: tuple[SetupStep, ...] = first(lambda layer: layer.setup, ())
    limit = next((one.setup_timeout_s for one in layers if one.setup_timeout_s is not None), None)
    globs = [glob for layer in layers for glob in layer.exclude_globs or ()]
    return Settings(
        goal=first(lambda layer: layer.goal, None),
        directory=first(lambda layer: layer.directory, None),
        workflow_file=first(lambda layer: layer.workflow_file, "workflow.fabro"),
        exclude_globs=tuple(dict.fromkeys(globs)),
        checkpoint_required=first(lambda layer: layer.checkpoint_required, False),
        auto_create_on=first(lambda layer: layer.auto_create_on, TRIGGERS),
        max_checkpoints=first(lambda layer: layer.max_checkpoints, 50),
        auto_prune=first(lambda layer: layer.auto_prune, True),
        setup=tuple(step if limit is None else replace(step, timeout_s=limit) for step in steps),
        variables=_united([layer.variables for layer in layers]),
        author_name=first(lambda layer: layer.author_name, ""),
        author_email=first(lambda layer: layer.author_email, ""),
        artifacts=first(lambda layer: layer.artifacts, ()),
        agent_preset=agent.agent_preset or "",
        agent_command=agent.agent_command or (),
        agent_timeout_s=first(lambda layer: layer.agent_timeout_s, _AGENT_TIMEOUT_S),
        model=first(lambda layer: layer.model, ""),
        provider=first(lambda layer: layer.provider, ""),
        environment=_united([layer.environment for layer in layers]),
        hooks=tuple(hook for layer in reversed(layers) for hook in layer.hooks or ()),
        sandbox_provider=first(lambda layer: layer.sandbox_provider, "local"),
    )


def _united(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for one in reversed(maps) for key, value in one.items()}


def dump(settings: Settings) -> dict[str, Json]:
    """Settings as the tables that a file would have, for a run's record; empty values left out."""
    agent: dict[str, Json] = {
        "preset": settings.agent_preset or None,
        "command": [_plain(part) for part in settings.agent_command] or None,
        "timeout": settings.agent_timeout_s,
    }
    tables: dict[str, Json] = {
        "goal": settings.goal,
        "directory": settings.directory,
        "graph": settings.workflow_file,
        "checkpoint": {
            "exclude_globs": list(settings.exclude_globs),
            "required": settings.checkpoint_required,
            "auto_create_on": list(settings.auto_create_on),
            "retention": {
                "max_checkpoints": settings.max_checkpoints,
                "auto_prune": settings.auto_prune,
            },
        },
        "vars": dict(settings.variables),
        "git": {"author": {"name": settings.author_name, "email": settings.author_email}},
        "artifacts": {"include": list(settings.artifacts)},
        "agent": {key: value for key, value in agent.items() if value is not None},
        "llm": {"model": settings.model, "provider": settings.provider},
        "sandbox": {"env": dict(settings.environment), "provider": settings.sandbox_provider},
        "hooks": [_dump_hook(hook) for hook in settings.hooks],
        "run": {"prepare": _dump_setup(settings.setup)},
    }
    return {key: value for key, value in tables.items() if value is not None}


def load(data: Mapping[str, Json]) -> Settings:
    """The settings that were dumped.

    Raises:
        RecordError: the record holds something else.
    """
    if not isinstance(data, Mapping):
        raise RecordError("settings of a run are no table")
    layer, problems = read_tables(data)
    for problem in problems:
        if problem.severity == ERROR:
            raise RecordError(f"settings of a run do not parse: {problem.message}")
    return merge([layer])


def _plain(part: Argument) -> Json:
    return part if isinstance(part, str) else list(part)


def _dump_setup(setup: Sequence[SetupStep]) -> Json:
    steps: list[Json] = [{"script": step.script, "env": dict(step.environment)} for step in setup]
    return {"steps": steps, "timeout": setup[0].timeout_s} if steps else {}


def _dump_hook(hook: HookSetting) -> Json:
    return {
        "name": hook.name,
        "event": hook.event,
        "command": hook.command,
        "matcher": hook.matcher,
        "blocking": hook.blocking,
        "timeout": hook.timeout_s,
    }


def _load_toml(findings: Findings) -> dict[str, object]:
    try:
        return tomllib.loads(findings.text)
    except RecursionError:
        findings.error("syntax", 0, "values are nested too deeply")
    except (ValueError, OverflowError) as exc:
        # The message carries the place; a number or date that Python cannot hold has none.
        message, _, where = str(exc).partition(" (at ")
        place = re.match(r"line ([0-9]+), column ([0-9]+)\)", where)
        offset = len(findings.text) if where.startswith("end of document") else 0
        if place is not None:
            offset = findings.offset(Place(int(place[1]), int(place[2])))
        findings.error("syntax", offset, message[:1].lower() + message[1:])
    return {}


def _read(findings: Findings, data: Mapping[str, object]) -> Layer:
    layer, problems = read_tables(data)
    if problems:
        offsets = key_offsets(findings.text)
        for problem in problems:
            offset = nearest_offset(offsets, problem.path)
            findings.add(problem.severity, problem.rule, offset, problem.message)
    return layer
