"""Packing a run's loose objects: one pack, then exactly those loose files go. Never the user's gc.

The order makes it safe to die anywhere and to meet anybody: the pack is whole, checked and synced
before the first loose file goes, and only files go whose object the pack's own index names. So it
needs no lock beside a driver, a ``git gc --prune=now`` or another packing; two at once make at most
an object twice, and a kill leaves loose files that the pack holds as well, or a ``tmp_pack_*``,
which git's gc sweeps. What only a journal names is not reached, and stays loose.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.errors import FabroError, GitError
from git_fabro.git.discover import Repository, open_repository
from git_fabro.git.memory import is_gc_at_work
from git_fabro.git.program import Git

#: Fewer objects stay loose. ``git gc --auto`` comes at 6,700 loose objects or at 50 packs, so that
#: a smaller pack would bring the user's own gc nearer instead of keeping it away.
LEAST_OBJECTS = 6700 // 50
#: From how many packed objects on git also writes a commit-graph: about a thousand checkpoints, of
#: which a walk is four times as fast then. Where there is none yet, it takes in the user's history.
GRAPH_OBJECTS = 5000

# Synced whatever core.fsync says, as loose files go for it; one thread, as nodes want the others.
_SETTINGS = ("core.fsync=pack,pack-metadata,commit-graph", "pack.threads=1")
_NICE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What a packing did: how many packs it made, how many loose files are gone for them.

    ``has_graph`` says whether git wrote a commit-graph, or was free not to (``core.commitGraph``).
    """

    packs: int = 0
    objects: int = 0
    has_graph: bool = False


def pack_loose(
    repo: Repository,
    tips: Sequence[str],
    *,
    base: Oid | None,
    least: int = LEAST_OBJECTS,
    graph: int = GRAPH_OBJECTS,
) -> Packed:
    """Packs the loose objects that these refs reach and base does not.

    Objects of an alternate, and those of a promisor remote, are neither packed nor removed. While a
    ``git gc`` is at work nothing is done: it packs these objects itself.

    Args:
        repo: The repository.
        tips: Refs; each stands for itself and for all below it, where there are any.
        base: What the user's own history holds stays as it is.
        least: With fewer loose objects than this nothing is done.
        graph: From how many objects on a commit-graph of the tips is written too.

    Raises:
        GitError: git refuses; no object is lost.
    """
    if repo.git is None or is_gc_at_work(repo.common_dir):
        return Packed()
    git = repo.git.with_settings(*_SETTINGS)
    wanted = git.run(("for-each-ref", "--format=%(objectname)", *tips), git_dir=repo.common_dir)
    loose = _loose(repo, git, wanted, base)
    if len(loose) < least:
        return Packed()
    prefix = repo.objects_dir / "pack" / "pack"
    printed = git.run(
        # What is in a pack already, of an alternate too, stays out of this one; its file stays.
        ("pack-objects", "--incremental", "--non-empty", "-q", str(prefix)),
        git_dir=repo.common_dir,
        input=b"".join(loose.values()),
    )
    indexes = [f"{prefix}-{name}.idx" for name in printed.decode().split()]
    if not indexes:
        return Packed()
    git.run(("verify-pack", *indexes), git_dir=repo.common_dir)
    try:
        # Git itself syncs what is in a pack, not the folder that names it.
        _sync(prefix.parent)
        found = [name for index in indexes for name in _names(repo, git, index)]
        gone = sum(_is_removed(_file(repo, name)) for name in found if name in loose)
    except OSError as exc:
        raise GitError(f"cannot tidy up after packing: {exc}") from exc
    has_graph = len(loose) >= graph and _has_graph(repo, git, wanted)
    return Packed(packs=len(indexes), objects=gone, has_graph=has_graph)


def _has_graph(repo: Repository, git: Git, wanted: bytes) -> bool:
    """Has git write a layer of the commit-graph; whether it could. Source: git-commit-graph(1)."""
    commits = git.run(
        ("cat-file", "--batch-check=%(objecttype) %(objectname)"),
        git_dir=repo.common_dir,
        input=wanted,
    )
    tips = [row[7:] + b"\n" for row in commits.splitlines() if row.startswith(b"commit ")]
    words = ("commit-graph", "write", "--split", "--stdin-commits", "--no-progress")
    try:
        git.run(words, git_dir=repo.common_dir, input=b"".join(tips))
    except GitError:
        # It is no more than a cache, and whoever holds its lock is writing one.
        return False
    return True


def _loose(repo: Repository, git: Git, wanted: bytes, base: Oid | None) -> dict[bytes, bytes]:
    """The objects to be packed that lie loose, by name: as lines for ``git pack-objects``."""
    if not wanted:
        return {}
    # A partial clone must not be made to fetch what it was told to leave out.
    promised = ("--exclude-promisor-objects",) if repo.is_partial else ()
    listed = git.run(
        ("rev-list", "--objects", "--unpacked", *promised, "--stdin"),
        git_dir=repo.common_dir,
        input=wanted + (f"^{base}\n".encode() if base is not None else b""),
    )
    rows = {line.partition(b" ")[0]: line + b"\n" for line in listed.splitlines()}
    return {name: row for name, row in rows.items() if os.path.exists(_file(repo, name))}


def _names(repo: Repository, git: Git, index: str) -> list[bytes]:
    """The objects that a pack's index names."""
    with open(index, "rb") as file:
        shown = git.run(("show-index",), git_dir=repo.common_dir, input=file.read())
    return [line.split(b" ")[1] for line in shown.splitlines()]


def _file(repo: Repository, name: bytes) -> str:
    text = name.decode("ascii")
    return f"{repo.objects_dir}/{text[:2]}/{text[2:]}"


def _is_removed(path: str) -> bool:
    # The folder stays, even if it is empty now: a writer beside us is about to need it.
    try:
        os.unlink(path)
    except (FileNotFoundError, PermissionError):
        # Another packing was faster, or it is another user's file in a shared repository.
        return False
    return True


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def start_packing(repo: Repository, tips: Sequence[str], *, base: Oid | None, log: Path) -> None:
    """The same in a process of its own that outlives this one; ``gc.autoDetach=false``: here.

    Nobody waits for the process: that it failed is written to the log, the objects stay loose, and
    the next packing, or the user's own gc, takes them.

    Args:
        repo: The repository.
        tips: As for ``pack_loose``.
        base: As for ``pack_loose``.
        log: A file that the background process appends its failure to.

    Raises:
        GitError: here it failed, or the process could not be started.
    """
    if repo.git is None:
        return
    if not repo.config_bool("gc.autoDetach", default=True):
        pack_loose(repo, tips, base=base)
        return
    # The shell is the process that we wait for, a millisecond; its child is nobody's zombie.
    words = ("sh", "-c", '"$@" &', "sh", sys.executable, "-P", "-m", __name__)
    try:
        subprocess.run(
            (*words, str(repo.common_dir), str(log), base or "", *tips),
            cwd=repo.common_dir,
            env=repo.git.environment(git_dir=repo.common_dir),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as exc:
        raise GitError(f"cannot pack in the background: {exc.strerror}") from exc


def main(argv: Sequence[str]) -> None:
    """The life of the process in the background: folder, log, base (or nothing), tips."""
    folder, log, base, *tips = argv
    os.nice(_NICE)
    try:
        pack_loose(open_repository(folder), tips, base=Oid(base) if base else None)
    except (FabroError, OSError) as exc:
        # Where even the log is gone, so is whoever would read it.
        with contextlib.suppress(OSError), open(log, "a", encoding="utf-8") as file:
            file.write(f"packing failed: {exc}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
