"""Reading refs, and moving several in one transaction. What a ref means is ``layout.py``'s."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from git_fabro.checkpoint.model import Move, Oid, parse_oid, zero
from git_fabro.errors import BusyError, GitError, MissingObjectError, RecordError, StaleRefError
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Objects
from git_fabro.git.transaction import LockFiles, UpdateRef, packed_refs_data

#: How long locks of other processes are waited for before a move gives up.
PATIENCE_S = 5.0

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.25
# Without a lock in sight a refusal is no matter of waiting; the lock may just have gone, though.
_TRIES_WITHOUT_A_LOCK = 5
_SYMBOLIC_DEPTH = 5
_PER_WORK_TREE = ("refs/bisect/", "refs/rewritten/", "refs/worktree/")


class Refs:
    """The refs of one repository.

    With a git program a ``git update-ref --stdin`` is kept open between moves: ``close`` (or the
    end of the with block) ends it. Not for use by two threads at once.
    """

    def __init__(
        self, repo: Repository, objects: Objects, *, patience_s: float = PATIENCE_S
    ) -> None:
        self._patience_s = patience_s
        self._repo = repo
        self._objects = objects
        self._files = repo.ref_storage == "files"
        if repo.git is not None:
            self._writer: UpdateRef | LockFiles = UpdateRef(repo.git, repo.common_dir)
        else:
            self._writer = LockFiles(repo.common_dir)

    def __enter__(self) -> Refs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that is kept open; the next move starts another one."""
        self._writer.close()

    def read(self, ref: str) -> Oid | None:
        """The object that a ref names now, None where there is no such ref.

        Raises:
            RecordError: the ref's file is damaged.
        """
        if not self._files:
            return dict(self._ask_git(ref)).get(ref)
        for _ in range(_SYMBOLIC_DEPTH):
            text = self._loose(ref)
            if text is None:
                return self._packed(ref)
            if not text.startswith(b"ref:"):
                return _parse(text, ref)
            ref = os.fsdecode(text.removeprefix(b"ref:").strip())
        raise RecordError(f"too many symbolic refs: {ref}")

    def list(self, prefix: str) -> dict[str, Oid]:
        """All refs whose names begin so, by name: ``list("refs/heads/fabro/run/")``."""
        if not self._files:
            return dict(self._ask_git(prefix))
        found = self._packed_list(prefix)
        for name in self._loose_names(prefix):
            try:
                oid = self.read(name)
            except RecordError:
                # A file that is no ref, as git for-each-ref skips one.
                continue
            if oid is not None:
                found[name] = oid
        return dict(sorted(found.items()))

    def move(self, moves: Sequence[Move], message: str, *, patience_s: float | None = None) -> None:
        """Move all of these refs, in this order, or none.

        Args:
            moves: Old value on every one; equal values verify, a zero id creates or deletes.
            message: For git's reflog. Use few different ones: git takes one per process, and a
                handful of processes are kept open.
            patience_s: How long locks of others are waited for; None as long as always.

        Raises:
            StaleRefError: a ref holds neither its old nor its new value; nothing was moved.
            BusyError: other processes held a lock for longer than we wait; nothing was moved.
            MissingObjectError: an object to be named is absent; nothing was moved.
            GitError: git refused for another reason.
        """
        self._check_objects(moves)
        deadline = time.monotonic() + (self._patience_s if patience_s is None else patience_s)
        pause_s, tries = _FIRST_PAUSE_S, 0
        while (refusal := self._writer.move(moves, message)) is not None:
            if self._already_moved(moves):
                return
            locked = self._locked(moves)
            tries += not locked
            if tries >= _TRIES_WITHOUT_A_LOCK:
                raise refusal
            if locked and time.monotonic() > deadline:
                raise BusyError(
                    f"another process holds {locked[0]}", hint="git fabro doctor"
                ) from refusal
            # Git refuses also where a clean-up took the commit since we looked. traps: OB11
            self._objects.bring_back()
            # Imported here: 2 ms that those do not pay who never wait.
            import random

            time.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _check_objects(self, moves: Sequence[Move]) -> None:
        for move in moves:
            if move.new not in (move.old, zero(move.new)) and not self._objects.exists(move.new):
                raise MissingObjectError(f"{move.ref} cannot name a missing object: {move.new}")

    def _already_moved(self, moves: Sequence[Move]) -> bool:
        # What happened is read from the refs, never from what git said about it.
        holds = [self.read(move.ref) or zero(move.old) for move in moves]
        if all(held == move.new for held, move in zip(holds, moves, strict=True)):
            return True
        for held, move in zip(holds, moves, strict=True):
            if held != move.old:
                raise StaleRefError(
                    f"{move.ref} is at {_shown(held)}, not at {_shown(move.old)}",
                    hint=f"git for-each-ref {move.ref}",
                )
        return False

    def _locked(self, moves: Sequence[Move]) -> Sequence[str]:
        names = [*(f"{move.ref}.lock" for move in moves), "packed-refs.lock", "HEAD.lock"]
        folders = (self._repo.common_dir, self._repo.git_dir)
        if not self._files:
            names = ["reftable/tables.list.lock"]
        return [name for name in names if any((folder / name).exists() for folder in folders)]

    def _folder(self, ref: str) -> Path:
        shared = ref.startswith("refs/") and not ref.startswith(_PER_WORK_TREE)
        return self._repo.common_dir if shared else self._repo.git_dir

    def _loose(self, ref: str) -> bytes | None:
        try:
            return (self._folder(ref) / ref).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None
        except OSError as exc:
            raise GitError(f"cannot read {ref}: {exc.strerror}") from exc

    def _packed(self, ref: str) -> Oid | None:
        # One search over the bytes, not a parse of all lines. traps: RF7
        data = packed_refs_data(self._repo.common_dir)
        # A ref may be packed, and its file removed, between the two looks.
        loose = self._loose(ref)
        if loose is not None:
            return _parse(loose, ref)
        end = data.find(b" " + os.fsencode(ref) + b"\n")
        return None if end < 0 else _parse(data[data.rfind(b"\n", 0, end) + 1 : end], ref)

    def _packed_list(self, prefix: str) -> dict[str, Oid]:
        begin = os.fsencode(prefix)
        lines = packed_refs_data(self._repo.common_dir).split(b"\n")
        found = [line.partition(b" ") for line in lines if begin in line]
        return {
            os.fsdecode(name): Oid(oid.decode("ascii"))
            for oid, _, name in found
            if name.startswith(begin)
        }

    def _loose_names(self, prefix: str) -> Iterator[str]:
        start = self._folder(prefix) / prefix
        top = start if prefix.endswith("/") else start.parent
        for folder, _, files in os.walk(top):
            for file in files:
                name = str((Path(folder) / file).relative_to(self._folder(prefix)))
                if name.startswith(prefix) and not name.endswith(".lock"):
                    yield name

    def _ask_git(self, prefix: str) -> Iterable[tuple[str, Oid]]:
        if self._repo.git is None:
            raise GitError(
                f"refs are stored as {self._repo.ref_storage}, which needs the git program"
            )
        folder = prefix[: prefix.rfind("/") + 1]
        args = ["for-each-ref", "--format=%(objectname) %(refname)", f"{folder}**"]
        shown = os.fsdecode(self._repo.git.run(args, git_dir=self._repo.git_dir))
        for line in shown.splitlines():
            oid, _, name = line.partition(" ")
            if name.startswith(prefix):
                yield name, parse_oid(oid)


def _parse(text: bytes, ref: str) -> Oid:
    try:
        return parse_oid(text.strip().decode("ascii"))
    except (RecordError, UnicodeDecodeError) as exc:
        raise RecordError(f"ref is damaged: {ref}", hint="git fsck") from exc


def _shown(oid: Oid) -> str:
    return "no commit" if oid == zero(oid) else oid[:12]
