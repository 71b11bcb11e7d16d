"""Large values: out of the context into files of the run directory, and back."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable, Mapping

from git_fabro.checkpoint import codec, layout
from git_fabro.rundir import RunDirectory
from git_fabro.workflow.state import Json, RunState

_REFERENCE = re.compile(r"blob://sha256/(?P<digest>[0-9a-f]{64})(?P<json>#json)?\Z")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def digest_of(value: Json) -> str | None:
    """The digest in a reference to an offloaded value; None for any other value."""
    match = _REFERENCE.match(value) if isinstance(value, str) else None
    return match["digest"] if match else None


def referenced(state: RunState) -> frozenset[str]:
    """The digests of the values that a state's contexts refer to."""
    contexts: list[Mapping[str, Json]] = [state.initial_context, state.line.context_values]
    for branch in state.branches.values():
        contexts += [branch.line.context_values, branch.context]
    found = {digest_of(value) for context in contexts for value in context.values()}
    return frozenset(digest for digest in found if digest is not None)


class Blobs:
    """The offloaded values of a run: ``artifacts/<id>.json`` in its run directory.

    The id is the context key in safe letters; where another value that is still in use has it, the
    id ends in ``-`` and eight digits of the hash.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        self._names: dict[str, str] = {}  # digest -> id
        self._lock = threading.Lock()

    def offload(self, updates: Mapping[str, Json], *, keep: frozenset[str]) -> dict[str, Json]:
        """The updates with each value over the limit written to a file and replaced by its name.

        Args:
            updates: Context values by key.
            keep: Digests that are still referred to; their files are not overwritten.

        Raises:
            GitError: a file cannot be written.
        """
        return {key: self._offloaded(key, value, keep) for key, value in updates.items()}

    def _offloaded(self, key: str, value: Json, keep: frozenset[str]) -> Json:
        if not isinstance(value, (str, list, dict)):
            return value
        data = codec.canonical(value)
        if len(data) <= layout.OFFLOAD_BYTES:
            return value
        digest = hashlib.sha256(data).hexdigest()
        with self._lock:
            self._store(self._name(key, digest, keep), digest, data)
        return f"blob://sha256/{digest}" + ("" if isinstance(value, str) else "#json")

    def _name(self, key: str, digest: str, keep: frozenset[str]) -> str:
        name = _UNSAFE.sub("_", key)[:100].strip(".") or "value"
        taken = {other: known for known, other in self._names.items()}.get(name)
        if taken is not None and taken != digest and taken in keep:
            return f"{name}-{digest[:8]}"
        return name

    def _store(self, name: str, digest: str, data: bytes) -> None:
        self._directory.write(f"artifacts/{name}.json", data)
        self._names = {d: n for d, n in self._names.items() if n != name} | {digest: name}

    def restore(self, files: Mapping[str, bytes]) -> None:
        """Brings back the files that a meta commit holds: ``{"survey.table": b"..."}``."""
        for name, data in files.items():
            self._store(name, hashlib.sha256(data).hexdigest(), data)

    def load(self, digest: str) -> bytes | None:
        """The bytes of an offloaded value; None if its file is gone or no longer fits."""
        name = self._names.get(digest)
        if name is None:
            return None
        data = self._directory.read(f"artifacts/{name}.json")
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def resolve(self, value: Json) -> Json:
        """The value where a reference to it stands; a reference without its file stays."""
        digest = digest_of(value)
        data = self.load(digest) if digest is not None else None
        if data is None:
            return value
        found: Json = codec.parse_json(data, "artifact")
        return found

    def files(self, digests: Iterable[str]) -> dict[str, tuple[str, bytes]]:
        """Id and bytes of some values by digest, for the metadata tree; gone ones are left out."""
        found: dict[str, tuple[str, bytes]] = {}
        for digest in digests:
            data = self.load(digest)
            if data is not None:
                found[digest] = (self._names[digest], data)
        return found

    def name_of(self, value: Json) -> str | None:
        """The file name of an offloaded value below ``FABRO_ARTIFACTS``; None for any other."""
        digest = digest_of(value)
        name = self._names.get(digest) if digest is not None else None
        return f"{name}.json" if name is not None else None
