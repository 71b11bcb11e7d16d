"""``git fabro diff``: what a run, a checkpoint, or the way between two of them changed."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from git_fabro.cli import changes, naming, options, pager, render
from git_fabro.cli.naming import Here
from git_fabro.doors import shown_path
from git_fabro.git.textdiff import Counted
from git_fabro.jobs import difference
from git_fabro.jobs.difference import Asked

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN] [A] [B]", help="targets; paths follow after --"),
]
Stat = Annotated[bool, typer.Option("--stat", help="how many lines of which files")]
NameOnly = Annotated[bool, typer.Option("--name-only", help="paths only")]
Nul = Annotated[bool, typer.Option("-z", help="with --name-only: end each path with a NUL")]
Context = Annotated[bool, typer.Option("--context", help="keys of the context, not files")]
Paths = Annotated[list[str] | None, typer.Option("--path", hidden=True)]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(diff)


def spelled(words: list[str]) -> list[str]:
    """The words of a command line with the paths behind ``--`` as options of their own."""
    if "--" not in words:
        return words
    at = words.index("--")
    return [*words[:at], *(f"--path={path}" for path in words[at + 1 :])]


def diff(
    words: Words = None,
    run: options.RunOption = None,
    stat: Stat = False,
    name_only: NameOnly = False,
    nul: Nul = False,
    context: Context = False,
    paths: Paths = None,
    color: options.Color = None,
    as_json: options.AsJson = False,
) -> int:
    """Print what a run or a checkpoint changed, or what differs between two checkpoints."""
    options.only_with(nul, name_only, "-z", "git fabro diff --name-only -z")
    place = naming.here()
    chosen, targets = naming.run_and_targets(place, words or [], run, "diff", most=2)
    asked = difference.asked(place.reading(), chosen, targets)
    for text in asked.said:
        render.say(text)
    below = [_from_top(place, path) for path in paths or ()]
    if as_json:
        render.document(_json(asked, below))
        return 0
    coloured = render.wants_colour(color, place.config("color.fabro", "color.ui"))
    if context:
        pager.begin("diff", place.source)
        _print_keys(asked, coloured=coloured)
        return 0
    found = difference.files(asked, below)
    if name_only:
        spell = os.fsdecode if nul else shown_path
        render.names([spell(one.path) for one in found.changes], nul=nul)
        return 0
    pager.begin("diff", place.source)
    show = changes.stat if stat else changes.patch
    show(found, coloured=coloured)
    return 0


def _from_top(place: Here, path: str) -> bytes:
    """A path as it was typed, as trees have it: from the top of the work tree."""
    top = place.source.repository.work_tree if place.source is not None else None
    if top is None:
        return os.fsencode(os.path.normpath(path)).removeprefix(b"./")
    whole = os.path.normpath(os.path.join(os.path.realpath(place.folder), path))
    relative = os.path.relpath(whole, os.path.realpath(top))
    return b"" if relative == "." else os.fsencode(relative)


def _json(asked: Asked, below: list[bytes]) -> dict[str, object]:
    files = None
    if asked.has_files:
        files = [_file(one) for one in difference.files(asked, below).counted()]
    found = difference.context(asked) if asked.has_context else None
    return {"files": files, "context": found.to_json() if found is not None else None}


def _file(one: Counted) -> dict[str, object]:
    path = shown_path(one.path)
    return {"path": path, "status": one.status, "added": one.added, "deleted": one.deleted}


def _print_keys(asked: Asked, *, coloured: bool) -> None:
    found = difference.context(asked)
    rows = [("-", key, value) for key, value in found.removed.items()]
    rows += [("+", key, value) for key, value in found.added.items()]
    for key, (old, new) in found.changed.items():
        rows += [("-", key, old), ("+", key, new)]
    for sign, key, value in sorted(rows, key=lambda row: (row[1], row[0] == "+")):
        status = {"+": "success", "-": "fail"}[sign] if coloured else ""
        render.painted([(render.line(f"{sign} {key}: {render.value(value)}"), status)])
