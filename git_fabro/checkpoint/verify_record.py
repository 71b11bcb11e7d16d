"""The tree of one meta commit: its files, read within limits, and what is wrong with them alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.finding import Facts, Fault, Limits, plain
from git_fabro.checkpoint.model import Oid
from git_fabro.checkpoint.verify_tree import (
    FILE,
    Added,
    Comparison,
    Named,
    entries,
    has_secret,
    record_fault,
)
from git_fabro.errors import MissingObjectError, RecordError
from git_fabro.workflow.records import Record
from git_fabro.workflow.state import RunState

_MADE = frozenset({layout.RUN_JSON.encode(), layout.GRAPH.encode()})
_DOCUMENTS = frozenset({layout.RUN_JSON.encode(), layout.START_JSON.encode()})
#: What the fold is compared with needs no look of its own.
_FOLDED = layout.CHECKPOINT_JSON.encode()
#: Of lists and objects in a file, counted before it is parsed, which takes a second for these.
MOST_PARTS = 1_000_000
_HEX = re.compile(r"[0-9a-f]+\Z")
_JSON = (b".json", b".jsonl")
_COLLECTED = layout.collected_path("").encode()


class MetaFiles:
    """The files of one meta commit. What cannot be had is a fault, never an exception.

    ``sound`` are blobs that hold no secret, and whether they were looked at as JSON; it grows.
    """

    def __init__(
        self, facts: Facts, limits: Limits, tree: Oid, sound: set[tuple[Oid, bool]] | None = None
    ) -> None:
        self._facts = facts
        self._limits = limits
        self._tree = tree
        self._sound = set() if sound is None else sound
        self._root: Mapping[bytes, Named] | Fault | None = None

    def faults(self, before: Oid | None, run: str, *, is_import: bool) -> Iterator[Fault]:
        """What is wrong with the files that the commit before had not.

        Args:
            before: The tree of the commit before.
            run: Whose commit it is.
            is_import: The state is no fold, so that it is looked at as the other files are.
        """
        compared = Comparison.of(self._facts, self._limits)
        yield from compared.faults(before, self._tree)
        for added in compared.added:
            if added.path != _FOLDED or is_import:
                yield from self._file_faults(added)
        paths = {added.path for added in compared.added}
        for name in sorted(_DOCUMENTS):
            if name in paths:
                yield from self._document_faults(name.decode(), run)
            elif not self._has(name):
                yield Fault("tree", f"there is no {name.decode()}")
        if layout.START_JSON.encode() in paths:
            yield from self._base_faults(before, is_import=is_import)
        if _MADE & paths:
            yield from self._digest_faults()

    def records(self) -> tuple[Record, ...] | Fault:
        """The records that the commit adds."""
        data = self.file(layout.RECORDS)
        if isinstance(data, Fault):
            return data
        try:
            return codec.records_from(data)
        except RecordError as exc:
            return _as_fault(exc, Fault("records", plain(exc.message)))

    def state(self) -> RunState | Fault:
        """The state that the commit holds."""
        value = self.document(layout.CHECKPOINT_JSON)
        if isinstance(value, Fault):
            return value
        try:
            return codec.state_from_json(value)
        except RecordError as exc:
            return _as_fault(exc, Fault("fold", plain(exc.message)))

    def document(self, name: str) -> dict[str, Any] | Fault:
        """A JSON file of ours at the root: an object whose schema is known."""
        data = self.file(name)
        if isinstance(data, Fault):
            return data
        try:
            value = codec.parse_json(data, name)
            codec.check_schema(value, name)
        except RecordError as exc:
            return Fault("schema", plain(exc.message))
        found: dict[str, Any] = value
        return found

    def file(self, name: str) -> bytes | Fault:
        """A file at the root."""
        if self._root is None:
            self._root = self._read_root()
        if isinstance(self._root, Fault):
            return self._root
        entry = self._root.get(name.encode())
        if entry is None or entry.mode != FILE:
            return Fault("tree", f"there is no {name}")
        data = self._blob(name, entry.oid)
        if not isinstance(data, Fault) and data.count(b"{") + data.count(b"[") > MOST_PARTS:
            return Fault("size", f"{name}: more than {MOST_PARTS} lists and objects")
        return data

    def _has(self, name: bytes) -> bool:
        """Whether something of this name is at the root; a root that cannot be read is told of."""
        if self._root is None:
            self._root = self._read_root()
        return isinstance(self._root, Fault) or name in self._root

    def _read_root(self) -> Mapping[bytes, Named] | Fault:
        try:
            if self._facts.size(self._tree) > self._limits.record_bytes:
                return Fault("size", "the tree is too large to be read")
            found = entries(self._facts.tree(self._tree), len(self._tree) // 2)
            return {entry.name: entry for entry in found}
        except RecordError as exc:
            return Fault("tree", exc.message)

    def _blob(self, path: str, oid: Oid) -> bytes | Fault:
        try:
            size = self._facts.size(oid)
            if size > self._limits.record_bytes:
                most = self._limits.record_bytes
                return Fault("size", f"{path}: {size} bytes, more than {most}")
            return self._facts.blob(oid)
        except MissingObjectError:
            return Fault("tree", f"{path}: the object is missing: {oid[:12]}")
        except RecordError as exc:
            return Fault("tree", f"{path}: {plain(exc.message)}")

    def _file_faults(self, added: Added) -> Iterator[Fault]:
        path = plain(added.path)
        why = record_fault(added)
        if why:
            yield Fault("tree", f"{path}: {why}")
            return
        digest = added.path.removeprefix(_COLLECTED)
        kind = (added.oid, added.path.endswith(_JSON))
        if digest == added.path and kind in self._sound:
            return
        data = self._blob(path, added.oid)
        if isinstance(data, Fault):
            yield data
            return
        if self._limits.secrets != "none" and self._has_secret(added.path, data):
            yield Fault("secret", f"{path}: holds a secret")
        else:
            self._sound.add(kind)
        if digest != added.path and digest != hashlib.sha256(data).hexdigest().encode():
            yield Fault("digest", f"{path}: the content has another digest")

    def _has_secret(self, path: bytes, data: bytes) -> bool:
        if not has_secret(self._limits, data):
            return False
        if not path.endswith(_JSON) or data.count(b"{") + data.count(b"[") > MOST_PARTS:
            return True
        # Texts are masked before they become JSON, whose escapes can look like part of a token.
        try:
            lines = data.splitlines() if path.endswith(b".jsonl") else [data]
            values = [codec.parse_json(line, "") for line in lines]
        except RecordError:
            return True
        return any(self._limits.mask.json(value) != value for value in values)

    def _document_faults(self, name: str, run: str) -> Iterator[Fault]:
        value = self.document(name)
        if isinstance(value, Fault):
            yield value
        elif value.get("run_id") != run:
            yield Fault("id", f"{name} is of run {plain(str(value.get('run_id')))[:80]}")

    def _base_faults(self, before: Oid | None, *, is_import: bool) -> Iterator[Fault]:
        """Whether a run begins where the commit before says, and its forks with it."""
        value = self.document(layout.START_JSON)
        if isinstance(value, Fault):
            return
        base = value.get("base_sha")
        # Of what Fabro made it may be unknown where a run began, and of what goes on from there.
        is_unknown = base is None and (is_import or before is not None)
        if not is_unknown and not _is_object_name(base, self._tree):
            yield Fault("schema", f"{layout.START_JSON}: base_sha is no object name")
        elif before is not None and not is_import:
            earlier = MetaFiles(self._facts, self._limits, before).document(layout.START_JSON)
            if not isinstance(earlier, Fault) and earlier.get("base_sha") != base:
                yield Fault("schema", f"{layout.START_JSON}: base_sha is another than before")

    def _digest_faults(self) -> Iterator[Fault]:
        made = self.document(layout.RUN_JSON)
        source = self.file(layout.GRAPH)
        if isinstance(made, Fault) or isinstance(source, Fault) or "digest" not in made:
            return
        if made["digest"] != workflow_digest(source, made):
            yield Fault("digest", f"{layout.RUN_JSON} has not the digest of its workflow")


def workflow_digest(source: bytes, made: Mapping[str, Any]) -> str:
    """The digest of what run.json and graph.fabro hold; "" where they hold something else.

    Source: git-fabro-format(5), "Metadata tree".
    """
    settings, includes = made.get("settings"), made.get("includes", {})
    if not isinstance(settings, dict) or not isinstance(includes, dict):
        return ""
    settings = {key: value for key, value in settings.items() if key != "in_place"}
    agent = settings.get("agent", {})
    value = {
        "agent": (agent.get("command") if isinstance(agent, dict) else None) or [],
        "graph": source.decode("utf-8", "surrogateescape"),
        "includes": includes,
        "settings": settings,
    }
    return hashlib.sha256(codec.canonical(value)).hexdigest()


def _is_object_name(value: object, like: Oid) -> bool:
    """Whether a value is an object's name in the format of another one."""
    if not isinstance(value, str) or len(value) != len(like):
        return False
    return _HEX.match(value) is not None


def _as_fault(exc: RecordError, otherwise: Fault) -> Fault:
    # Only what a newer program wrote comes with a hint, absent objects aside.
    is_newer = exc.hint is not None and not isinstance(exc, MissingObjectError)
    return Fault("schema", plain(exc.message)) if is_newer else otherwise
