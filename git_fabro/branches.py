"""Where the two branches of each run are: refs of this repository, or what a remote had; read only.

Fabro's runs count as ours do, and so do those of its former name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Oid, RunId
from git_fabro.git.discover import Repository, open_repository
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.refs import Refs
from git_fabro.git.remotes import names as remote_names

LOCAL = "local"


class Source(NamedTuple):
    """What is read from: the objects and refs of one repository, and nothing that writes."""

    repository: Repository
    objects: Objects
    refs: Refs

    @classmethod
    def open(cls, path: Path | str = ".") -> Source:
        """The repository that a folder belongs to.

        Raises:
            NotFoundError: no repository there.
        """
        repository = open_repository(path)
        objects = open_objects(repository)
        return cls(repository, objects, Refs(repository, objects))


class Branches(NamedTuple):
    """The two branches of a run; a ref and its tip are None where there is none.

    ``origin`` is ``local``, or the remote whose branches were fetched, where there is no local one.
    """

    run: RunId
    run_ref: str | None = None
    run_tip: Oid | None = None
    meta_ref: str | None = None
    meta_tip: Oid | None = None
    origin: str = LOCAL

    @property
    def tips(self) -> tuple[Oid, ...]:
        """The tips that there are."""
        return tuple(tip for tip in (self.run_tip, self.meta_tip) if tip is not None)


def all_branches(source: Source) -> dict[RunId, Branches]:
    """The branches of every run, by id, sorted: the oldest first."""
    runs = _refs_below(source, layout.RUN_PREFIX, layout.ARC_RUN_PREFIX)
    metas = _refs_below(source, layout.META_PREFIX, layout.HIDDEN_META_PREFIX)
    origins: dict[RunId, str] = {}
    for remote in remote_names(source.repository):
        for run, branch, ref, oid in _tracked(source, remote):
            if run not in runs and run not in metas:
                origins[run] = remote
            (metas if _is_meta(branch) else runs).setdefault(run, (ref, oid))
    return {
        run: _of(run, runs.get(run), metas.get(run), origins.get(run, LOCAL))
        for run in sorted({**runs, **metas})
        if layout.is_run_id(run)
    }


def _tracked(source: Source, remote: str) -> Iterator[tuple[RunId, str, str, Oid]]:
    """Tracking refs of a remote: the run, the name that the ref has there, its name here."""
    for ref, oid in source.refs.list(f"{layout.REMOTES}{remote}/").items():
        named = layout.remote_run(ref)
        if named is not None and named[0] == remote:
            yield named[2], named[1], ref, oid
    hidden = layout.tracking_ref(remote, layout.HIDDEN_META_PREFIX)
    for ref, oid in source.refs.list(hidden).items():
        run = ref.removeprefix(hidden)
        yield RunId(run), layout.HIDDEN_META_PREFIX + run, ref, oid


def _of(
    run: RunId, on: tuple[str, Oid] | None, meta: tuple[str, Oid] | None, origin: str
) -> Branches:
    run_ref, run_tip = on or (None, None)
    meta_ref, meta_tip = meta or (None, None)
    return Branches(run, run_ref, run_tip, meta_ref, meta_tip, origin)


def _refs_below(source: Source, *prefixes: str) -> dict[RunId, tuple[str, Oid]]:
    """The refs whose names begin so, by what follows; the first of those that end alike."""
    found: dict[RunId, tuple[str, Oid]] = {}
    for prefix in prefixes:
        for ref, oid in source.refs.list(prefix).items():
            found.setdefault(RunId(ref.removeprefix(prefix)), (ref, oid))
    return found


def _is_meta(branch: str) -> bool:
    """Whether the local name of a branch is that of a metadata branch."""
    return branch.startswith((layout.META_PREFIX, layout.HIDDEN_META_PREFIX))


def branches_of(source: Source, run: RunId) -> Branches:
    """The branches of one run, by its exact id; both are None if there is no such run."""
    found = Branches(run=run)
    for ref in (*_run_refs(run), *_meta_refs(run)):
        oid = source.refs.read(ref)
        if oid is not None:
            found = _with(found, ref, ref, oid)
    is_local = found.run_ref or found.meta_ref
    for remote in remote_names(source.repository):
        if found.run_ref and found.meta_ref:
            break
        for ref in (*_run_refs(run), *_meta_refs(run)):
            tracking = layout.tracking_ref(remote, ref)
            oid = source.refs.read(tracking)
            if oid is not None:
                found = _with(found, ref, tracking, oid)
                found = found if is_local else found._replace(origin=remote)
    return found


def snapshots(source: Source, run: RunId) -> Mapping[str, Oid]:
    """The snapshots of a run, by id, the oldest first."""
    prefix = layout.snapshot_prefix(run)
    found = source.refs.list(prefix).items()
    return {ref.removeprefix(prefix): oid for ref, oid in found}


def parallels(source: Source, run: RunId) -> Mapping[str, Oid]:
    """The tips of the parallel branches of a run: ``{"split@1/api": tip}``."""
    prefix = layout.parallel_prefix(run)
    found = source.refs.list(prefix).items()
    return {ref.removeprefix(prefix): oid for ref, oid in found}


def _run_refs(run: RunId) -> tuple[str, str]:
    return layout.run_ref(run), layout.ARC_RUN_PREFIX + run


def _meta_refs(run: RunId) -> tuple[str, str]:
    return layout.meta_ref(run, "heads"), layout.meta_ref(run, "hidden")


def _with(known: Branches, branch: str, ref: str, oid: Oid) -> Branches:
    """Branches with one more ref, unless one stands there: local ones and our own names first."""
    if _is_meta(branch):
        return known if known.meta_ref else known._replace(meta_ref=ref, meta_tip=oid)
    return known if known.run_ref else known._replace(run_ref=ref, run_tip=oid)
