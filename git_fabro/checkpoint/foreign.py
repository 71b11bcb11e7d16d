"""The branches of the Rust program Fabro: which commit means what, and the timeline they make.

What their files hold is ``foreign_values.py``'s. Nothing is written in their form.

Source: git-fabro-format(5), "Fabro's branches".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.timeline import Entry, Link

if TYPE_CHECKING:
    from git_fabro.workflow.state import Json

#: ``ours`` has a schema; the others in the order in which the program had them.
Generation = Literal["ours", "G1", "G2", "G2b", "G3", "G4"]

MANIFEST = "manifest.json"
PARALLEL_BASE = "parallel_base"

_SUBJECT = re.compile(r"(?:fabro|arc)\((?P<run>[^)]*)\): (?P<node>.*) \((?P<status>[^()]*)\)\Z")
_TRAILER = re.compile(r"(?:Fabro|Arc)-(?P<key>[A-Za-z-]+): (?P<value>.*)\Z")
_OID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_COUNT = re.compile(r"[0-9]{1,9}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommit:
    """What the commit of a checkpoint says of itself; ``named`` is its meta commit, if it has one.

    ``is_ours`` is whether it counts its visit, as git-fabro's commits do and Fabro's never.
    """

    run: str
    node: str
    status: str
    completed: int
    named: Oid | None
    is_ours: bool = False


def parse_run_commit(message: str, run: str | None = None) -> RunCommit | None:
    """What the message of a run commit says, None if it is no checkpoint's.

    Args:
        message: As it is stored.
        run: The run on whose branch it lies; None takes the one that the subject names.
    """
    subject, _, body = message.partition("\n")
    match = _SUBJECT.match(subject)
    if match is None or match["status"] == PARALLEL_BASE or match["run"] != (run or match["run"]):
        return None
    block = _block_after_subject(body)
    completed = block.get("Completed", "")
    if block.get("Run") != match["run"] or not _COUNT.match(completed) or int(completed) < 1:
        return None
    named = block.get("Checkpoint", "")
    return RunCommit(
        run=match["run"],
        node=match["node"],
        status=match["status"],
        completed=int(completed),
        named=Oid(named) if _OID.match(named) else None,
        is_ours="Visit" in block,
    )


def is_of_run(message: str, run: str) -> bool:
    """Whether a commit is one of a run's, a checkpoint or what a parallel node leaves beside it."""
    match = _SUBJECT.match(message.partition("\n")[0])
    return match is not None and match["run"] == run


def _block_after_subject(body: str) -> dict[str, str]:
    """The trailers of the paragraph behind the subject: here the last one is an advertisement."""
    if not body.startswith("\n"):
        return {}
    paragraph = body.lstrip("\n").partition("\n\n")[0]
    found = {}
    for line in paragraph.split("\n"):
        match = _TRAILER.match(line)
        if match is not None:
            found[match["key"]] = match["value"].strip()
    return found


def is_checkpoint(message: str) -> bool:
    """Whether a meta commit may hold a checkpoint: by its first bytes, never by git's subject."""
    return message.startswith("checkpoint")


def is_final(message: str) -> bool:
    """Whether a meta commit ends its run."""
    return message.startswith("finalize run")


def generation(names: Collection[str], run_json: Json = None) -> Generation | None:
    """The form of one meta commit; None if it holds no state.

    Args:
        names: The entries at the root of its tree.
        run_json: The value of run.json, where there is one.
    """
    if layout.RUN_JSON in names and isinstance(run_json, Mapping):
        if "schema" in run_json:
            return "ours"
        if "spec" in run_json:
            return "G4"
        if "config" in run_json:
            return "G2"
        if "settings" in run_json:
            return "G2" if layout.START_JSON in names else "G3"
    if MANIFEST in names:
        return "G1"
    if layout.START_JSON in names or layout.CHECKPOINT_JSON in names:
        return "G2b"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaEntry:
    """A meta commit that is a checkpoint; ``problem`` says why its state cannot be read."""

    meta: Oid
    node: str
    visit: int
    status: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run commit that is a checkpoint; ``link`` is what became of the commit that it names."""

    commit: Oid
    said: RunCommit
    link: Link


def timeline(metas: Sequence[MetaEntry], commits: Sequence[RunEntry]) -> list[Entry]:
    """The entries of a run, from its two branches, each oldest first; ordinals count from 1.

    Linked entries are the fixed points. Between two of them first those that only the metadata
    branch has, then those that only the run branch has. Dates order nothing.
    """
    links = _linked(metas, commits)
    commit_of = {meta: commit for commit, meta in links.items()}
    places = {one.commit: at for at, one in enumerate(commits)}
    found: list[Entry] = []
    at = 0
    for meta in metas:
        commit = commit_of.get(meta.meta)
        # A branch that was reset may have its commits in another order than the metadata.
        end = at if commit is None else max(at, places[commit])
        _append_alone(found, commits[at:end], links)
        at = end
        found.append(_entry_of_meta(len(found) + 1, meta, commit))
    _append_alone(found, commits[at:], links)
    return found


def _append_alone(
    found: list[Entry], commits: Sequence[RunEntry], links: Mapping[Oid, Oid]
) -> None:
    for one in commits:
        if one.commit not in links:
            found.append(_entry_of_commit(len(found) + 1, one, found))


def _linked(metas: Sequence[MetaEntry], commits: Sequence[RunEntry]) -> dict[Oid, Oid]:
    """Run commit to meta commit; if two name one, the older is linked."""
    known = {meta.meta for meta in metas}
    taken: set[Oid] = set()
    found: dict[Oid, Oid] = {}
    for entry in commits:
        named = entry.said.named
        if named is not None and named in known and named not in taken:
            taken.add(named)
            found[entry.commit] = named
    return found


def _entry_of_meta(ordinal: int, meta: MetaEntry, commit: Oid | None) -> Entry:
    return Entry(
        ordinal=ordinal,
        kind="node",
        node=meta.node,
        visit=meta.visit,
        status=meta.status,
        run_commit=commit,
        meta_commit=meta.meta,
        named_meta_commit=meta.meta if commit is not None else None,
        link="ok" if commit is not None else "none",
        problem=meta.problem,
    )


def _entry_of_commit(ordinal: int, one: RunEntry, before: Sequence[Entry]) -> Entry:
    visits = [entry.visit or 0 for entry in before if entry.node == one.said.node]
    # A second commit that names a meta commit which has its own already.
    link: Link = "none" if one.link == "ok" else one.link
    return Entry(
        ordinal=ordinal,
        kind="node",
        node=one.said.node,
        visit=max(visits, default=0) + 1,
        status=one.said.status,
        run_commit=one.commit,
        meta_commit=None,
        named_meta_commit=one.said.named,
        link=link,
    )


def interior(
    nodes: Mapping[str, Mapping[str, str]], edges: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """The nodes inside fan-outs, and the outermost parallel node of each.

    Args:
        nodes: Their attributes ``type`` and ``shape``, by id.
        edges: From, to.
    """
    after: dict[str, list[str]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
    parallels = [name for name, has in nodes.items() if _is(has, "parallel", "component")]
    found: dict[str, str] = {}
    for parallel in parallels:
        waiting, seen = list(after.get(parallel, ())), {parallel}
        while waiting:
            name = waiting.pop()
            joins = _is(nodes.get(name, {}), "parallel.fan_in", "tripleoctagon")
            if name in seen or joins:
                continue
            seen.add(name)
            found.setdefault(name, parallel)
            waiting.extend(after.get(name, ()))
    return {name: _outermost(name, found) for name in found}


def _is(attributes: Mapping[str, str], kind: str, shape: str) -> bool:
    declared = attributes.get("type")
    return declared == kind if declared else attributes.get("shape") == shape


def _outermost(name: str, inside: Mapping[str, str]) -> str:
    seen = {name}
    around = inside[name]
    while around in inside and around not in seen:
        seen.add(around)
        around = inside[around]
    return around
