"""Whether the fast engine records a repository exactly as git does: what is configured, and where.

What only a scan can find (attributes in the tree, repositories inside, odd files) the scan refuses
by itself. The manual's table "The two engines" is what this file and the scan hold together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from git_fabro.git.discover import Repository, read_settings
from git_fabro.git.program import Git
from git_fabro.git.snapshot.attributes import check_attributes
from git_fabro.git.snapshot.folders import Signature, signature_of
from git_fabro.git.snapshot.ignore import Patterns, UndecidedError, parse_patterns
from git_fabro.git.snapshot.model import UncoveredError

Settings = Mapping[str, tuple[str, ...]]

# Any number but zero is true as well; spelled otherwise than here it is git's to read.
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"", "false", "no", "off", "0"})
_MUST_BE_FALSE = (
    "core.ignorecase",
    "core.precomposeunicode",
    "core.sparsecheckout",
    "core.autocrlf",
    "core.fsmonitor",
    "core.ignorestat",
)
#: File systems whose clock is this machine's own.
LOCAL_FILE_SYSTEMS = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)


class Cover:
    """The verdict on one work tree, formed anew when a file changes that it rests on."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._settings: Settings = repo.settings
        self._seen: dict[Path, Signature | None] = {}
        self._reason: str | None = None
        #: The patterns of ``core.excludesFile`` and of ``info/exclude``.
        self.outside: tuple[Patterns | None, Patterns | None] = (None, None)

    def check(self) -> bool:
        """Whether the patterns of ``outside`` are other ones than at the last call.

        Raises:
            UncoveredError: git is to record this work tree.
        """
        if self._seen and all(_look(path) == seen for path, seen in self._seen.items()):
            if self._reason is not None:
                raise UncoveredError(self._reason)
            return False
        # Looked at before they are read, so that no change falls between; the settings of the
        # repository value may be older than the first node.
        self._seen = {path: _look(path) for path in self._files()}
        self._settings = read_settings(self._repo)
        self._seen |= {path: _look(path) for path in self._files() if path not in self._seen}
        before, self._reason = self.outside, None
        try:
            self._judge()
        except UncoveredError as exc:
            self._reason = exc.reason
            raise
        return self.outside != before

    def _judge(self) -> None:
        reason = reason_in_settings(self._settings, self._repo.object_format)
        if reason is None and _has_replacements(self._repo.common_dir):
            reason = "refs/replace is in use"
        kind = _file_system(os.fsencode(self._repo.top))
        if reason is None and kind not in LOCAL_FILE_SYSTEMS:
            reason = f"the clock of the file system is not ours: {kind}"
        if reason is not None:
            raise UncoveredError(reason)
        for path in self._attribute_files():
            check_attributes(os.fsencode(path), _bytes(path) or b"")
        excludes, info = self._exclude_files()
        self.outside = _patterns(excludes), _patterns(info)

    def _files(self) -> Iterator[Path]:
        """All that the verdict rests on, there or not."""
        common = self._repo.common_dir
        yield from (common / "config", self._repo.git_dir / "config.worktree")
        yield from _user_files("config")
        yield Path(os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
        yield from (common / "refs" / "replace", common / "packed-refs")
        yield from self._attribute_files()
        yield from self._exclude_files()
        yield from self._included()

    def _included(self) -> Iterator[Path]:
        """The configuration files that others name, and what decides whether they are read."""
        if not any(key.startswith(("include.", "includeif.")) for key in self._settings):
            return
        if any(key.startswith("includeif.onbranch:") for key in self._settings):
            yield self._repo.git_dir / "HEAD"
        assert self._repo.git is not None
        asking = Git(self._repo.git.path, os.environ, settings=())
        args = ("config", "-z", "--show-origin", "--get-regexp", r"^include(if\..*)?\.path$")
        parts = os.fsdecode(asking.run(args, cwd=self._repo.top, ok=(0, 1))).split("\0")
        for origin, entry in zip(parts[:-1:2], parts[1::2], strict=True):
            # A relative path begins at the folder of the file that has it.
            folder = os.path.dirname(origin.removeprefix("file:"))
            value = entry.partition("\n")[2]
            yield self._repo.top / folder / os.path.expanduser(value)

    def _attribute_files(self) -> Iterator[Path]:
        named = self._settings.get("core.attributesfile")
        yield self._repo.common_dir / "info" / "attributes"
        yield self._configured(named[-1]) if named else _xdg() / "attributes"
        yield from (Path("/etc/gitattributes"), self._prefix() / "etc" / "gitattributes")

    def _prefix(self) -> Path:
        assert self._repo.git is not None
        return Path(os.path.realpath(self._repo.git.path)).parent.parent

    def _exclude_files(self) -> tuple[Path, Path]:
        named = self._settings.get("core.excludesfile")
        excludes = self._configured(named[-1]) if named else _xdg() / "ignore"
        return excludes, self._repo.common_dir / "info" / "exclude"

    def _configured(self, value: str) -> Path:
        # Git reads a relative path from where it runs, which is the top.
        return self._repo.top / Path(value).expanduser() if value else Path("/nonexistent")


def reason_in_settings(settings: Settings, object_format: str) -> str | None:
    """Why git is to record a repository with these settings; None: nothing in them."""

    def value(key: str) -> str:
        return settings.get(key, ("",))[-1].lower()

    def is_true(key: str) -> bool:
        return value(key) in _TRUE

    if object_format != "sha1":
        return f"object format {object_format}"
    for key in settings:
        if key.startswith("extensions.") and key != "extensions.objectformat":
            return f"{key} is set"
        if key.startswith("remote.") and key.endswith(".promisor"):
            return "a partial clone"
    for key in ("core.filemode", "core.symlinks"):
        if key in settings and not is_true(key):
            return f"{key} is {value(key)}"
    for key in _MUST_BE_FALSE:
        if value(key) not in _FALSE:
            return f"{key} is {value(key)}"
    for key in ("core.eol", "core.checkroundtripencoding", "core.protecthfs"):
        if key in settings:
            return f"{key} is set"
    return None if value("core.checkstat") in ("", "default") else "core.checkStat is minimal"


def _patterns(path: Path) -> Patterns | None:
    data = _bytes(path)
    try:
        return None if data is None else parse_patterns(data, source=str(path))
    except UndecidedError as exc:
        raise UncoveredError(f"an ignore rule that git decides: {exc}") from exc


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as exc:
        raise UncoveredError(f"cannot read {path}: {exc.strerror}") from exc


def _look(path: Path) -> Signature | None:
    try:
        return signature_of(os.stat(path))
    except OSError:
        return None


def _xdg() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return Path(home, "git")


def _user_files(name: str) -> Iterator[Path]:
    if "GIT_CONFIG_GLOBAL" in os.environ:
        yield Path(os.environ["GIT_CONFIG_GLOBAL"])
    yield from (_xdg() / name, Path(os.path.expanduser("~"), ".gitconfig"))


def _has_replacements(common_dir: Path) -> bool:
    folder = common_dir / "refs" / "replace"
    packed = _bytes(common_dir / "packed-refs") or b""
    return b" refs/replace/" in packed or (folder.is_dir() and any(folder.iterdir()))


def _file_system(top: bytes) -> str:
    """The kind of the file system that a folder lies on; ``?`` where that cannot be told."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return "?"
    best, kind = b"", "?"
    real = os.path.realpath(top) + b"/"
    for line in lines:
        # Source: proc_pid_mountinfo(5)
        before, _, after = line.partition(b" - ")
        point = before.split(b" ")[4].decode("unicode_escape").encode("latin-1").rstrip(b"/")
        if real.startswith(point + b"/") and len(point) >= len(best):
            best, kind = point, after.split(b" ")[0].decode("ascii", errors="replace")
    return kind
