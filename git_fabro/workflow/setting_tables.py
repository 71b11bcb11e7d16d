"""TOML tables to settings: every spelling of every key, what it holds, and what is not known.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from git_fabro.workflow.attributes import parse_duration
from git_fabro.workflow.diagnostic import ERROR, WARNING, Severity, quoted, suggestion
from git_fabro.workflow.layer import HOOK_TIMEOUT_S, Argument, HookSetting, Layer, SetupStep
from git_fabro.workflow.toml_places import Path

TRIGGERS = ("on_tool_write", "on_tool_write_complete", "on_subplan_spawn", "on_error")
PRESETS = ("claude", "codex", "gemini", "opencode", "aider", "llm", "fake")
EVENTS = (
    "run_start",
    "run_complete",
    "run_failed",
    "stage_start",
    "stage_complete",
    "stage_failed",
    "stage_retrying",
    "edge_selected",
    "parallel_start",
    "parallel_complete",
    "checkpoint_saved",
)
_BLOCKING = frozenset({"run_start", "stage_start", "edge_selected"})
_TOOL_EVENTS = frozenset({"pre_tool_use", "post_tool_use", "post_tool_use_failure"})


class Problem(NamedTuple):
    """What is wrong with a key; the path is the key's."""

    severity: Severity
    rule: str
    path: Path
    message: str


def read_tables(data: Mapping[str, object]) -> tuple[Layer, list[Problem]]:
    """What a document of tables says, and all that is wrong with it. Any values are accepted."""
    reader = _Tables()
    reader.walk(data, ())
    return reader.layer, reader.problems


class _Tables:
    def __init__(self) -> None:
        self.layer = Layer()
        self.problems: list[Problem] = []
        self._origins: dict[tuple[str, str], Path] = {}

    def walk(self, table: Mapping[str, object], path: Path) -> None:
        for key, value in table.items():
            here = (*path, key)
            if here in _KNOWN:
                self._take(here, value)
            elif here in _VERSION:
                self._check_version(here, value)
            elif here in _UNUSED or path in _UNUSED_INSIDE:
                message = f"{quoted(dotted(here))} is not used by git-fabro"
                self.problems.append(Problem(WARNING, "setting_unused", here, message))
            elif here not in _TABLES:
                beside = [known[len(path)] for known in _ALL if known[: len(path)] == path]
                self._refuse_key(here, beside)
            elif isinstance(value, Mapping):
                self.walk(value, here)
            else:
                self.refuse(here, "a table")

    def _take(self, path: Path, value: object) -> None:
        name, read = _KNOWN[path]
        if name in {"variables", "environment"}:
            self._take_map(name, path, value)
            return
        if name and self._is_first(name, "", path):
            found = read(self, path, value)
            if found is not None:
                setattr(self.layer, name, found)

    def _take_map(self, name: str, path: Path, value: object) -> None:
        target: dict[str, str] = getattr(self.layer, name)
        for key, text in self.texts_by_name(path, value).items():
            if self._is_first(name, key, (*path, key)):
                target[key] = text

    def _is_first(self, name: str, key: str, path: Path) -> bool:
        """Whether nothing before set the same thing; an error where something did."""
        first = self._origins.setdefault((name, key), path)
        if first == path:
            return True
        message = f"{quoted(dotted(first))} and {quoted(dotted(path))} set the same thing"
        self.problems.append(Problem(ERROR, "setting_twice", path, message))
        return False

    def _check_version(self, path: Path, value: object) -> None:
        if value != 1 or isinstance(value, bool):
            message = f"{quoted(dotted(path))} must be one of 1"
            self.problems.append(Problem(ERROR, "attr_value", path, message))

    def _refuse_key(self, path: Path, known: list[str | int]) -> None:
        near = suggestion(str(path[-1]), map(str, known), lead=", ")
        message = f"unknown key {quoted(dotted(path))}{near}"
        self.problems.append(Problem(ERROR, "setting_unknown", path, message))

    def refuse(self, path: Path, wanted: str) -> None:
        message = f"{quoted(dotted(path))} must be {wanted}"
        self.problems.append(Problem(ERROR, "attr_type", path, message))

    # What a key may hold.

    def text(self, path: Path, value: object) -> str | None:
        if isinstance(value, str):
            return value
        self.refuse(path, "a text")
        return None

    def boolean(self, path: Path, value: object) -> bool | None:
        if isinstance(value, bool):
            return value
        self.refuse(path, "a boolean")
        return None

    def texts(self, path: Path, value: object) -> tuple[str, ...] | None:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        self.refuse(path, "a list of texts")
        return None

    def texts_by_name(self, path: Path, value: object) -> dict[str, str]:
        """A table of scalars, as text: ``{"rows": 5, "fast": true}`` gives ``5`` and ``true``."""
        if not isinstance(value, Mapping):
            self.refuse(path, "a table")
            return {}
        found: dict[str, str] = {}
        for key, one in value.items():
            if isinstance(one, bool):
                found[key] = "true" if one else "false"
            elif isinstance(one, (str, int, float)) and abs(_size(one)) < 1e300:
                found[key] = str(one)
            else:
                self.refuse((*path, key), "a text, a number or a boolean")
        return found

    def seconds(self, path: Path, value: object) -> float | None:
        """A duration as text, or a number of seconds."""
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            found = parse_duration(str(value) if abs(_size(value)) < 1e15 else "")
            if found is not None:
                return found
        self.refuse(path, "a duration")
        return None

    def milliseconds(self, path: Path, value: object) -> float | None:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1e15:
            found = parse_duration(f"{value}ms")
            if found is not None:
                return found
        self.refuse(path, "a number of milliseconds")
        return None

    def words(self, path: Path, value: object, known: tuple[str, ...]) -> tuple[str, ...] | None:
        found = self.texts(path, value)
        for word in found or ():
            if word not in known:
                self.refuse_word(path, known)
                return None
        return found

    def refuse_word(self, path: Path, known: tuple[str, ...]) -> None:
        words = ", ".join(map(quoted, known))
        message = f"{quoted(dotted(path))} must be one of {words}"
        self.problems.append(Problem(ERROR, "attr_value", path, message))

    def triggers(self, path: Path, value: object) -> tuple[str, ...] | None:
        return self.words(path, value, TRIGGERS)

    def preset(self, path: Path, value: object) -> str | None:
        found = self.text(path, value)
        if found is not None and found not in PRESETS:
            self.refuse_word(path, PRESETS)
            return None
        return found

    def kept(self, path: Path, value: object) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 100:
            return value
        self.refuse(path, "a number from 1 to 100")
        return None

    def arguments(self, path: Path, value: object) -> tuple[Argument, ...] | None:
        """A command as a list; an inner list is dropped as a whole if a placeholder is empty."""
        if isinstance(value, list) and value:
            found = [tuple(one) if isinstance(one, list) else one for one in value]
            flat = [part for one in found for part in (one if isinstance(one, tuple) else (one,))]
            if all(isinstance(part, str) for part in flat) and isinstance(found[0], str):
                return tuple(found)
        self.refuse(path, "a list of arguments")
        return None

    def scripts(self, path: Path, value: object) -> tuple[SetupStep, ...] | None:
        found = self.texts(path, value)
        return None if found is None else tuple(SetupStep(script) for script in found)

    def steps(self, path: Path, value: object) -> tuple[SetupStep, ...] | None:
        found = [self._step((*path, index), one) for index, one in self._tables(path, value)]
        return tuple(step for step in found if step is not None)

    def _step(self, path: Path, table: Mapping[str, object]) -> SetupStep | None:
        self._check_keys(path, table, ("script", "command", "env"))
        if "script" in table and "command" in table:
            first, second = quoted(dotted((*path, "script"))), quoted(dotted((*path, "command")))
            message = f"{first} and {second} set the same thing"
            self.problems.append(Problem(ERROR, "setting_twice", (*path, "command"), message))
        key = "script" if "script" in table else "command"
        value = table.get(key)
        if isinstance(value, list) and value and key == "command":
            listed = self.texts((*path, key), value)
            value = shlex.join(listed or ())
        script = self.text((*path, key), value)
        environment = self.texts_by_name((*path, "env"), table.get("env", {}))
        return None if script is None else SetupStep(script, environment)

    def hooks(self, path: Path, value: object) -> tuple[HookSetting, ...] | None:
        found = [self._hook((*path, index), one) for index, one in self._tables(path, value)]
        return tuple(hook for hook in found if hook is not None)

    def _hook(self, path: Path, table: Mapping[str, object]) -> HookSetting | None:
        event = self.text((*path, "event"), table.get("event"))
        blocking = self.boolean((*path, "blocking"), table.get("blocking", event in _BLOCKING))
        if event is None or blocking is None:
            return None
        kind = table.get("type", "command")
        if kind != "command" or event in _TOOL_EVENTS:
            what = f"hook type {kind}" if kind != "command" else f"hook event {event}"
            rule = "attr_value" if blocking else "setting_unused"
            message = f"{quoted(what)} is not used by git-fabro"
            self.problems.append(Problem(ERROR if blocking else WARNING, rule, path, message))
            return None
        if event not in EVENTS:
            self.refuse_word((*path, "event"), EVENTS)
            return None
        self._check_keys(path, table, _HOOK_KEYS)
        return self._command_hook(path, table, event=event, blocking=blocking)

    def _command_hook(
        self, path: Path, table: Mapping[str, object], *, event: str, blocking: bool
    ) -> HookSetting | None:
        command = self._either(path, table, "command", "script", self.text)
        name = self._either(path, table, "name", "id", self.text) if _names(table) else event
        timeout = HOOK_TIMEOUT_S
        if "timeout" in table or "timeout_ms" in table:
            key = "timeout" if "timeout" in table else "timeout_ms"
            self._either(path, table, "timeout", "timeout_ms", lambda _path, _value: None)
            read = self.seconds if key == "timeout" else self.milliseconds
            timeout = read((*path, key), table[key]) or timeout
        matcher = self.text((*path, "matcher"), table.get("matcher", ""))
        if matcher and not _compiles(matcher):
            self.refuse((*path, "matcher"), "a regular expression")
        if command is None or name is None or matcher is None:
            return None
        return HookSetting(
            name=name,
            event=event,
            command=command,
            matcher=matcher,
            blocking=blocking,
            timeout_s=timeout,
        )

    def _either(
        self,
        path: Path,
        table: Mapping[str, object],
        older: str,
        newer: str,
        read: Callable[[Path, object], str | None],
    ) -> str | None:
        """The value of the one of two keys that is there; both are an error."""
        if older in table and newer in table:
            names = f"{quoted(dotted((*path, older)))} and {quoted(dotted((*path, newer)))}"
            message = f"{names} set the same thing"
            self.problems.append(Problem(ERROR, "setting_twice", (*path, newer), message))
        key = newer if newer in table else older
        return read((*path, key), table.get(key))

    def _tables(self, path: Path, value: object) -> list[tuple[int, Mapping[str, object]]]:
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            self.refuse(path, "a list of tables")
            return []
        return list(enumerate(value))

    def _check_keys(self, path: Path, table: Mapping[str, object], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                self._refuse_key((*path, key), list(known))


_HOOK_KEYS = (
    *("name", "id", "event", "type", "command", "script"),
    *("matcher", "blocking", "timeout", "timeout_ms"),
)


def dotted(path: Path) -> str:
    """A path as it is written, without the numbers of tables: ``run.hooks.event``."""
    return ".".join(part for part in path if isinstance(part, str))


def _names(table: Mapping[str, object]) -> bool:
    return "name" in table or "id" in table


def _size(value: str | float) -> float:
    try:
        return 0.0 if isinstance(value, str) else float(value)
    except OverflowError:
        return float("inf")


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_Read = Callable[[_Tables, Path, object], object]


def _spellings(name: str, read: _Read, *paths: str) -> dict[Path, tuple[str, _Read]]:
    return {tuple(path.split(".")): (name, read) for path in paths}


def _run_too(name: str, read: _Read, path: str) -> dict[Path, tuple[str, _Read]]:
    return _spellings(name, read, path, f"run.{path}")


_KNOWN: Mapping[Path, tuple[str, _Read]] = {
    **_spellings("workflow_file", _Tables.text, "graph", "workflow.graph"),
    **_run_too("goal", _Tables.text, "goal"),
    **_spellings("directory", _Tables.text, "directory", "run.working_dir"),
    **_run_too("exclude_globs", _Tables.texts, "checkpoint.exclude_globs"),
    **_run_too("checkpoint_required", _Tables.boolean, "checkpoint.required"),
    **_run_too("auto_create_on", _Tables.triggers, "checkpoint.auto_create_on"),
    **_spellings("auto_create_on", _Tables.triggers, "core.checkpoints.auto_create_on"),
    **_run_too("max_checkpoints", _Tables.kept, "checkpoint.retention.max_checkpoints"),
    **_run_too("auto_prune", _Tables.boolean, "checkpoint.retention.auto_prune"),
    **_spellings("setup", _Tables.scripts, "setup.commands"),
    **_spellings("setup", _Tables.steps, "run.prepare.steps"),
    **_spellings("setup_timeout_s", _Tables.seconds, "setup.timeout", "run.prepare.timeout"),
    **_spellings(
        "setup_timeout_s", _Tables.milliseconds, "setup.timeout_ms", "run.prepare.timeout_ms"
    ),
    **_spellings("variables", _Tables.texts_by_name, "vars", "inputs", "run.inputs"),
    **_run_too("author_name", _Tables.text, "git.author.name"),
    **_run_too("author_email", _Tables.text, "git.author.email"),
    **_run_too("artifacts", _Tables.texts, "artifacts.include"),
    **_spellings("artifacts", _Tables.texts, "assets.include"),
    **_run_too("agent_preset", _Tables.preset, "agent.preset"),
    **_run_too("agent_command", _Tables.arguments, "agent.command"),
    **_run_too("agent_timeout_s", _Tables.seconds, "agent.timeout"),
    **_spellings("model", _Tables.text, "llm.model", "run.model.name"),
    **_spellings("provider", _Tables.text, "llm.provider", "run.model.provider"),
    **_run_too("environment", _Tables.texts_by_name, "sandbox.env"),
    **_run_too("sandbox_provider", _Tables.text, "sandbox.provider"),
    **_run_too("hooks", _Tables.hooks, "hooks"),
    **_spellings("", _Tables.text, "workflow.engine"),
}
_VERSION: frozenset[Path] = frozenset({("version",), ("_version",)})
#: Sections of Fabro that mean nothing here, and tables whose other keys do not.
_UNUSED: frozenset[Path] = frozenset(
    tuple(path.split("."))
    for path in (
        *("pull_request", "github", "mcp_servers", "server", "cli", "features", "project"),
        *("agent.mcps", "run.agent.mcps", "llm.fallbacks", "run.model.fallbacks"),
        *("run.pull_request", "run.github", "run.mcp_servers"),
    )
)
_UNUSED_INSIDE: frozenset[Path] = frozenset({("sandbox",), ("run", "sandbox")})
_ALL = (*_KNOWN, *_VERSION, *_UNUSED)
_TABLES: frozenset[Path] = frozenset(
    path[:length] for path in _ALL for length in range(1, len(path))
)
