"""A timeline as a graph in text: forks that leave it, parallel branches that come back to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from git_fabro import branches
from git_fabro.checkpoint import message
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.errors import RecordError
from git_fabro.git import walks
from git_fabro.place import History, Place
from git_fabro.workflow.state import Json

_LONGEST_BRANCH = 1_000
_SHORT = 12


def forks_of(run: RunId, parents: Mapping[RunId, Mapping[str, Json]]) -> dict[int, list[RunId]]:
    """The runs that were forked from a run, by the ordinal that they come from."""
    found: dict[int, list[RunId]] = {}
    for fork, parent in parents.items():
        ordinal = parent.get("ordinal")
        if parent.get("run") == run and isinstance(ordinal, int):
            found.setdefault(ordinal, []).append(fork)
    return found


def drawn(
    told: History,
    places: Iterable[Place],
    forks: Mapping[int, list[RunId]],
    line_of: Callable[[Place], str],
) -> Iterator[str]:
    """The lines of the graph, newest first: the run itself, and what is beside it."""
    tips = branches.parallels(told.source, told.branches.run)
    for place in places:
        entry = place.entry
        for fork in forks.get(entry.ordinal or 0, ()):
            yield f"| * fork {fork}"
            yield "|/"
        yield f"* {line_of(place)}"
        if entry.node is not None and place.before is not None:
            visit = f"{entry.node}@{entry.visit}"
            yield from _branches(told, tips, visit, place.before, "")


def _branches(
    told: History, tips: Mapping[str, Oid], visit: str, base: Oid, margin: str
) -> Iterator[str]:
    """What the branches of one fan-out did, newest first, back to where they began."""
    mine = {name: tip for name, tip in tips.items() if name.startswith(f"{visit}/")}
    for name, tip in mine.items():
        yield f"{margin}|\\"
        try:
            yield from _branch(told, tips, name, tip, base, margin)
        except RecordError as exc:
            told.problems.append(exc.message)
        yield f"{margin}|/"


def _branch(
    told: History, tips: Mapping[str, Oid], name: str, tip: Oid, base: Oid, margin: str
) -> Iterator[str]:
    at: Oid | None = tip
    for _ in range(_LONGEST_BRANCH):
        if at is None or at == base:
            return
        step = walks.one_step(told.source.objects, at)
        said = message.parse_checkpoint_message(step.message.decode("utf-8", "replace"))
        if said is None or said.branch is None:
            return
        text = f"{at[:_SHORT]} {name}: {said.node}@{said.visit} {said.status}"
        yield f"{margin}| * {text}"
        if step.parent is not None:
            inner = f"{said.node}@{said.visit}"
            yield from _branches(told, tips, inner, step.parent, f"{margin}| ")
        at = step.parent
