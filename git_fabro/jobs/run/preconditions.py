"""What must hold before a run begins, so that nothing fails at step 7 that was wrong at step 0."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from git_fabro.doors import Doors
from git_fabro.errors import RequestError
from git_fabro.git.discover import Repository, in_progress
from git_fabro.handlers import presets
from git_fabro.workflow.graph import AGENT, FAN_IN, MANAGER, PROMPT, Graph
from git_fabro.workflow.settings import Settings

_NAME = r"(?P<{kind}>[A-Za-z_][A-Za-z0-9_]*)"
_VARIABLE = re.compile(
    r"\$\{env\."
    + _NAME.format(kind="shell")
    + r"\}|\{\{\s*env\."
    + _NAME.format(kind="env")
    + r"\s*\}\}|\{\{\s*secrets\."
    + _NAME.format(kind="secret")
    + r"\s*\}\}"
)


def refuse_unrunnable(
    graph: Graph, settings: Settings, environment: Mapping[str, str], *, dry_run: bool
) -> None:
    """Refuses a workflow that asks for what is not there.

    Raises:
        RequestError: a manager node, another sandbox, no agent, a variable that is not set.
    """
    manager = next((node.id for node in graph.nodes.values() if node.kind == MANAGER), None)
    if manager is not None:
        raise RequestError(f"manager loops are not supported yet: {manager}")
    if settings.sandbox_provider not in ("", "local"):
        raise RequestError(
            f"sandbox provider is not supported: {settings.sandbox_provider}",
            hint='run it on this machine: provider = "local"',
        )
    asks = [n.id for n in graph.nodes.values() if _needs_agent(n.kind, n.text("prompt"))]
    if asks and not dry_run and not presets.is_configured(settings):
        raise RequestError(
            f"no agent is configured, and a node needs one: {asks[0]}",
            hint="git fabro run --agent claude ... (or codex, gemini, opencode, aider, llm, fake)",
        )
    if asks and not dry_run:
        presets.program_of(settings)
    settings_environment(settings, environment)


def _needs_agent(kind: str, prompt: str) -> bool:
    return kind in (AGENT, PROMPT) or (kind == FAN_IN and bool(prompt))


def settings_environment(
    settings: Settings, caller: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The variables that the settings give to programs, and those of them that are secrets.

    ``${env.X}``, ``{{ env.X }}`` and ``{{ secrets.X }}`` are read from the caller's environment
    here, at each start, and never stored.

    Raises:
        RequestError: one that is named is not set.
    """
    found: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for variable, text in settings.environment.items():

        def value(match: re.Match[str], variable: str = variable) -> str:
            name = match["shell"] or match["env"] or match["secret"]
            if name not in caller:
                raise RequestError(
                    f"{variable} needs a variable that is not set: {name}",
                    hint=f"export {name}=...",
                )
            if match["secret"]:
                secrets[name] = caller[name]
            return caller[name]

        found[variable] = _VARIABLE.sub(value, text)
    return found, secrets


def check_repository(doors: Doors, *, takes_files: bool, in_place: bool) -> list[str]:
    """What a person should know of the repository before the run.

    Args:
        doors: The repository.
        takes_files: Whether the run takes the user's own files along.
        in_place: Whether it works among them.

    Raises:
        RequestError: the run cannot begin here.
    """
    repository = doors.repository
    if repository.git is None:
        raise RequestError("a run needs the git program, and there is none on PATH")
    if doors.refs.read("refs/heads/fabro") is not None:
        raise RequestError(
            "a branch is named fabro, so there can be none below fabro/",
            hint="git branch -m fabro OTHER",
        )
    if in_place and repository.work_tree is None:
        raise RequestError(
            "a bare repository has no work tree to run in: --in-place",
            hint="run without --in-place",
        )
    busy = in_progress(repository)
    if busy is not None and in_place:
        raise RequestError(
            f"a {busy} is in progress: {repository.work_tree}",
            hint=f"git {busy} --continue, or run without --in-place",
        )
    if takes_files or not is_dirty(repository):
        return []
    return [
        "uncommitted changes are not in the run; to take them along: git fabro run --dirty carry"
    ]


def check_excludes(doors: Doors, settings: Settings) -> list[str]:
    """Says which exclude patterns match tracked files, whose changes are recorded all the same."""
    work_tree = doors.repository.work_tree
    if not settings.exclude_globs or work_tree is None:
        return []
    found = [
        glob
        for glob in settings.exclude_globs
        if doors.git.run(["ls-files", "-z", "--", f":(top,glob){glob}"], cwd=work_tree)
    ]
    return [f"exclude pattern matches tracked files, which stay recorded: {one}" for one in found]


def refuse_own_directory(doors: Doors, home: Path) -> None:
    """Refuses to record a work tree that holds the run directories themselves.

    Raises:
        RequestError: it does: a home folder, or the whole disk, as a repository.
    """
    work_tree = doors.repository.work_tree
    if work_tree is not None and home.absolute().is_relative_to(work_tree.absolute()):
        raise RequestError(
            f"the run directory lies in the work tree that is to be recorded: {home}",
            hint="git config fabro.runDir FOLDER, outside the work tree",
        )


def is_dirty(repository: Repository) -> bool:
    """Whether the user's work tree has changes that no commit holds, untracked files included."""
    if repository.git is None or repository.work_tree is None:
        return False
    asked = ["status", "--porcelain", "-z", "--untracked-files=normal"]
    return bool(repository.git.run(asked, cwd=repository.work_tree).strip(b"\0"))
