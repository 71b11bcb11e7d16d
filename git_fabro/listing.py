"""Many runs as rows, each read once: a row stays true as long as both tips of its run do.

What was read is kept outside Git, in the cache folder of the user. It can be deleted at any time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from git_fabro import homes, summary
from git_fabro.branches import LOCAL, Branches, Source
from git_fabro.checkpoint.model import RunId
from git_fabro.errors import FabroError
from git_fabro.summary import Row

if TYPE_CHECKING:
    from git_fabro.workflow.state import Json

#: Another number here makes older files worthless.
_FORM = 1
#: So many runs are read at once; states may be large.
_AT_ONCE = 256


class Choice(NamedTuple):
    """Which rows somebody wants to see; ``before`` is RFC 3339."""

    show_all: bool = False
    workflow: str | None = None
    labels: Mapping[str, str] = {}
    before: str | None = None
    remote: bool = False

    def takes(self, row: Row) -> bool:
        return (
            (self.show_all or not row.is_over)
            and (not self.remote or row.origin != LOCAL)
            and (self.workflow is None or row.workflow == self.workflow)
            and (self.before is None or row.created_at < self.before)
            and all(row.labels.get(key) == value for key, value in self.labels.items())
        )


def rows(
    source: Source, home: Path, found: Mapping[RunId, Branches], environment: Mapping[str, str]
) -> dict[RunId, Row]:
    """The rows of the runs that are at rest; those that are not, or cannot be read, are left out.

    Args:
        source: The repository.
        home: Its run directories: a run with a journal is not at rest.
        found: The branches of all runs.
        environment: Says where caches are kept.
    """
    file = _file(home, environment)
    known, with_directory = _load(file), set(homes.runs_at(home))
    kept: dict[str, tuple[str, Row]] = {}
    unknown: list[Branches] = []
    for run, branches in found.items():
        former = known.get(run)
        if run in with_directory and homes.has_journal(home, run):
            continue
        if former is not None and former[0] == _mark(branches):
            kept[run] = former
        else:
            unknown.append(branches)
    kept |= _read(source, home, unknown)
    if kept != known:
        _save(file, kept)
    return {RunId(run): row for run, (_, row) in kept.items()}


def parents(
    source: Source, home: Path, found: Mapping[RunId, Branches], environment: Mapping[str, str]
) -> dict[RunId, Mapping[str, Json]]:
    """What each fork was forked from: ``{"run": ..., "ordinal": 3}``; arguments as above."""
    known = rows(source, home, found, environment)
    forks: dict[RunId, Mapping[str, Json]] = {}
    for run, branches in found.items():
        parent = known[run].parent if run in known else summary.parent_of(source, branches)
        if parent is not None:
            forks[run] = parent
    return forks


def _mark(branches: Branches) -> str:
    return f"{branches.run_tip} {branches.meta_tip} {branches.origin}"


def _read(
    source: Source, home: Path, unknown: Sequence[Branches]
) -> Iterator[tuple[RunId, tuple[str, Row]]]:
    for begin in range(0, len(unknown), _AT_ONCE):
        some = unknown[begin : begin + _AT_ONCE]
        summary.read_ahead(source, some)
        for branches in some:
            row = _row(source, home, branches)
            if row is not None and not row.problem:
                yield branches.run, (_mark(branches), row)


def _row(source: Source, home: Path, branches: Branches) -> Row | None:
    try:
        return summary.quick(source, home, branches)
    except FabroError:
        return None


def _file(home: Path, environment: Mapping[str, str]) -> Path:
    caches = environment.get("XDG_CACHE_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".cache"
    )
    return Path(caches) / "git-fabro" / home.name / "rows.json"


def _load(file: Path) -> dict[str, tuple[str, Row]]:
    try:
        value = json.loads(file.read_bytes())
        if value["form"] != _FORM:
            return {}
        return {run: (mark, Row(**row)) for run, (mark, row) in value["rows"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # Somebody deleted it, or it is not ours: all is read anew.
        return {}


def _save(file: Path, kept: Mapping[str, tuple[str, Row]]) -> None:
    # Imported here: 5 ms that a list does not pay in which nothing is new.
    import tempfile

    listed = {run: (mark, row._asdict()) for run, (mark, row) in kept.items()}
    text = json.dumps({"form": _FORM, "rows": listed})
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as part:
            part.write(text)
        os.replace(part.name, file)
    except OSError:
        # A cache that cannot be written costs time, and nothing else.
        return
