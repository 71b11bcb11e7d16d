"""An entry of a timeline with the commits that it stands on, and what is told beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from git_fabro.branches import Branches, Source
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Entry
from git_fabro.checkpoint.unfolding import MOST_PATHS
from git_fabro.errors import MissingObjectError, RecordError
from git_fabro.git import treecount
from git_fabro.git.objects import Objects
from git_fabro.git.walks import Step

#: So far is looked for a checkpoint below commits made by hand, and for any on Fabro's branches.
LONGEST_WALK = 10_000


class Place(NamedTuple):
    """An entry, its run commit, and the commit that its files are compared with.

    There is no step for an entry without run commit, no commit before for one at the root.
    """

    entry: Entry
    step: Step | None
    before: Oid | None


class Detail(NamedTuple):
    """What a table shows beside an entry; None is not recorded, or not to be had."""

    duration_ms: int | None
    files_changed: int | None


class History(Protocol):
    """A run's timeline, ours or Fabro's; ``problems`` fills as places are asked for."""

    source: Source
    branches: Branches
    problems: list[str]
    made_by: str  # git-fabro, or fabro

    def base(self) -> Oid | None:
        """The commit below the first checkpoint; None where it is not known."""

    def places(self) -> Iterator[Place]:
        """The places, the newest first; what cannot be read is a problem, and no error."""

    def detail(self, place: Place) -> Detail:
        """How long an entry took and how many files it changed."""

    def interior(self) -> dict[str, str]:
        """The nodes inside fan-outs, and the outermost parallel node of each."""


def files_changed(objects: Objects, place: Place) -> int | None:
    """How many paths differ from the commit before; None where there is none, or it is absent.

    None also where they are more than ``MOST_PATHS``, which nobody could look at.
    """
    step = place.step
    if step is None or place.before is None:
        return None
    if step.changed is not None and step.parent == place.before:
        return step.changed
    try:
        # Most nodes change nothing: then the trees are one.
        before = objects.tree_of(place.before)
        if before == step.tree:
            return 0
        found = treecount.count(before, step.tree, objects.tree_data, objects.object_format)
        return found.files if found.files <= MOST_PATHS else None
    except (MissingObjectError, RecordError):
        return None
