"""Linked work trees: add, list, remove, put one exactly at a commit. Never the user's own."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from git_fabro.checkpoint.model import Oid, parse_oid
from git_fabro.errors import BusyError, ConflictError, GitError, NotFoundError
from git_fabro.git.discover import Repository, in_progress
from git_fabro.git.program import Git
from git_fabro.git.snapshot.index import Stamp
from git_fabro.git.snapshot.model import Rules
from git_fabro.git.snapshot.reference import SETTINGS, ReferenceEngine

#: How old a lock file must be before it counts as left behind by a process that died.
STALE_S = 2.0

# A large work tree takes git minutes to write; whoever waits behind it must be as patient.
_PATIENCE_S = 600.0
_BRANCHES = "refs/heads/"
_GITLINK = b"160000"

# What git keeps of a merge, rebase, cherry-pick, revert or bisect. Source: branch.c,
# remove_branch_state; gitrepository-layout(5)
_LEFT_OPEN = (
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "SQUASH_MSG",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "BISECT_LOG",
    "BISECT_START",
    "BISECT_TERMS",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedWorkTree:
    """One work tree of a repository; the main one has the common git directory."""

    path: Path
    git_dir: Path
    head: Oid | None  # None: on a branch
    branch: str | None  # the ref that HEAD names; None: detached
    is_locked: bool
    is_there: bool  # its folder exists


def list_work_trees(repo: Repository) -> tuple[LinkedWorkTree, ...]:
    """All work trees of the repository, the main one first; needs no git program."""
    main = _main_work_tree(repo)
    entries: list[Path] = []
    # Its folder is there only while there is a linked work tree.
    with contextlib.suppress(FileNotFoundError):
        entries = sorted((repo.common_dir / "worktrees").glob("*/gitdir"))
    linked = (_linked(file) for file in entries)
    return tuple(tree for tree in (main, *linked) if tree is not None)


def add_work_tree(
    repo: Repository, path: Path, *, branch: str | None = None, commit: Oid | None = None
) -> Repository:
    """A new linked work tree, on a branch or detached at a commit; the repository as seen there.

    Entries that name this branch or path and whose folder is gone are removed first, no others.

    Args:
        repo: The repository.
        path: Where; absent, or an empty folder.
        branch: The branch to check out, ``fabro/run/<id>``.
        commit: Without a branch: where to detach.

    Raises:
        GitError: git refuses: the branch is checked out elsewhere, the folder is not empty.
        BusyError: other processes kept adding and removing for longer than we wait.
    """
    git, target = _needs_git(repo).with_settings(*SETTINGS), str(path.absolute())
    where = ["--detach", target, commit or "HEAD"] if branch is None else [target, branch]
    # Two at once fail now and then, whatever their names are. traps: WT16
    with _work_tree_lock(repo.common_dir):
        _forget_stale(repo, path, branch and _BRANCHES + branch)
        _add(git, where, repo.common_dir)
    added = at_work_tree(repo, path)
    Stamp(added.git_dir / "index").as_old_as_index()
    return added


def _add(git: Git, where: list[str], common_dir: Path) -> None:
    for last in (*[False] * 9, True):
        try:
            git.run(["worktree", "add", "--quiet", *where], git_dir=common_dir)
        except GitError:
            # A gc removes the folder of all work trees while it is empty, also between git's making
            # it and its use.
            if last or (common_dir / "worktrees").exists():
                raise
            time.sleep(0.01)
        else:
            return


def at_work_tree(repo: Repository, path: Path) -> Repository:
    """The same repository as seen from one of its linked work trees.

    Raises:
        NotFoundError: no linked work tree of this repository lies there.
    """
    for tree in list_work_trees(repo):
        if tree.is_there and tree.path == Path(os.path.realpath(path)):
            return repo._replace(
                git_dir=tree.git_dir,
                work_tree=tree.path,
                head=tree.branch,
                is_bare=False,
            )
    raise NotFoundError(f"not a work tree of this repository: {path}", hint="git worktree list")


def remove_work_tree(repo: Repository, path: Path) -> None:
    """Remove a linked work tree with all its files, or what is left of one; nothing if it is gone.

    Raises:
        ConflictError: a repository of its own lies in it.
        GitError: a file cannot be removed.
    """
    with _work_tree_lock(repo.common_dir):
        for tree in list_work_trees(repo):
            if tree.path != Path(os.path.realpath(path)) or tree.git_dir == repo.common_dir:
                continue
            if tree.is_there:
                _refuse_nested(tree.path)
                _remove_folder(tree.path)
            _remove_folder(tree.git_dir)


def reset_work_tree(
    work: Repository,
    commit: Oid,
    *,
    branch: str | None = None,
    excludes: tuple[str, ...] = (),
    now_s: float,
) -> tuple[bytes, ...]:
    """Put a run's own work tree exactly at a commit; what was kept although it is not in it.

    Files of the commit are restored, untracked files are removed. Kept: ignored files (also those
    that only the former ``.gitignore`` ignored), what ``excludes`` names, repositories inside. No
    ref but this work tree's HEAD is touched.

    Args:
        work: The repository as seen from the work tree (``at_work_tree``).
        commit: Where to put it.
        branch: The branch that HEAD is to name; None detaches HEAD at the commit.
        excludes: Git's ``:(glob)`` patterns of untracked files that no snapshot records.
        now_s: Seconds since the epoch; lock files of this work tree older than STALE_S are removed.

    Raises:
        ConflictError: a repository of its own lies where the commit has a file.
        GitError: git cannot write a file.
    """
    git, top = _needs_git(work).with_settings(*SETTINGS), _top(work)
    for lock in work.git_dir.glob("*.lock"):
        remove_stale_lock(lock, now_s=now_s)
    before = _untracked_whatever(work, git, top, excludes)
    _refuse_covered(git, top, commit)
    forget_open(work)
    ReferenceEngine(work, work.git_dir / "index", Rules()).distrust_young()
    git.run(["read-tree", "--reset", "-u", "--no-recurse-submodules", commit], cwd=top)
    if branch is None:
        git.run(["update-ref", "--no-deref", "HEAD", commit], cwd=top)
    else:
        set_head(work, branch)
    left = _untracked(git, top, excludes)
    for name in left:
        # What is untracked now and was not before, an older .gitignore kept out.
        if name in before and not name.endswith(b"/"):
            _remove_file(os.fsencode(top), name)
    return tuple(name for name in left if name not in before or name.endswith(b"/"))


def forget_open(work: Repository) -> None:
    """Ends a merge, rebase, cherry-pick or the like of a work tree; its files stay as they are."""
    for state in _LEFT_OPEN:
        _remove_folder(work.git_dir / state)


def set_head(work: Repository, branch: str) -> None:
    """Has HEAD of a work tree name a branch; files and index stay as they are.

    Raises:
        GitError: git refuses.
    """
    _needs_git(work).run(["symbolic-ref", "HEAD", _BRANCHES + branch], cwd=_top(work))


def is_clean_at(work: Repository, commit: Oid, *, excludes: tuple[str, ...] = ()) -> bool:
    """Whether a run's own work tree is exactly at a commit: files, HEAD, and nothing left open."""
    git, top = _needs_git(work).with_settings(*SETTINGS), _top(work)
    if in_progress(work) is not None:
        return False
    ReferenceEngine(work, work.git_dir / "index", Rules()).distrust_young()
    status = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no"]
    head, *changes = [
        line
        for line in git.run(status, cwd=top).split(b"\0")[:-1]
        if not line.startswith(b"# ") or line.startswith(b"# branch.oid ")
    ]
    at_commit = head == f"# branch.oid {commit}".encode()
    return at_commit and not changes and not _untracked(git, top, excludes)


def remove_stale_locks(repo: Repository, refs: Iterable[str], *, now_s: float) -> tuple[str, ...]:
    """Remove lock files of these refs (a run's own) that a process left that died; their names."""
    found = ((ref, repo.common_dir / f"{ref}.lock") for ref in refs)
    return tuple(ref for ref, lock in found if remove_stale_lock(lock, now_s=now_s))


def remove_stale_lock(lock: Path, *, now_s: float) -> bool:
    """Whether the lock file was there, older than STALE_S, and is removed."""
    try:
        if now_s - lock.stat().st_mtime < STALE_S:
            return False
        lock.unlink()
    except FileNotFoundError:
        return False
    return True


def _needs_git(repo: Repository) -> Git:
    if repo.git is None:
        raise GitError("work trees need the git program", hint="install git")
    return repo.git


def _top(work: Repository) -> Path:
    if work.work_tree is None or work.git_dir == work.common_dir:
        raise GitError(f"not a linked work tree: {work.top}")
    return work.work_tree


def _main_work_tree(repo: Repository) -> LinkedWorkTree | None:
    named = repo.config("core.worktree")
    if (repo.config("core.bare") or "false") == "true" and named is None:
        return None
    if named is None and repo.common_dir.name != ".git":
        return None
    path = repo.common_dir / named if named else repo.common_dir.parent
    return _entry(repo.common_dir, Path(os.path.realpath(path)))


def _entry(git_dir: Path, path: Path) -> LinkedWorkTree | None:
    head = (git_dir / "HEAD").read_text(errors="surrogateescape").strip()
    if not head:
        # Git is just making it.
        return None
    symbolic = head.startswith("ref:")
    return LinkedWorkTree(
        path=path,
        git_dir=git_dir,
        head=None if symbolic else parse_oid(head),
        branch=head.removeprefix("ref:").strip() if symbolic else None,
        is_locked=(git_dir / "locked").exists(),
        is_there=(path / ".git").exists(),
    )


def _linked(file: Path) -> LinkedWorkTree | None:
    try:
        return _entry(file.parent, _named_path(file))
    except FileNotFoundError:
        # Removed since the folder was listed.
        return None


def _named_path(file: Path) -> Path:
    text = file.read_text(errors="surrogateescape").removesuffix("\n")
    # The folder of the .git file; relative to the entry where worktree.useRelativePaths was on.
    return Path(os.path.realpath(file.parent / text)).parent


def _forget_stale(repo: Repository, path: Path, ref: str | None) -> None:
    wanted = Path(os.path.realpath(path))
    for tree in list_work_trees(repo):
        ours = tree.path == wanted or (ref is not None and tree.branch == ref)
        gone = tree.git_dir != repo.common_dir and not tree.is_there and not tree.is_locked
        if ours and gone:
            _remove_folder(tree.git_dir)


@contextlib.contextmanager
def _work_tree_lock(common_dir: Path) -> Iterator[None]:
    folder = common_dir / "fabro"
    folder.mkdir(exist_ok=True)
    deadline = time.monotonic() + _PATIENCE_S
    with open(folder / "worktrees.lock", "ab") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if time.monotonic() > deadline:
                    raise BusyError(f"another process holds {file.name}") from exc
            time.sleep(random.uniform(0.002, 0.02))
        yield


def _untracked(git: Git, top: Path, excludes: tuple[str, ...]) -> dict[bytes, None]:
    patterns = [f":(exclude,glob,top){glob}" for glob in excludes if glob]
    asked = ["--", ".", *patterns] if patterns else []
    listed = git.run(["ls-files", "-o", "--exclude-standard", "-z", *asked], cwd=top)
    return dict.fromkeys(listed.split(b"\0")[:-1])


def _untracked_whatever(
    work: Repository, git: Git, top: Path, excludes: tuple[str, ...]
) -> dict[bytes, None]:
    try:
        return _untracked(git, top, excludes)
    except GitError:
        # A power cut may leave the index empty; it is the run's own and is made again.
        (work.git_dir / "index").unlink(missing_ok=True)
        return _untracked(git, top, excludes)


def _refuse_covered(git: Git, top: Path, commit: Oid) -> None:
    # Git would write through a repository that lies below the top, or remove it for a file.
    listed = git.run(["ls-tree", "-r", "-z", "--full-tree", commit], cwd=top)
    root, folders = os.fsencode(top), set[bytes]()
    for line in listed.split(b"\0")[:-1]:
        head, _, name = line.partition(b"\t")
        if head.startswith(_GITLINK):
            continue
        path = os.path.join(root, name)
        if os.path.isdir(path) and not os.path.islink(path):
            _refuse_nested(Path(os.fsdecode(path)), itself=True)
        folders.add(os.path.dirname(name))
    for folder in folders - {b""}:
        while folder and not os.path.lexists(os.path.join(root, folder, b".git")):
            folder = os.path.dirname(folder)
        if folder:
            raise _nested(os.fsdecode(os.path.join(root, folder)))


def _refuse_nested(top: Path, *, itself: bool = False) -> None:
    for folder, folders, files in os.walk(top):
        if (itself or folder != str(top)) and (".git" in folders or ".git" in files):
            raise _nested(folder)


def _nested(folder: str) -> ConflictError:
    return ConflictError(
        f"a repository of its own lies in the work tree: {folder}",
        hint=f"move it out of the way: {folder}",
    )


def _remove_file(top: bytes, name: bytes) -> None:
    path = os.path.join(top, name)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as exc:
        raise GitError(f"cannot remove {os.fsdecode(path)}: {exc.strerror}") from exc
    folder = os.path.dirname(path)
    while folder != top:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _remove_folder(path: Path) -> None:
    for last in (*[False] * 9, True):
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, onerror=_make_writable)
            else:
                path.unlink(missing_ok=True)
            return
        except OSError as exc:
            # A gc makes and removes lock files in the entries of work trees.
            if last or exc.errno not in (errno.ENOTEMPTY, errno.ENOENT):
                raise GitError(f"cannot remove {path}: {exc.strerror}") from exc


def _make_writable(remove: Callable[..., object], path: str, error: object) -> None:
    # Some tools write their caches without the right to remove what is in a folder.
    del error
    parent = os.path.dirname(path)
    for folder in (parent, path):
        if not os.path.islink(folder):
            os.chmod(folder, os.stat(folder).st_mode | stat.S_IRWXU)
    remove(path)
