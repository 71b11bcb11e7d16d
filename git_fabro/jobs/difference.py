"""What differs between two checkpoints: files, and keys of the context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from git_fabro import history, states, targets
from git_fabro.branches import Source
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.errors import NotFoundError
from git_fabro.git import textdiff
from git_fabro.git.textdiff import Counted
from git_fabro.git.treediff import Change
from git_fabro.place import History, Place
from git_fabro.workflow.state import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The two sides that somebody wants to compare; ``said`` is to be told.

    ``old`` is None where that is the base of the run, whose context is empty; ``old_commit`` is the
    commit of either.
    """

    told: History
    old: Place | None
    old_commit: Oid | None
    new: Place
    said: tuple[str, ...] = ()

    @property
    def has_files(self) -> bool:
        return self.old_commit is not None and self.new.entry.run_commit is not None

    @property
    def has_context(self) -> bool:
        sides = (self.new,) if self.old is None else (self.old, self.new)
        return all(side.entry.meta_commit is not None for side in sides)


def asked(source: Source, run: RunId, named: Sequence[str]) -> Asked:
    """The sides that these targets name: of none the base and the last checkpoint; of one the
    checkpoint before it, or the base, and itself; of two both.

    Raises:
        NotFoundError: there is no such run or checkpoint.
        RequestError: a target is malformed, or names several.
    """
    told = history.timeline_of(source, run)
    if not named:
        newest = next(told.places(), None)
        if newest is None:
            raise NotFoundError(f"the run has no checkpoint: {run}", hint=f"git fabro show {run}")
        return Asked(told=told, old=None, old_commit=told.base(), new=newest)
    found = [targets.find(told, target) for target in named]
    said = tuple(one.said for one in found if one.said)
    if len(found) == 1:
        new = found[0].place
        before = targets.before(told, new)
        return Asked(told=told, old=before, old_commit=new.before, new=new, said=said)
    old, new = found[0].place, found[1].place
    return Asked(told=told, old=old, old_commit=old.entry.run_commit, new=new, said=said)


def files(asked: Asked, paths: Sequence[bytes]) -> Difference:
    """The paths that differ, at these paths and below; none is all.

    Raises:
        NotFoundError: a side has no run commit.
        MissingObjectError: an object is absent.
    """
    new, run = asked.new.entry, asked.told.branches.run
    old = asked.old.entry.name if asked.old is not None else "before the first checkpoint"
    for name, commit in ((new.name, new.run_commit), (old, asked.old_commit)):
        if commit is None:
            raise NotFoundError(
                f"no run commit for {name}: {run}",
                hint=f"git fabro diff --context {run} {new.name}",
            )
    assert asked.old_commit is not None
    assert new.run_commit is not None
    return between(asked.told.source, asked.old_commit, new.run_commit, paths)


def context(asked: Asked) -> Keys:
    """Which keys of the context came, went and changed.

    Raises:
        NotFoundError: a side has no metadata.
        RecordError: a state does not parse.
    """
    source, run = asked.told.source, asked.told.branches.run
    old: Mapping[str, Json] = {}
    if asked.old is not None:
        old = states.state_at(source, run, asked.old).line.context_values
    return keys(old, states.state_at(source, run, asked.new).line.context_values)


@dataclass(frozen=True, slots=True)
class Difference:
    """The paths that differ between two commits, and their lines when asked for."""

    source: Source
    old: Oid
    new: Oid
    changes: tuple[Change, ...]

    def counted(self) -> list[Counted]:
        """Added and deleted lines of each path."""
        return textdiff.count(
            self.source.repository, self.source.objects, self.old, self.new, self.changes
        )

    def patch(self) -> Iterator[str]:
        """The lines of a patch."""
        return textdiff.patch(
            self.source.repository, self.source.objects, self.old, self.new, self.changes
        )


def between(source: Source, old: Oid, new: Oid, paths: Sequence[bytes] = ()) -> Difference:
    """What differs between two commits, at these paths and below; none is all.

    Raises:
        MissingObjectError: a commit or tree is absent.
    """
    changes = source.objects.diff(old, new)
    if paths:
        changes = [change for change in changes if _is_below(change.path, paths)]
    return Difference(source, old, new, tuple(changes))


def _is_below(path: bytes, wanted: Sequence[bytes]) -> bool:
    return any(not one or path == one or path.startswith(one.rstrip(b"/") + b"/") for one in wanted)


@dataclass(frozen=True, slots=True)
class Keys:
    """Which keys of a context came, went and changed: ``changed`` holds old and new."""

    added: Mapping[str, Json]
    removed: Mapping[str, Json]
    changed: Mapping[str, tuple[Json, Json]]

    def to_json(self) -> dict[str, object]:
        changed = {key: {"old": old, "new": new} for key, (old, new) in self.changed.items()}
        return {"added": self.added, "removed": self.removed, "changed": changed}


def keys(old: Mapping[str, Json], new: Mapping[str, Json]) -> Keys:
    """What became of each key from one context to another."""
    return Keys(
        added={key: new[key] for key in sorted(new) if key not in old},
        removed={key: old[key] for key in sorted(old) if key not in new},
        changed={
            key: (old[key], new[key])
            for key in sorted(new)
            if key in old and not _is_same(old[key], new[key])
        },
    )


def _is_same(old: Json, new: Json) -> bool:
    """Whether two values are one; in JSON true is not 1."""
    return old == new and isinstance(old, bool) == isinstance(new, bool)
