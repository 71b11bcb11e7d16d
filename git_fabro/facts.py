"""What a proof of the record is told: the objects and refs of one repository, and its limits.

Shared by all that prove: fsck, a push that is about to leave, and the server that receives it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from git_fabro.branches import Source
from git_fabro.checkpoint.finding import Limits
from git_fabro.checkpoint.model import Commit, Oid
from git_fabro.checkpoint.secrets import Mask
from git_fabro.errors import RecordError, RequestError
from git_fabro.git.discover import Repository

#: A commit larger than this is none that a person or this program made.
COMMIT_BYTES = 4 * 1024 * 1024
#: A tree is looked at as the new one, and then as the one before.
_KEPT_COMMITS, _KEPT_TREES, _KEPT_TREE_BYTES = 4096, 1024, 64 * 1024
#: Where secrets are looked for.
_PLACES: Mapping[str, Literal["all", "record", "none"]] = {
    "all": "all",
    "record": "record",
    "none": "none",
}


@dataclass(frozen=True)
class RepositoryFacts:
    """The facts of a repository as it stands; see ``checkpoint.finding.Facts``."""

    source: Source
    _commits: OrderedDict[Oid, Commit] = field(default_factory=OrderedDict)
    _trees: OrderedDict[Oid, bytes] = field(default_factory=OrderedDict)

    def commit(self, oid: Oid) -> Commit:
        known = self._commits.get(oid)
        if known is None:
            if self.size(oid) > COMMIT_BYTES:
                raise RecordError(f"object {oid} is too large for a commit")
            known = self._commits[oid] = self.source.objects.read_commit(oid)
            if len(self._commits) > _KEPT_COMMITS:
                self._commits.popitem(last=False)
        return known

    def tree(self, oid: Oid) -> bytes:
        known = self._trees.get(oid)
        if known is None:
            known = self.source.objects.tree_data(oid)
            if len(known) <= _KEPT_TREE_BYTES:
                self._trees[oid] = known
            if len(self._trees) > _KEPT_TREES:
                self._trees.popitem(last=False)
        return known

    def blob(self, oid: Oid) -> bytes:
        return self.source.objects.read_blob(oid)

    def size(self, oid: Oid) -> int:
        known = self._trees.get(oid)
        return len(known) if known is not None else self.source.objects.size(oid)

    def exists(self, oid: Oid) -> bool:
        return self.source.objects.exists(oid)

    def is_ancestor(self, ancestor: Oid, tip: Oid) -> bool:
        return self.source.objects.is_ancestor(ancestor, tip)

    def ref(self, name: str) -> Oid | None:
        return self.source.refs.read(name)

    @cached_property
    def boundary(self) -> frozenset[Oid]:
        path = self.source.repository.common_dir / "shallow"
        if not path.is_file():
            return frozenset()
        return frozenset(Oid(line) for line in path.read_text(encoding="ascii").split())


def limits_of(repository: Repository) -> Limits:
    """The limits that the configuration sets: ``fabro.server.*`` and ``fabro.secrets.pattern``.

    Raises:
        RequestError: a value is none of those that there are.
    """
    usual = Limits()
    where = repository.config("fabro.server.checkSecrets") or usual.secrets
    if where not in _PLACES:
        raise RequestError(
            f"not a value of fabro.server.checkSecrets: {where}",
            hint="git config fabro.server.checkSecrets all",
        )
    return Limits(
        record_bytes=_bytes(repository, "fabro.server.maxRecordBytes", usual.record_bytes),
        file_bytes=_bytes(repository, "fabro.server.maxFileBytes", usual.file_bytes),
        mask=Mask.of(patterns=repository.config_all("fabro.secrets.pattern")),
        secrets=_PLACES[where],
    )


_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _bytes(repository: Repository, key: str, usual: int) -> int:
    """A size as git reads one: a number, with ``k``, ``m`` or ``g`` behind it."""
    text = repository.config(key)
    if text is None:
        return usual
    number, unit = (
        (text[:-1], _UNITS[text[-1].lower()]) if text[-1:].lower() in _UNITS else (text, 1)
    )
    if not number.isdecimal():
        raise RequestError(f"not a size in {key}: {text}", hint=f"git config {key} 16m")
    return int(number) * unit
