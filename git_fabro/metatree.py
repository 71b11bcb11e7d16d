"""The tree of a meta commit, kept between checkpoints: only what changed is written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import Oid, TreeEntry
from git_fabro.git.encoding import object_name
from git_fabro.git.objects import Objects
from git_fabro.workflow.records import Record

_FILE, _FOLDER = 0o100644, 0o40000


class MetaTree:
    """What the next meta commit holds, by path.

    ``fixed`` are the files that a run never changes; ``nodes`` the folders of traces by node.
    """

    def __init__(self, objects: Objects, entries: Mapping[bytes, TreeEntry]) -> None:
        self._objects = objects
        self._fixed = {
            name: entry
            for name, entry in entries.items()
            if name.decode("utf-8", "replace")
            not in (layout.NODES, layout.ARTIFACTS, layout.CHECKPOINT_JSON, layout.RECORDS)
        }
        self._nodes = self._folder(entries, layout.NODES)
        #: The files in them, as far as they were written here; they are reached, so they stay.
        self._written: dict[str, dict[str, TreeEntry]] = {}
        #: What holds them; None after a visit that it does not know.
        self._nodes_tree: Oid | None = None
        self._stored = self._folder(entries, layout.ARTIFACTS)
        self._collected = {
            name: entry for name, entry in self._stored.items() if entry.mode == _FOLDER
        }
        self._artifacts: dict[str, Oid] = {}  # digest -> blob

    @classmethod
    def new(cls, objects: Objects, files: Mapping[str, bytes]) -> MetaTree:
        """A tree that begins with these files: run.json, start.json, graph.fabro."""
        return cls(
            objects,
            {
                name.encode(): TreeEntry(_FILE, objects.write_blob(data))
                for name, data in files.items()
            },
        )

    @classmethod
    def load(cls, objects: Objects, tree: Oid) -> MetaTree:
        """The tree of a meta commit that exists.

        Raises:
            MissingObjectError: an object of it is absent.
        """
        return cls(objects, objects.read_tree(tree))

    def _folder(self, entries: Mapping[bytes, TreeEntry], name: str) -> dict[bytes, TreeEntry]:
        entry = entries.get(name.encode())
        return dict(self._objects.read_tree(entry.oid)) if entry is not None else {}

    def artifacts(self) -> dict[str, bytes]:
        """The offloaded values that the tree began with, by id."""
        return {
            name.decode().removesuffix(".json"): self._objects.read_blob(entry.oid)
            for name, entry in self._stored.items()
            if entry.mode == _FILE and name.endswith(b".json")
        }

    def set_file(self, name: str, data: bytes) -> None:
        self._fixed[name.encode()] = TreeEntry(_FILE, self._objects.write_blob(data))

    def set_trace(self, node: str, files: Mapping[str, bytes]) -> None:
        """The latest visit's files of a node, in place of all former ones."""
        self._nodes.pop(node.encode(), None)
        self._nodes_tree = None
        former = self._written.pop(node, {})
        if files:
            entries = {name: self._trace(name, data, former) for name, data in files.items()}
            self._written[node] = entries
            # A visit leaves something of its own nearly always: how long it took, what it said.
            folder = self._objects.write_new_tree(
                {name.encode(): entry for name, entry in entries.items()}
            )
            self._nodes[node.encode()] = TreeEntry(_FOLDER, folder)

    def _trace(self, name: str, data: bytes, former: Mapping[str, TreeEntry]) -> TreeEntry:
        """One file of a trace: the one of the visit before, where that was the same."""
        known = former.get(name)
        if known is not None and known.oid == self._name(data):
            return known
        # What was said is new nearly always; how long it took is a number that comes again.
        is_said = name.endswith((".log", ".md", ".patch"))
        write = self._objects.write_new_blob if is_said else self._objects.write_blob
        return TreeEntry(_FILE, write(data))

    def _name(self, data: bytes) -> Oid:
        return object_name("blob", data, self._objects.object_format)

    def write(
        self,
        checkpoint: bytes,
        records: Sequence[Record],
        artifacts: Mapping[str, tuple[str, bytes]],
    ) -> Oid:
        """Writes the tree of one meta commit.

        Args:
            checkpoint: checkpoint.json: the fold of all records up to the last of these.
            records: Those since the former meta commit.
            artifacts: Offloaded values in use, by digest: id and bytes.
        """
        entries = dict(self._fixed)
        lines = b"".join(codec.record_line(record) for record in records)
        for name, data in ((layout.CHECKPOINT_JSON, checkpoint), (layout.RECORDS, lines)):
            entries[name.encode()] = TreeEntry(_FILE, self._objects.write_new_blob(data))
        if self._nodes:
            entries[layout.NODES.encode()] = TreeEntry(_FOLDER, self._traces())
        kept = self._kept(artifacts)
        if kept:
            entries[layout.ARTIFACTS.encode()] = TreeEntry(_FOLDER, self._objects.write_tree(kept))
        return self._objects.write_new_tree(entries)

    def _traces(self) -> Oid:
        """The tree of all nodes' traces: a new one after a visit, else the one that was."""
        if self._nodes_tree is None:
            self._nodes_tree = self._objects.write_new_tree(self._nodes)
            return self._nodes_tree
        return self._objects.write_tree(self._nodes)

    def _kept(self, artifacts: Mapping[str, tuple[str, bytes]]) -> dict[bytes, TreeEntry]:
        kept = dict(self._collected)
        for digest, (name, data) in artifacts.items():
            oid = self._artifacts.get(digest) or self._objects.write_blob(data)
            self._artifacts[digest] = oid
            kept[f"{name}.json".encode()] = TreeEntry(_FILE, oid)
        return kept
