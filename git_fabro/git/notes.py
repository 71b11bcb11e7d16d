"""Notes on commits, in git's own form: any fan-out is read, git's is written.

Only the trees on the way to a note are opened and written, so that one more note among 20,000 costs
what one among twenty does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping

from git_fabro.checkpoint.layout import NOTES_REF
from git_fabro.checkpoint.model import Commit, Identity, Move, Oid, TreeEntry, zero
from git_fabro.errors import StaleRefError
from git_fabro.git.encoding import FILE_MODE, TREE_MODE
from git_fabro.git.objects import Objects
from git_fabro.git.refs import Refs

#: How long a lock on the notes is waited for: they can be made again, and a left-over lock of a
#: dead process must not hold up every checkpoint.
PATIENCE_S = 0.2
#: How often a write begins again because another writer was faster.
TRIES = 20

_MESSAGE = "Notes added by 'git fabro'\n"
_HEX = "0123456789abcdef"
_DIGITS = frozenset(_HEX.encode())


def read_note(objects: Objects, refs: Refs, oid: Oid, *, ref: str = NOTES_REF) -> str | None:
    """The note on an object, None if it has none; several, in trees of mixed depth, are joined."""
    tip = refs.read(ref)
    if tip is None:
        return None
    tree = _NotesTree(objects, objects.tree_of(tip))
    texts = [objects.read_blob(note).decode(errors="replace") for note in tree.find(oid)]
    # As git joins them. Source: notes.c, combine_notes_concatenate
    return "\n".join(texts) if texts else None


def all_notes(objects: Objects, refs: Refs, *, ref: str = NOTES_REF) -> dict[Oid, Oid]:
    """Every object that has a note, and the blob that is its note."""
    tip = refs.read(ref)
    return {} if tip is None else notes_at(objects, tip)


def notes_at(objects: Objects, tip: Oid) -> dict[Oid, Oid]:
    """The same, of a commit of notes that need not be on a ref."""
    return dict(_NotesTree(objects, objects.tree_of(tip)).every())


def write_notes(
    objects: Objects,
    refs: Refs,
    notes: Mapping[Oid, str | None],
    *,
    by: Identity,
    when: int,
    ref: str = NOTES_REF,
    patience_s: float = PATIENCE_S,
) -> Oid | None:
    """Set the notes of these objects, whatever they were; the commit that the ref is at then.

    Args:
        objects: Where to write.
        refs: The ref is moved here, by compare-and-swap.
        notes: ``{commit: "text"}``; None removes a note.
        by: Author and committer.
        when: Seconds since the epoch.
        ref: Which notes.
        patience_s: How long a lock of another process is waited for.

    Raises:
        BusyError: the lock was held for longer than that.
        StaleRefError: other writers were faster TRIES times in a row.
    """
    began = objects.turn
    blobs = {oid: None if text is None else _blob(objects, text) for oid, text in notes.items()}
    for attempt in range(TRIES):
        tip = refs.read(ref)
        before = None if tip is None else objects.tree_of(tip)
        tree = _NotesTree(objects, before).changed(blobs)
        if tree == before or (tip is None and not any(blobs.values())):
            return tip
        commit = Commit(
            tree=tree,
            parents=() if tip is None else (tip,),
            author=by,
            committer=by,
            when=when,
            message=_MESSAGE,
        )
        new = objects.write_commit(commit)
        try:
            refs.move([Move(ref, tip or zero(new), new)], "fabro", patience_s=patience_s)
        except StaleRefError:
            if attempt + 1 == TRIES:
                raise
            time.sleep(random.uniform(0, 0.01 * (attempt + 1)))
        else:
            # A clean-up may have listed what is reachable before this did. traps: OB11
            objects.bring_back(since=began)
            return new
    return None


def carried(
    objects: Objects,
    ours: Oid,
    theirs: Oid | None,
    named: Iterable[Oid],
    *,
    by: Identity,
    when: int,
) -> Oid | None:
    """A commit on top of their notes with our notes on some objects; None: they have all of it.

    Args:
        objects: Where to read and write; no ref moves.
        ours: Our notes.
        theirs: Theirs; None: there are none yet.
        named: Whose notes are carried over; those without one are passed over.
        by: Author and committer.
        when: Seconds since the epoch.
    """
    tree = _NotesTree(objects, objects.tree_of(ours))
    blobs = {oid: found[0] for oid in named if (found := tree.find(oid))}
    before = None if theirs is None else objects.tree_of(theirs)
    after = _NotesTree(objects, before).changed(blobs)
    if after == before or not blobs:
        return None
    return objects.write_commit(
        Commit(
            tree=after,
            parents=() if theirs is None else (theirs,),
            author=by,
            committer=by,
            when=when,
            message=_MESSAGE,
        )
    )


def _blob(objects: Objects, text: str) -> Oid:
    # Not asked for in the packs, which would cost a hook 30 ms: a note names a commit that is new.
    return objects.write_new_blob((text.rstrip("\n") + "\n").encode(errors="replace"))


class _Part:
    """Notes below one prefix: those that are known, and folders not looked into yet."""

    __slots__ = ("folders", "notes", "others")

    def __init__(self) -> None:
        self.notes: dict[str, list[Oid]] = {}  # full names
        self.folders: dict[str, Oid] = {}  # by the whole prefix, "ab", "abcd"
        self.others: dict[bytes, TreeEntry] = {}  # by path, no notes at all


class _NotesTree:
    """A notes tree, opened folder by folder as far as names ask for."""

    def __init__(self, objects: Objects, root: Oid | None) -> None:
        self._objects = objects
        self._length = 40 if objects.object_format == "sha1" else 64
        self._part = _Part()
        if root is not None:
            self._open("", root)

    def find(self, oid: Oid) -> list[Oid]:
        """The blobs of an object's notes; more than one where depths are mixed."""
        self._open_towards(oid)
        return self._part.notes.get(oid, [])

    def every(self) -> Iterator[tuple[Oid, Oid]]:
        while self._part.folders:
            prefix, oid = self._part.folders.popitem()
            self._open(prefix, oid)
        for name, blobs in sorted(self._part.notes.items()):
            yield Oid(name), blobs[0]

    def changed(self, blobs: Mapping[Oid, Oid | None]) -> Oid:
        """Store the tree with these notes set, or removed."""
        for oid, blob in blobs.items():
            self._open_towards(oid)
            self._part.notes.pop(oid, None)
            if blob is not None:
                self._part.notes[oid] = [blob]
        entries = self._part.others | dict(self._entries("", "", *self._sides("")))
        return _write(self._objects, entries)

    def _open_towards(self, name: str) -> None:
        for length in range(2, self._length, 2):
            folder = self._part.folders.pop(name[:length], None)
            if folder is not None:
                self._open(name[:length], folder)

    def _open(self, prefix: str, oid: Oid) -> None:
        folder = b"".join(prefix[at : at + 2].encode() + b"/" for at in range(0, len(prefix), 2))
        rest = self._length - len(prefix)
        for name, entry in self._objects.read_tree(oid).items():
            is_hex = set(name) <= _DIGITS
            if is_hex and entry.mode == TREE_MODE and len(name) == 2:
                self._part.folders[prefix + name.decode()] = entry.oid
            elif is_hex and entry.mode != TREE_MODE and len(name) == rest:
                self._part.notes.setdefault(prefix + name.decode(), []).append(entry.oid)
            else:
                self._part.others[folder + name] = entry

    def _sides(self, prefix: str) -> tuple[list[str], list[str]]:
        """Names of notes, and of folders not looked into, that begin so."""
        return (
            [name for name in self._part.notes if name.startswith(prefix)],
            [name for name in self._part.folders if name.startswith(prefix)],
        )

    def _entries(
        self, prefix: str, path: str, notes: list[str], folders: list[str]
    ) -> Iterator[tuple[bytes, TreeEntry]]:
        """Paths of notes below a prefix, whose folder is path, in the depth that git chooses.

        A folder that is not looked into counts as plenty, as in git, which does not open it either.
        Source: notes.c, determine_fanout, for_each_note_helper
        """
        if self._is_plenty(prefix, notes, folders):
            for pair, (mine, closed) in _grouped(len(prefix), notes, folders).items():
                below = prefix + pair
                if closed == [below] and not mine:
                    yield (path + pair).encode(), TreeEntry(TREE_MODE, self._part.folders[below])
                else:
                    yield from self._entries(below, f"{path}{pair}/", mine, closed)
            return
        if folders:
            for name in folders:
                self._open(name, self._part.folders.pop(name))
            yield from self._entries(prefix, path, *self._sides(prefix))
            return
        for name in notes:
            rest = name[len(prefix) :]
            yield (path + rest).encode(), TreeEntry(FILE_MODE, self._joined(name))

    def _is_plenty(self, prefix: str, notes: list[str], folders: list[str]) -> bool:
        at = len(prefix)
        counts = dict.fromkeys(_HEX, 0)
        for name in notes:
            counts[name[at]] += 1
        for name in folders:
            counts[name[at]] += 2
        return all(count >= 2 for count in counts.values())

    def _joined(self, name: str) -> Oid:
        blobs = self._part.notes[name]
        if len(blobs) == 1:
            return blobs[0]
        texts = [self._objects.read_blob(blob) for blob in blobs]
        return self._objects.write_blob(b"\n".join(texts))


def _grouped(
    at: int, notes: list[str], folders: list[str]
) -> dict[str, tuple[list[str], list[str]]]:
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for which, names in enumerate((notes, folders)):
        for name in names:
            groups.setdefault(name[at : at + 2], ([], []))[which].append(name)
    return groups


def _write(objects: Objects, entries: Mapping[bytes, TreeEntry]) -> Oid:
    here: dict[bytes, TreeEntry] = {}
    below: dict[bytes, dict[bytes, TreeEntry]] = {}
    for path, entry in entries.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(name, {})[rest] = entry
        else:
            here[name] = entry
    for name, inside in below.items():
        here[name] = TreeEntry(TREE_MODE, _write(objects, inside))
    return objects.write_new_tree(here)
