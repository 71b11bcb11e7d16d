"""The floors of the architecture: imports go down only, and never in a circle."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "git_fabro"

#: The lowest floor first; a name stands for a module or for all below it.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("workflow",),
    ("checkpoint",),
    ("git",),
    (
        "adoption",
        "blobs",
        "branches",
        "course",
        "doors",
        "facts",
        "fabroruns",
        "forking",
        "gates",
        "handmade",
        "history",
        "homes",
        "hookfiles",
        "importing",
        "journal",
        "lease",
        "listing",
        "localizing",
        "metatree",
        "opening",
        "operations",
        "place",
        "reading",
        "restoring",
        "rundir",
        "sending",
        "sharing",
        "states",
        "store",
        "summary",
        "targets",
        "tombstones",
        "trace",
        "workflows",
    ),
    ("handlers",),
    ("jobs",),
    ("api", "cli", "__main__", "__init__"),
)
#: Third-party packages, and the only rooms that may know them.
ALLOWED = {
    "dulwich": ("git",),
    "typer": ("cli",),
    "inotify_simple": ("git",),
    "rich": ("cli",),
    "yaml": ("cli",),
    "tomli_w": ("cli",),
}


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts), path


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """The full names that a module imports: ``git_fabro.checkpoint.codec``, ``os``."""
    tree = ast.parse(path.read_text())
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def floor_of(name: str) -> int:
    first = name.split(".")[0]
    (found,) = [level for level, rooms in enumerate(FLOORS) if first in rooms]
    return found


def known(name: str) -> str | None:
    """The module of ours that an imported name lies in, without the package's own name."""
    parts = name.split(".")
    if parts[0] != "git_fabro":
        return None
    inside = parts[1:]
    while inside:
        path = PACKAGE.joinpath(*inside)
        if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
            return ".".join(inside)
        inside = inside[:-1]
    return "__init__"


@pytest.mark.parametrize(("name", "path"), [pytest.param(n, p, id=n) for n, p in modules()])
def test_imports_go_down_only(name: str, path: Path) -> None:
    above = [
        target
        for target in map(known, imports(path))
        if target is not None and floor_of(target) > floor_of(name)
    ]

    assert above == []


@pytest.mark.parametrize(("name", "path"), [pytest.param(n, p, id=n) for n, p in modules()])
def test_what_is_not_ours_is_known_only_where_it_may_be(name: str, path: Path) -> None:
    foreign = {full.split(".")[0] for full in imports(path)} - {"git_fabro"}
    foreign -= set(sys.stdlib_module_names)
    room = name.split(".")[0]

    assert [one for one in foreign if room not in ALLOWED.get(one, ())] == []


def test_nothing_imports_in_a_circle() -> None:
    graph = {
        name: {
            target
            for target in map(known, imports(path, top_level_only=True))
            if target not in (None, name)
        }
        for name, path in modules()
    }

    assert list(TopologicalSorter(graph).static_order())


def test_jobs_do_not_know_each_other() -> None:
    def job(name: str) -> str:
        return name.split(".")[1] if name.count(".") else ""

    between = [
        (name, target)
        for name, path in modules()
        if name.startswith("jobs.")
        for target in map(known, imports(path))
        if target is not None and target.startswith("jobs.") and job(target) != job(name)
    ]

    assert between == []


@pytest.mark.parametrize("word", ["dulwich.porcelain", "import porcelain", "type: ignore\n"])
def test_some_words_stand_nowhere(word: str) -> None:
    found = [name for name, path in modules() if word in path.read_text()]

    assert found == []


def test_words_and_rules_do_no_io() -> None:
    doors = {"os", "subprocess", "pathlib", "socket", "time", "random", "io", "shutil", "tempfile"}
    found = [
        (name, full)
        for name, path in modules()
        if name.split(".")[0] in ("workflow", "checkpoint", "errors")
        for full in imports(path)
        if full.split(".")[0] in doors
    ]

    assert found == []
