"""Putting the hooks of a repository in their place, beside what is there, and taking them out.

A hook that was there is kept, byte by byte, beside the file that takes its place, and runs first.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from git_fabro import hookfiles
from git_fabro.checkpoint import layout
from git_fabro.errors import GitError, RequestError
from git_fabro.git.discover import Repository, read_settings
from git_fabro.git.program import Git
from git_fabro.jobs.hooks.managers import Manager, manager_of

CLIENT = ("post-commit", "post-rewrite", "pre-push")
SERVER = ("pre-receive",)

_FIRST = "#!/bin/sh\n"
_BEGIN = "# >>> git-fabro >>> git fabro uninstall takes this out"
_END = "# <<< git-fabro <<<"
_BLOCK = re.compile(rb"# >>> git-fabro >>>[^\n]*\n.*?# <<< git-fabro <<<[^\n]*\n?", re.DOTALL)
_BESIDE = ".before-fabro"
#: What of a first line can be run with "-c": sh, bash, dash and ksh, with flags.
_SHELL = re.compile(
    r"#! *(?P<shell>/\S*/(?:env +)?(?:sh|bash|dash|ksh))(?P<flags>(?: +-[a-z]+)*) *\r?\n"
)
#: Configuration that install sets; what it has set is noted, so that nobody's own is taken out.
_NOTED = "fabro.installed"
_DISPLAY = ("notes.displayRef", layout.NOTES_REF)
_OPTIONS = ("receive.advertisePushOptions", "true")


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of one hook: ``installed``, ``updated``, ``unchanged``, ``removed``, ``kept``.

    ``beside`` is the file that was there before, and runs first (or that is left, if ``kept``).
    """

    name: str
    what: str
    beside: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was done; ``manager`` is who owns hooks that could not be placed.

    ``is_shared`` says that other repositories use the folder too: ``core.hooksPath`` elsewhere.
    """

    folder: Path
    hooks: tuple[Placed, ...]
    manager: Manager | None = None
    is_shared: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every hook runs what it should."""
        return self.manager is None or not self.manager.lacks()


def install(repo: Repository, *, server: bool = False) -> Report:
    """Puts the hooks where git looks for them; done twice it is done once.

    Raises:
        RequestError: server hooks for a repository that is not bare, or a kept hook in the way.
        GitError: git or the file system refuses.
    """
    if server and not repo.is_bare:
        raise RequestError(
            f"not a bare repository: {repo.top}", hint="git -C REPOSITORY fabro install --server"
        )
    folder, names = hooks_folder(repo), SERVER if server else CLIENT
    manager = None if server else manager_of(repo, folder, names)
    owned = manager.hooks if manager is not None else ()
    if manager is not None and len(owned) == len(names) and manager.lacks():
        return Report(folder=folder, hooks=(), manager=manager)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(folder, [name for name in names if name not in owned])
        placed = tuple(_place(folder, name) for name in names if name not in owned)
    except OSError as exc:
        raise GitError(f"cannot install into {folder}: {exc.strerror}") from exc
    _set(repo, *(_OPTIONS if server else _DISPLAY))
    return Report(folder=folder, hooks=placed, manager=manager, is_shared=_is_shared(repo, folder))


def uninstall(repo: Repository, *, shared: bool = False) -> Report:
    """Takes out what install put in, of client and server; what was there before is put back.

    Args:
        repo: The repository.
        shared: Also out of a folder that other repositories use too.

    Raises:
        RequestError: there are hooks of ours in such a folder, and ``shared`` is not said.
        GitError: git or the file system refuses.
    """
    folder = hooks_folder(repo)
    if not shared and _is_shared(repo, folder) and _holds_ours(folder):
        raise RequestError(
            f"other repositories use these hooks too: {folder}",
            hint="git fabro uninstall --shared",
        )
    try:
        removed = tuple(_remove_all(folder))
    except OSError as exc:
        raise GitError(f"cannot uninstall from {folder}: {exc.strerror}") from exc
    for key, value in (_DISPLAY, _OPTIONS):
        _unset(repo, key, value)
    return Report(folder=folder, hooks=removed)


def _is_shared(repo: Repository, folder: Path) -> bool:
    """Whether the folder lies outside the repository and its work tree."""
    where = folder.resolve()
    tops = (repo.common_dir, *([repo.work_tree] if repo.work_tree is not None else []))
    return not any(where.is_relative_to(top.resolve()) for top in tops)


def _holds_ours(folder: Path) -> bool:
    return any(_is_ours(folder / name) for name in (*CLIENT, *SERVER))


def hooks_folder(repo: Repository) -> Path:
    """Where git looks for the hooks of a work tree.

    Raises:
        GitError: there is no git program, or it refuses.
    """
    args = ["rev-parse", "--path-format=absolute", "--git-path", "hooks"]
    printed = _git(repo).run(args, cwd=repo.work_tree or repo.git_dir)
    return Path(os.fsdecode(printed).removesuffix("\n"))


def _git(repo: Repository) -> Git:
    """Git with the user's own settings, core.hooksPath too."""
    if repo.git is None:
        raise GitError("hooks need the git program", hint="install git")
    return Git(repo.git.path, os.environ, settings=())


def _clear(folder: Path, names: Sequence[str]) -> None:
    """Makes room for hooks that are to be kept; a hook that is kept already and came back, once.

    Raises:
        RequestError: another one is kept; then nothing was done.
    """
    twice = []
    for name in names:
        path, beside = folder / name, folder / f"{name}{_BESIDE}"
        if not (os.path.lexists(path) and os.path.lexists(beside)) or _is_ours(path):
            continue
        if not _are_equal(path, beside):
            raise RequestError(
                f"a hook is kept there already: {beside}",
                hint=f"keep one of the two: mv or rm {shlex.quote(str(beside))}",
            )
        twice.append(beside)
    for beside in twice:
        beside.unlink()


def _is_ours(path: Path) -> bool:
    return path.is_file() and _BLOCK.search(path.read_bytes()) is not None


def _are_equal(one: Path, other: Path) -> bool:
    """Whether two hooks are the same file twice: bytes and mode."""
    if one.is_symlink() or other.is_symlink() or not (one.is_file() and other.is_file()):
        return False
    return one.stat().st_mode == other.stat().st_mode and one.read_bytes() == other.read_bytes()


def _place(folder: Path, name: str) -> Placed:
    path = folder / name
    beside = path.with_name(name + _BESIDE)
    before = path.read_bytes() if path.is_file() else None
    is_ours = before is not None and _BLOCK.search(before) is not None
    if os.path.lexists(path) and not is_ours:
        path.rename(beside)
        before = None
    kept = beside if os.path.lexists(beside) else None
    block = _block(name, kept).encode()
    # A replacement by function, as a backslash in a path is no group.
    text = _FIRST.encode() + block if before is None else _BLOCK.sub(lambda _: block, before)
    if text == before and os.access(path, os.X_OK):
        return Placed(name, "unchanged", kept)
    _write(path, text)
    return Placed(name, "updated" if is_ours else "installed", kept)


def _write(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(data)
    os.chmod(part.name, 0o755)
    os.replace(part.name, path)


def _block(name: str, kept: Path | None) -> str:
    """The lines between the marks: the hook that was there as a function, then ours.

    Whether there was one is a variable: a shell that looks for a function searches PATH too.
    """
    shim = hookfiles.shim(name).removeprefix(_FIRST)
    user = "fabro_kept=\n"
    if kept is not None:
        user = "fabro_kept=yes\n" + _user_function(name, kept)
        if "fabro_user" not in shim:
            shim = _after_user(shim)
    return f"{_BEGIN}\n{user}{shim.rstrip()}\n{_END}\n"


def _user_function(name: str, kept: Path) -> str:
    """Runs what was there as git would: its own shell and $0, so that it finds what is beside it.

    Other programs are run as they are; they see their new name.
    """
    file = f'"${{0%/*}}"/{name}{_BESIDE}'
    run = f'{file} "$@"'
    first = _first_line(kept)
    shell = _SHELL.match(first) if first is not None else None
    if shell is not None:
        line = shell["shell"] + shell["flags"]
        source = shlex.quote('fabro_file=$1; shift; . "$fabro_file"')
        run = f'{line} -c {source} "$0" {file} "$@"'
    return f"fabro_user() {{\n    [ ! -x {file} ] || {run}\n}}\n"


def _first_line(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.readline(200).decode()
    except (OSError, UnicodeDecodeError):
        return None


def _after_user(shim: str) -> str:
    """A hook that knows of no other one, behind the user's: both get the same standard input."""
    return (
        "fabro_lines=\n"
        'while IFS= read -r fabro_line; do\n    fabro_lines="$fabro_lines$fabro_line\n"\ndone\n'
        'printf \'%s\' "$fabro_lines" 2>/dev/null | fabro_user "$@" || exit\n'
        f"fabro_main() (\n{shim.rstrip()}\n)\n"
        'printf \'%s\' "$fabro_lines" | fabro_main "$@" || exit\n'
    )


def _remove_all(folder: Path) -> Iterator[Placed]:
    for name in (*CLIENT, *SERVER):
        # pre-commit puts what it finds aside, and goes on to run it.
        for path in (folder / name, folder / f"{name}.legacy"):
            placed = _remove(path, name)
            if placed is not None:
                yield placed


def _remove(path: Path, name: str) -> Placed | None:
    beside = path.with_name(name + _BESIDE)
    text = path.read_bytes() if path.is_file() else b""
    if not os.path.lexists(path) and path.name == name and os.path.lexists(beside):
        # Somebody took our file away, and with it what was there before.
        beside.rename(path)
        return Placed(name, "removed")
    if _BLOCK.search(text) is None:
        return _came_back(path, beside, name)
    rest = _BLOCK.sub(b"", text)
    if rest != _FIRST.encode():
        # Somebody added lines to the file: they stay, and so does what was there before.
        _write(path, rest)
        return Placed(path.name, "kept", beside if os.path.lexists(beside) else None)
    path.unlink()
    if os.path.lexists(beside):
        beside.rename(path)
    return Placed(path.name, "removed")


def _came_back(path: Path, beside: Path, name: str) -> Placed | None:
    """What becomes of a hook that is kept, where somebody has put one in the place of ours."""
    if path.name != name or not os.path.lexists(beside):
        return None
    if not _are_equal(path, beside):
        return Placed(name, "kept", beside)
    beside.unlink()
    return Placed(name, "removed")


def _set(repo: Repository, key: str, value: str) -> None:
    """Adds one value to the repository's own configuration, unless it is there."""
    settings = read_settings(repo)
    if value in settings.get(key.lower(), ()):
        return
    _config(repo, "--add", key, value)
    _config(repo, "--add", _NOTED, key)


def _unset(repo: Repository, key: str, value: str) -> None:
    """Takes a value out that install had added."""
    if key in read_settings(repo).get(_NOTED, ()):
        _config(repo, "--unset-all", key, f"^{re.escape(value)}$")
        _config(repo, "--unset-all", _NOTED, f"^{re.escape(key)}$")


def _config(repo: Repository, *args: str) -> None:
    # 5: there was nothing to take out. Source: git-config(1)
    _git(repo).run(["config", "--local", *args], cwd=repo.work_tree or repo.git_dir, ok=(0, 5))
