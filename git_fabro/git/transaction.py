"""One transaction over several refs: by a git process kept open, or by lock files of our own.

Neither decides what a failure means: they say that nothing is known to have moved, and the caller
reads the refs.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from git_fabro.checkpoint.model import Move, zero
from git_fabro.errors import GitError
from git_fabro.git.program import Finished, Git, failure

_ARGS = ("update-ref", "--no-deref", "--stdin")
_MOST_CHILDREN = 4
#: How long a child is waited for once its input has ended.
_FAREWELL_S = 1.0


class UpdateRef:
    """``git update-ref --stdin``, kept open from one transaction to the next.

    Source: git-update-ref(1); several transactions in one session since git 2.31.
    """

    def __init__(self, git: Git, git_dir: Path) -> None:
        self._git = git
        self._git_dir = git_dir
        # By message, which git takes once for a whole session; the one used last is at the end.
        self._children: dict[str, _Child] = {}

    def move(self, moves: Sequence[Move], message: str) -> GitError | None:
        """None if git says that all is done, else why it is not known to be."""
        child = self._children.pop(message, None)
        if child is not None and not child.serves():
            child.end()
            child = None
        if child is None:
            child = _Child(self._git, self._git_dir, message)
        if not child.commit(_lines(moves)):
            return child.end()
        self._children[message] = child
        if len(self._children) > _MOST_CHILDREN:
            self._children.pop(next(iter(self._children))).end()
        return None

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        while self._children:
            self._children.popitem()[1].end()


def _lines(moves: Sequence[Move]) -> Iterator[str]:
    for move in moves:
        if move.old == move.new:
            yield f"verify {move.ref} {move.old}"
        elif move.old == zero(move.old):
            yield f"create {move.ref} {move.new}"
        elif move.new == zero(move.new):
            yield f"delete {move.ref} {move.old}"
        else:
            yield f"update {move.ref} {move.new} {move.old}"


def _nameless() -> BinaryIO:
    """A file that no folder names: for what git says, of which it may be more than a pipe holds."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("git-update-ref"), "w+b")
    # Imported here: 7 ms that Linux need not pay.
    import tempfile

    return tempfile.TemporaryFile()


class _Child:
    def __init__(self, git: Git, git_dir: Path, message: str) -> None:
        self._owner = os.getpid()
        self._errors = _nameless()
        self._args = [_ARGS[0], "-m", message or "fabro", *_ARGS[1:]]
        try:
            self._process = subprocess.Popen(
                git.argv(self._args),
                env=git.environment(git_dir=git_dir),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                # A Ctrl-C at the terminal must not end it in mid transaction.
                start_new_session=True,
            )
        except OSError as exc:
            self._errors.close()
            raise GitError(f"git update-ref failed: {exc}", argv=("git", *_ARGS)) from exc

    def serves(self) -> bool:
        """Whether it can take one more transaction: ours (not a forked parent's), and alive."""
        return self._owner == os.getpid() and self._process.poll() is None

    def commit(self, lines: Iterable[str]) -> bool:
        """Whether git acknowledged the whole transaction."""
        asked = "\n".join(("start", *lines, "prepare", "commit", "")).encode()
        to, back = _pipes(self._process)
        try:
            to.write(asked)
            to.flush()
            return [back.readline() for _ in range(3)] == [
                b"start: ok\n",
                b"prepare: ok\n",
                b"commit: ok\n",
            ]
        except (OSError, ValueError):
            # It died, or the collector of cycles closed the pipes before us.
            return False

    def end(self) -> GitError:
        """Close it and wait for it; what it had to say."""
        to, back = _pipes(self._process)
        # The child may be gone already, or belong to the process that we were forked from.
        with contextlib.suppress(BrokenPipeError):
            to.close()
        if self._owner != os.getpid():
            self._process.returncode = 0
        try:
            status = self._process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            # A process that was forked from ours holds the pipe open, so it never sees its end. No
            # transaction is open in it.
            self._process.kill()
            status = self._process.wait()
        back.close()
        return failure(self._args, Finished(status, b"", self._said()))

    def _said(self) -> str:
        if self._errors.closed:
            # In a cycle of garbage the file may be finalized before its owner is.
            return ""
        self._errors.seek(0)
        stderr = self._errors.read().decode(errors="replace")
        self._errors.close()
        return stderr


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise GitError("git update-ref has no pipes")
    return process.stdin, process.stdout


class LockFiles:
    """The same without a git program: all locks, all checks, then all writes.

    Source: refs/files-backend.c; the lock of a ref is the file ``<ref>.lock``, made exclusively.
    No reflog is written: none is ever read by git-fabro.
    """

    def __init__(self, common_dir: Path) -> None:
        self._dir = common_dir

    def close(self) -> None:
        """Nothing is kept open."""

    def move(self, moves: Sequence[Move], message: str) -> GitError | None:
        """None if all is done, else why nothing (or, on a failing disk, not all) is."""
        del message
        # Names of locks that are held; one that was renamed into place is no longer ours to remove.
        locks: dict[str, Path] = {}
        try:
            for ref in (*(move.ref for move in moves), *_also(moves)):
                locks[ref] = self._lock(ref)
            refusal = next(filter(None, map(self._objection, moves)), None)
            if refusal is None:
                self._write(moves, locks)
        except OSError as exc:
            return GitError(f"cannot move {moves[0].ref}: {exc.strerror}: {exc.filename}")
        finally:
            for lock in locks.values():
                lock.unlink(missing_ok=True)
        return None if refusal is None else GitError(refusal)

    def _lock(self, ref: str) -> Path:
        path = self._dir / f"{ref}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        return path

    def _objection(self, move: Move) -> str | None:
        packed = {os.fsdecode(name): oid for name, oid in packed_refs(self._dir)}
        path = self._dir / move.ref
        held: bytes | None = None
        if path.is_file():
            held = path.read_bytes().strip()
        held = held or packed.get(move.ref)
        if (held or zero(move.old).encode()) != move.old.encode():
            return f"{move.ref} does not hold {move.old}"
        if move.old == zero(move.old) and move.new != move.old:
            return self._conflict(move.ref, packed)
        return None

    def _conflict(self, ref: str, packed: Iterable[str]) -> str | None:
        # A packed ref blocks a folder of its name, and the reverse. traps: RF6
        above = {str(parent) for parent in Path(ref).parents}
        clash = [name for name in packed if name in above or name.startswith(ref + "/")]
        below = self._dir / ref
        clash += [str(file.relative_to(self._dir)) for file in below.rglob("*") if file.is_file()]
        return f"cannot create {ref} beside {clash[0]}" if clash else None

    def _write(self, moves: Sequence[Move], locks: dict[str, Path]) -> None:
        gone = {move.ref for move in moves if _deletes(move)}
        for move in moves:
            if move.ref not in gone and move.new != move.old:
                _clear_folders(self._dir / move.ref)
                _put(locks.pop(move.ref), self._dir / move.ref, [move.new.encode() + b"\n"])
        if gone and (self._dir / "packed-refs").exists():
            kept = _without((self._dir / "packed-refs").read_bytes(), gone)
            _put(locks.pop("packed-refs"), self._dir / "packed-refs", kept)
        for ref in gone:
            (self._dir / ref).unlink(missing_ok=True)
            locks.pop(ref).unlink(missing_ok=True)
            _remove_empty(self._dir / ref, self._dir)


def _deletes(move: Move) -> bool:
    return move.new == zero(move.new) != move.old


def _also(moves: Sequence[Move]) -> tuple[str, ...]:
    return ("packed-refs",) if any(map(_deletes, moves)) else ()


def _put(lock: Path, path: Path, lines: Iterable[bytes]) -> None:
    with open(lock, "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    os.rename(lock, path)


def _clear_folders(path: Path) -> None:
    # Only empty folders are left below the name, or the transaction had been refused.
    if path.is_dir():
        for folder, _, _ in os.walk(path, topdown=False):
            os.rmdir(folder)


def _without(data: bytes, gone: set[str]) -> Iterator[bytes]:
    drop = False
    for line in data.splitlines(keepends=True):
        # A line that begins with ^ belongs to the ref before it.
        if not line.startswith(b"^"):
            drop = os.fsdecode(line.rstrip(b"\n").partition(b" ")[2]) in gone
        if not drop:
            yield line


def _remove_empty(path: Path, top: Path) -> None:
    # Not refs/heads and its like: git expects them.
    for folder in path.parents:
        if len(folder.relative_to(top).parts) <= 2:
            return
        try:
            folder.rmdir()
        except OSError:
            return


def packed_refs(common_dir: Path) -> Iterator[tuple[bytes, bytes]]:
    """Name and object of each packed ref. Source: gitrepository-layout(5), packed-refs."""
    for line in packed_refs_data(common_dir).splitlines():
        if not line.startswith((b"#", b"^")):
            oid, _, name = line.partition(b" ")
            yield name, oid


def packed_refs_data(common_dir: Path) -> bytes:
    """What packed-refs holds, one ref a line; b"" where it is not there."""
    try:
        return (common_dir / "packed-refs").read_bytes()
    except FileNotFoundError:
        return b""
