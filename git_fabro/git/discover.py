"""Which repository a folder belongs to, and what git's configuration says there. Reads only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from git_fabro.errors import FabroError, GitError, NotFoundError
from git_fabro.git.program import Git, failure, find_git

_TRUE = frozenset({"true", "yes", "on", "1"})


class Repository(NamedTuple):
    """A repository as one folder of it is seen: all paths absolute.

    ``git_dir`` is that of the work tree (``.git/worktrees/x`` in a linked one), ``common_dir`` the
    one that all work trees share. ``head`` is the ref that HEAD names, None when HEAD is detached.
    """

    git: Git | None
    common_dir: Path
    git_dir: Path
    work_tree: Path | None  # None: bare, or called from inside the git directory
    objects_dir: Path
    alternates: tuple[Path, ...]  # of the environment; those of objects/info are not among them
    object_format: str  # "sha1" or "sha256"
    head: str | None
    is_bare: bool
    settings: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        # A configuration holds what is nobody's business in a traceback.
        return f"Repository({str(self.git_dir)!r})"

    @property
    def top(self) -> Path:
        """The folder that the repository is known by: the work tree's, else the common one."""
        return self.work_tree or self.common_dir

    def config(self, key: str) -> str | None:
        """The value of a configuration key that wins, None where it is not set."""
        values = self.config_all(key)
        return values[-1] if values else None

    def config_all(self, key: str) -> tuple[str, ...]:
        """All values of a configuration key, the one that wins last."""
        return self.settings.get(_normal(key), ())

    def config_bool(self, key: str, *, default: bool = False) -> bool:
        """A configuration key as git reads a boolean."""
        value = self.config(key)
        if value is None:
            return default
        return value.lower() in _TRUE or (value.isdigit() and int(value) != 0)

    @property
    def is_partial(self) -> bool:
        """Whether objects may be absent here, to be fetched from a promisor remote."""
        return self.config("extensions.partialClone") is not None or any(
            key.startswith("remote.") and key.endswith(".promisor") for key in self.settings
        )

    @property
    def ref_storage(self) -> str:
        """How refs are stored: ``files``, or what ``extensions.refStorage`` says."""
        return self.config("extensions.refStorage") or "files"


def open_repository(path: Path | str = ".") -> Repository:
    """The repository that a folder belongs to, as git itself finds it from there.

    ``GIT_DIR``, ``GIT_WORK_TREE``, ``git -c`` and the ceiling directories count, as they do for
    git. Without a git program the folders are walked and the repository's own files are read.

    Raises:
        NotFoundError: no repository there.
        GitError: there is one, and git refuses it (another owner, damage).
    """
    where = Path(path)
    if not where.is_dir():
        raise NotFoundError(f"not a folder: {path}")
    git = find_git()
    return _without_git(where.absolute()) if git is None else _ask_git(git, where)


def read_settings(repo: Repository) -> dict[str, tuple[str, ...]]:
    """The configuration as it stands now, as git reads it from the repository's work tree.

    Raises:
        GitError: git refuses it, or there is no git program.
    """
    if repo.git is None:
        raise GitError("reading the configuration anew needs the git program", hint="install git")
    asking = Git(repo.git.path, os.environ, settings=())
    listed = asking.run(["config", "-z", "--list"], cwd=repo.work_tree or repo.git_dir)
    return _parse_settings(listed)


def in_progress(repo: Repository) -> str | None:
    """The operation that git has open in this work tree: ``merge``, ``rebase``, ..., or None."""
    for name, operation in _OPERATIONS:
        if (repo.git_dir / name).exists():
            return operation
    try:
        todo = (repo.git_dir / "sequencer" / "todo").read_bytes()
    except FileNotFoundError:
        return None
    return "revert" if todo.startswith(b"revert ") else "cherry-pick"


# Source: wt-status.c, wt_status_get_state
_OPERATIONS = (
    ("MERGE_HEAD", "merge"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("rebase-merge", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)

# Answers that cannot be mistaken for a path stand between the paths, so that a path may hold
# line feeds; the last one is missing where there is no work tree.
_QUESTIONS = (
    "--absolute-git-dir",
    "--is-bare-repository",
    "--git-common-dir",
    "--show-object-format",
    "--git-path",
    "objects",
    "--is-inside-git-dir",
    "--show-toplevel",
)
_ANSWERS = re.compile(
    r"(?P<git_dir>.*)\n(?P<bare>true|false)\n(?P<common>.*)\n(?P<format>sha1|sha256)\n"
    r"(?P<objects>.*)\n(?:true|false)\n(?:(?P<top>.*)\n)?\Z",
    re.DOTALL,
)


def _ask_git(git: Git, where: Path) -> Repository:
    # The caller's own environment decides which repository is meant. traps: WT17, CP12
    asking = Git(git.path, os.environ, settings=())
    args = ["rev-parse", "--path-format=absolute", *_QUESTIONS]
    done = asking.call(args, cwd=where)
    found = _ANSWERS.match(os.fsdecode(done.stdout))
    if found is None:
        if _walk_up(where.absolute()) is not None:
            raise failure(args, done, cwd=where)
        raise NotFoundError(f"not a git repository: {where}", hint="git init")
    settings = _parse_settings(asking.run(["config", "-z", "--list"], cwd=where))
    git_dir = Path(found["git_dir"])
    ours = git.with_settings(*_silenced(settings), *_synced(settings)).with_base(**_quarantine())
    return Repository(
        git=ours,
        common_dir=Path(found["common"]),
        git_dir=git_dir,
        work_tree=Path(found["top"]) if found["top"] else None,
        objects_dir=Path(found["objects"]),
        alternates=_alternates(),
        object_format=found["format"],
        head=_head(git_dir, ours),
        is_bare=found["bare"] == "true",
        settings=settings,
    )


def _quarantine() -> dict[str, str]:
    # In a receiving hook the pushed objects are seen through these alone. traps: SV1
    names = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
    return {name: os.environ[name] for name in names if name in os.environ}


def _alternates() -> tuple[Path, ...]:
    named = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "").split(os.pathsep)
    return tuple(Path(name).absolute() for name in named if name)


def _synced(settings: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    # Git syncs neither loose objects nor refs of itself. traps: OB5
    if settings.get("fabro.durable", ("false",))[-1].lower() in _TRUE:
        yield "core.fsync=loose-object,reference"


def _silenced(settings: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    # git >= 2.54 runs hooks that are configured, whatever core.hooksPath says. traps: HK7
    for key in settings:
        if key.startswith("hook.") and key.endswith(".command"):
            yield f"{key.removesuffix('.command')}.enabled=false"


def _normal(key: str) -> str:
    section, _, rest = key.partition(".")
    subsection, dot, name = rest.rpartition(".")
    return f"{section.lower()}.{subsection}{dot}{name.lower()}"


def _parse_settings(listed: bytes) -> dict[str, tuple[str, ...]]:
    settings: dict[str, tuple[str, ...]] = {}
    for entry in os.fsdecode(listed).split("\0")[:-1]:
        # A key without "=" is true. Source: git-config(1), -z
        key, separator, value = entry.partition("\n")
        settings[key] = (*settings.get(key, ()), value if separator else "true")
    return settings


def _head(git_dir: Path, git: Git | None) -> str | None:
    try:
        text = (git_dir / "HEAD").read_text(errors="surrogateescape")
    except OSError as exc:
        raise GitError(f"cannot read HEAD of {git_dir}: {exc.strerror}") from exc
    name = text.removeprefix("ref:").strip() if text.startswith("ref:") else None
    if name == "refs/heads/.invalid" and git is not None:
        # The refs are in a reftable, and the file is there for older programs. traps: RF16
        shown = git.run(["symbolic-ref", "-q", "HEAD"], git_dir=git_dir, ok=(0, 1))
        name = os.fsdecode(shown).removesuffix("\n") or None
    return name


def _without_git(where: Path) -> Repository:
    git_dir = _named_git_dir() or _walk_up(where)
    if git_dir is None:
        raise NotFoundError(f"not a git repository: {where}", hint="git init")
    common = _common_dir(git_dir)
    settings = _read_settings(common, git_dir)
    bare = settings.get("core.bare", ("false",))[-1].lower() in _TRUE and git_dir == common
    return Repository(
        git=None,
        common_dir=common,
        git_dir=git_dir,
        work_tree=None if bare else _work_tree(git_dir, settings),
        objects_dir=Path(os.environ.get("GIT_OBJECT_DIRECTORY", common / "objects")).absolute(),
        alternates=_alternates(),
        object_format=settings.get("extensions.objectformat", ("sha1",))[-1].lower(),
        head=_head(git_dir, None),
        is_bare=bare,
        settings=settings,
    )


def _named_git_dir() -> Path | None:
    named = os.environ.get("GIT_DIR")
    return Path(named).absolute() if named else None


def _walk_up(where: Path) -> Path | None:
    ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
    for folder in (where, *where.parents):
        if folder != where and str(folder) in ceilings:
            return None
        dot_git = folder / ".git"
        if dot_git.is_file():
            text = dot_git.read_text(errors="surrogateescape")
            return Path(os.path.normpath(folder / text.removeprefix("gitdir:").strip()))
        for candidate in (dot_git, folder):
            if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
                return candidate
    return None


def _common_dir(git_dir: Path) -> Path:
    try:
        named = (git_dir / "commondir").read_text(errors="surrogateescape").strip()
    except FileNotFoundError:
        return git_dir
    return Path(os.path.normpath(git_dir / named))


def _work_tree(git_dir: Path, settings: Mapping[str, tuple[str, ...]]) -> Path | None:
    named = os.environ.get("GIT_WORK_TREE") or settings.get("core.worktree", ("",))[-1]
    if named:
        return Path(os.path.normpath(git_dir / named))
    link = git_dir / "gitdir"
    if link.is_file():
        return Path(link.read_text(errors="surrogateescape").strip()).parent
    return git_dir.parent if git_dir.name == ".git" else None


def _read_settings(common: Path, git_dir: Path) -> dict[str, tuple[str, ...]]:
    # Only where no git program is: this import costs 50 ms that no other caller pays.
    from dulwich.config import ConfigFile

    home = Path(os.environ.get("HOME", "/nonexistent"))
    xdg = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    user = [xdg / "git" / "config", home / ".gitconfig"]
    if "GIT_CONFIG_GLOBAL" in os.environ:
        user = [Path(os.environ["GIT_CONFIG_GLOBAL"])]
    settings: dict[str, tuple[str, ...]] = {}
    for file in (*user, common / "config", git_dir / "config.worktree"):
        if not file.is_file():
            continue
        try:
            parsed = ConfigFile.from_path(str(file))
        except (ValueError, OSError) as exc:
            raise FabroError(f"cannot read {file}: {exc}") from exc
        for section in parsed.sections():
            for name, value in parsed.items(section):
                head, *rest = (os.fsdecode(part) for part in section)
                key = _normal(".".join((head, *rest, os.fsdecode(name))))
                settings[key] = (*settings.get(key, ()), os.fsdecode(value))
    return settings
