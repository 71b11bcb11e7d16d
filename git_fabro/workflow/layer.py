"""What one source of settings says: a file, or the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOOK_TIMEOUT_S = 60.0
SETUP_TIMEOUT_S = 300.0

#: An argument of a command, or several that are dropped together.
Argument = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSetting:
    """A command that hears of an event; a blocking one may decide."""

    name: str
    event: str
    command: str
    matcher: str = ""
    blocking: bool = False
    timeout_s: float = HOOK_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A command that prepares the work tree before the first node."""

    script: str
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = SETUP_TIMEOUT_S


@dataclass(slots=True)
class Layer:
    """What one file, or the command line, says; None is nothing. Filled while a file is read.

    A limit for the setup commands is beside them: it may stand in another layer.
    """

    goal: str | None = None
    directory: str | None = None
    workflow_file: str | None = None
    exclude_globs: tuple[str, ...] | None = None
    checkpoint_required: bool | None = None
    auto_create_on: tuple[str, ...] | None = None
    max_checkpoints: int | None = None
    auto_prune: bool | None = None
    setup: tuple[SetupStep, ...] | None = None
    setup_timeout_s: float | None = None
    variables: dict[str, str] = field(default_factory=dict)
    author_name: str | None = None
    author_email: str | None = None
    artifacts: tuple[str, ...] | None = None
    agent_preset: str | None = None
    agent_command: tuple[Argument, ...] | None = None
    agent_timeout_s: float | None = None
    model: str | None = None
    provider: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    hooks: tuple[HookSetting, ...] | None = None
    sandbox_provider: str | None = None
