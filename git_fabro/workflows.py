"""From what a person names to an admitted workflow: files, settings, included texts, digest."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import RunId
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.git.discover import Repository
from git_fabro.workflow import admission, settings
from git_fabro.workflow.admission import Source
from git_fabro.workflow.diagnostic import Diagnostic
from git_fabro.workflow.graph import Graph
from git_fabro.workflow.settings import Layer, Settings
from git_fabro.workflow.state import Json

_GRAPHS = (".fabro", ".dot")
_RUN_FILES = ("run.toml", "workflow.toml")
_PROJECT_FILES = (".fabro/project.toml", "fabro.toml")
_LARGEST_BYTES = 16 * 1024 * 1024


class WorkflowError(RequestError):
    """A workflow that cannot run; carries every diagnostic, sorted by file and place."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic], *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A workflow as read: its source, what it includes, its settings, and what is wrong with it.

    ``graph`` is None exactly if one of the diagnostics is an error.
    """

    path: Path
    source: bytes
    includes: Mapping[str, str]
    settings: Settings
    graph: Graph | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def slug(self) -> str:
        name = self.path.stem
        return self.path.parent.name if name == "workflow" else name

    def digest(self) -> str:
        """What is admitted: the sha256 of agent, graph, includes and settings."""
        return digest_of(self.source, self.includes, self.settings)

    def require(self) -> Graph:
        """The graph.

        Raises:
            WorkflowError: there are errors.
        """
        if self.graph is None:
            shown = os.path.relpath(self.path)
            raise WorkflowError(
                f"workflow has errors: {shown}",
                self.diagnostics,
                hint=f"git fabro validate {shlex.quote(shown)}",
            )
        return self.graph


def digest_of(source: bytes, includes: Mapping[str, str], chosen: Settings) -> str:
    """The digest of a workflow and all that decides what it does."""
    value: dict[str, Json] = {
        "agent": [_json(part) for part in chosen.agent_command],
        "graph": source.decode("utf-8", "surrogateescape"),
        "includes": dict(includes),
        "settings": settings.dump(chosen),
    }
    return hashlib.sha256(codec.canonical(value)).hexdigest()


def _json(part: str | tuple[str, ...]) -> Json:
    return part if isinstance(part, str) else list(part)


def find(name: str, *, folder: Path, top: Path, environment: Mapping[str, str]) -> Path:
    """The file that a person means: a path, or the name of a workflow.

    Raises:
        NotFoundError: neither a file nor a name.
    """
    path = folder / name
    if path.suffix in (*_GRAPHS, ".toml") or os.sep in name:
        if not path.is_file():
            raise NotFoundError(f"no such workflow file: {name}", hint="git fabro workflow list")
        return path
    for place in places(top, environment):
        for file in (*_RUN_FILES, "workflow.fabro", "workflow.dot", f"{name}.fabro"):
            if (place / name / file).is_file():
                return place / name / file
    if path.is_file():
        return path
    raise NotFoundError(f"no such workflow: {name}", hint="git fabro workflow list")


def places(top: Path, environment: Mapping[str, str]) -> list[Path]:
    """The folders in which workflows are looked for by name, the nearest first."""
    return [
        top / "fabro/workflows",
        top / ".fabro/workflows",
        user_folder(environment) / "workflows",
    ]


def user_folder(environment: Mapping[str, str]) -> Path:
    """The user's own folder of settings."""
    config = environment.get("XDG_CONFIG_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".config"
    )
    return Path(config) / "git-fabro"


def load(
    path: Path,
    *,
    top: Path,
    environment: Mapping[str, str],
    kinds: frozenset[str],
    command_line: Layer | None = None,
    default_agent: str | None = None,
) -> Loaded:
    """Reads a workflow with its settings and checks it; errors are in the diagnostics.

    Args:
        path: A graph, or a run file that names one.
        top: Where the project's settings are.
        environment: For the user's folder.
        kinds: Node kinds that were registered besides the built-in ones.
        command_line: Values that win over every file.
        default_agent: The agent's preset where nothing else names an agent.

    Raises:
        RequestError: a file cannot be read.
    """
    layers, diagnostics = _layers(path, top, environment, command_line)
    layers.append(settings.command_line(preset=default_agent))
    chosen = settings.merge(layers)
    graph_path = path if path.suffix in _GRAPHS else path.parent / chosen.workflow_file
    source = read_file(graph_path)
    text = source.decode("utf-8", "surrogateescape")
    includes = _read_includes(text, graph_path, chosen, environment)
    admitted = admission.admit(
        Source(
            text=text,
            file=os.path.relpath(graph_path),
            settings=chosen,
            includes=includes,
            kinds=kinds,
        )
    )
    found = (*diagnostics, *admitted.diagnostics)
    failed = any(one.severity == "error" for one in found)
    return Loaded(
        path=graph_path,
        source=source,
        includes={name: text for name, text in includes.items() if text is not None},
        settings=chosen,
        graph=None if failed else admitted.graph,
        diagnostics=found,
    )


def _layers(
    path: Path, top: Path, environment: Mapping[str, str], command_line: Layer | None
) -> tuple[list[Layer], list[Diagnostic]]:
    """The settings that apply, the strongest first, and what is wrong with their files."""
    layers = [command_line] if command_line is not None else []
    diagnostics: list[Diagnostic] = []
    for file in _settings_files(path, top, environment):
        layer, found = settings.parse(_text(file), os.path.relpath(file))
        layers.append(layer)
        diagnostics += found
    for name in ("server.toml", "settings.toml"):
        foreign = user_folder(environment).parent / "fabro" / name
        if foreign.is_file():
            layer, found = settings.parse_foreign(_text(foreign), str(foreign))
            layers.append(layer)
            diagnostics += found
    return layers, diagnostics


def _settings_files(path: Path, top: Path, environment: Mapping[str, str]) -> list[Path]:
    run_files = [path] if path.suffix == ".toml" else [path.parent / name for name in _RUN_FILES]
    groups = (
        run_files,
        [top / name for name in _PROJECT_FILES],
        [user_folder(environment) / "settings.toml"],
    )
    found = [next((file for file in group if file.is_file()), None) for group in groups]
    return [file for file in found if file is not None]


def _text(path: Path) -> str:
    return read_file(path).decode("utf-8", "surrogateescape")


def read_file(path: Path) -> bytes:
    """The bytes of a file of at most 16 MiB.

    Raises:
        RequestError: it cannot be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_BYTES + 1)
    except OSError as exc:
        raise RequestError(f"cannot read: {path}: {exc.strerror}") from exc
    if len(data) > _LARGEST_BYTES:
        raise RequestError(f"file is larger than 16 MiB: {path}")
    return data


def _read_includes(
    text: str, graph_path: Path, chosen: Settings, environment: Mapping[str, str]
) -> dict[str, str | None]:
    names = [include.path for include in admission.includes(text, str(graph_path))]
    if chosen.goal is not None and chosen.goal.startswith("@") and not chosen.goal.startswith("@@"):
        names.append(chosen.goal[1:])
    return {name: _read_include(name, graph_path, environment) for name in names}


def _read_include(name: str, graph_path: Path, environment: Mapping[str, str]) -> str | None:
    """The text of an included file, beside the workflow or in the user's folder."""
    wanted = Path(os.path.expanduser(name))
    for folder in (graph_path.parent, user_folder(environment)):
        try:
            return read_file(folder / wanted).decode("utf-8", "replace")
        except RequestError:
            continue
    return None


def readmit(
    source: bytes,
    file: str,
    includes: Mapping[str, str],
    recorded: Mapping[str, Json],
    *,
    kinds: frozenset[str],
    hint: str = "",
) -> tuple[Graph, Settings]:
    """The graph of a run again, from what the run recorded of it.

    ``hint`` is what to do where it is not admitted.

    Raises:
        RecordError: the settings do not parse.
        WorkflowError: this program no longer admits the workflow.
    """
    chosen = settings.load(dict(recorded))
    admitted = admission.admit(
        Source(
            text=source.decode("utf-8", "surrogateescape"),
            file=file,
            settings=chosen,
            includes=dict(includes),
            kinds=kinds,
        )
    )
    if admitted.graph is None:
        raise WorkflowError(
            f"the recorded workflow is not admitted: {file}",
            admitted.diagnostics,
            hint=hint,
        )
    return admitted.graph, chosen


def initial_context(graph: Graph, run: RunId) -> dict[str, Json]:
    """The context at the start of a run, and again after each restart of a loop."""
    context: dict[str, Json] = {f"graph.{key}": value for key, value in graph.attributes.items()}
    return context | {"graph.goal": graph.goal, "internal.run_id": run}


def admitted_digests(repository: Repository) -> frozenset[str]:
    """The digests that this clone has admitted."""
    try:
        return frozenset((repository.common_dir / "fabro/admitted").read_text().split())
    except FileNotFoundError:
        return frozenset()


def admit_digest(repository: Repository, digest: str) -> None:
    """Notes that this clone runs workflows of this digest."""
    if digest in admitted_digests(repository):
        return
    path = repository.common_dir / "fabro/admitted"
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(f"{digest}\n")
    except OSError as exc:
        raise RequestError(f"cannot write: {path}: {exc.strerror}") from exc
