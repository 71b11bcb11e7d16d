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
from git_fabro.git.remote import names as remote_names

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
    tips: dict[RunId, dict[str, tuple[str, Oid]]] = {}
    for ref, oid in _local_refs(source):
        run = _run_of(ref)
        if run is not None:
            tips.setdefault(run, {}).setdefault(_side(ref), (ref, oid))
    origins: dict[RunId, str] = {}
    for remote in remote_names(source.repository):
        for ref, oid in source.refs.list(f"{layout.REMOTES}{remote}/").items():
            named = layout.remote_run(ref)
            if named is not None and named[0] == remote:
                if named[2] not in tips:
                    origins[named[2]] = remote
                tips.setdefault(named[2], {}).setdefault(_side(named[1]), (ref, oid))
    return {run: _of(run, tips[run], origins.get(run, LOCAL)) for run in sorted(tips)}


def _side(branch: str) -> str:
    """``meta`` or ``run``, of the local name of a branch."""
    is_meta = branch.startswith((layout.META_PREFIX, layout.HIDDEN_META_PREFIX))
    return "meta" if is_meta else "run"


def _of(run: RunId, tips: Mapping[str, tuple[str, Oid]], origin: str) -> Branches:
    run_ref, run_tip = tips.get("run", (None, None))
    meta_ref, meta_tip = tips.get("meta", (None, None))
    return Branches(
        run=run,
        run_ref=run_ref,
        run_tip=run_tip,
        meta_ref=meta_ref,
        meta_tip=meta_tip,
        origin=origin,
    )


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
        for ref in (*_run_refs(run), layout.meta_ref(run)):
            tracking = f"{layout.REMOTES}{remote}/{ref.removeprefix(layout.HEADS)}"
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


def _local_refs(source: Source) -> Iterator[tuple[str, Oid]]:
    for prefix in (f"{layout.HEADS}fabro/", layout.ARC_RUN_PREFIX, layout.HIDDEN_META_PREFIX):
        yield from source.refs.list(prefix).items()


def _run_of(ref: str) -> RunId | None:
    arc = ref.removeprefix(layout.ARC_RUN_PREFIX)
    if arc != ref:
        return RunId(arc) if layout.is_run_id(arc) else None
    return layout.run_of(ref)


def _run_refs(run: RunId) -> tuple[str, str]:
    return layout.run_ref(run), layout.ARC_RUN_PREFIX + run


def _meta_refs(run: RunId) -> tuple[str, str]:
    return layout.meta_ref(run, "heads"), layout.meta_ref(run, "hidden")


def _with(known: Branches, branch: str, ref: str, oid: Oid) -> Branches:
    """Branches with one more ref, unless one stands there: local ones and our own names first."""
    if branch.startswith((layout.META_PREFIX, layout.HIDDEN_META_PREFIX)):
        return known if known.meta_ref else known._replace(meta_ref=ref, meta_tip=oid)
    return known if known.run_ref else known._replace(run_ref=ref, run_tip=oid)
