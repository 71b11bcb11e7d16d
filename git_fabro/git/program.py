"""Running the git program: its environment, its failures. What to run is said elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from git_fabro.errors import GitError

#: Variables that tie a process to one repository or change what a path means.
#: Source: git rev-parse --local-env-vars, less those that carry configuration (traps: CP12).
LOCAL_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_ATTR_SOURCE",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GLOB_PATHSPECS",
        "GIT_GRAFT_FILE",
        "GIT_ICASE_PATHSPECS",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INDEX_VERSION",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_LITERAL_PATHSPECS",
        "GIT_NAMESPACE",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)

# No hook, no signature, no daemon and no clean-up of git's own runs on the path of a checkpoint.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "commit.gpgSign=false",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
)


class Finished(NamedTuple):
    """A git process that has ended."""

    status: int
    stdout: bytes
    stderr: str


class Git(NamedTuple):
    """The git program, with the environment that its children start from.

    ``settings`` are ``key=value`` pairs given with ``-c`` in front of every command; they win over
    the configuration files and over what the caller's own ``git -c`` said.
    """

    path: str
    base: Mapping[str, str]
    settings: tuple[str, ...] = _SETTINGS

    def __repr__(self) -> str:
        # What the environment holds is long, and may be secret.
        return f"Git(path={self.path!r}, settings={self.settings!r})"

    def with_settings(self, *settings: str) -> Git:
        """The same program with more settings, which win over the earlier ones."""
        return self._replace(settings=(*self.settings, *settings))

    def with_base(self, **variables: str) -> Git:
        """The same program with more variables in the environment of its children."""
        return self._replace(base={**self.base, **variables})

    def argv(self, args: Sequence[str]) -> list[str]:
        """The whole command line for these arguments."""
        options = [part for setting in self.settings for part in ("-c", setting)]
        return [self.path, *options, *args]

    def environment(
        self,
        *,
        git_dir: Path | None = None,
        work_tree: Path | None = None,
        index: Path | None = None,
    ) -> dict[str, str]:
        """The environment of a child: the caller's without what ties it to another repository."""
        environment = {
            **self.base,
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            # Links compare raw object ids. traps: OB9
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_FABRO_HOOK": "1",
        }
        named = {"GIT_DIR": git_dir, "GIT_WORK_TREE": work_tree, "GIT_INDEX_FILE": index}
        return environment | {name: str(path) for name, path in named.items() if path is not None}

    def call(
        self,
        args: Sequence[str],
        *,
        cwd: Path | None = None,
        git_dir: Path | None = None,
        work_tree: Path | None = None,
        index: Path | None = None,
        input: bytes = b"",
        timeout_s: float | None = None,
    ) -> Finished:
        """Run git to its end, whatever its status.

        Raises:
            GitError: the program could not be started, or did not end in time.
        """
        try:
            done = subprocess.run(
                self.argv(args),
                cwd=cwd,
                env=self.environment(git_dir=git_dir, work_tree=work_tree, index=index),
                input=input,
                capture_output=True,
                timeout=timeout_s,
                # Ctrl-C at the terminal is for the driver, which ends in good order.
                process_group=0,
            )
        except (OSError, subprocess.TimeoutExpired, ValueError) as exc:
            raise GitError(f"git {args[0]} failed: {exc}", argv=("git", *args)) from exc
        return Finished(done.returncode, done.stdout, done.stderr.decode(errors="replace"))

    def run(
        self,
        args: Sequence[str],
        *,
        cwd: Path | None = None,
        git_dir: Path | None = None,
        work_tree: Path | None = None,
        index: Path | None = None,
        input: bytes = b"",
        ok: Sequence[int] = (0,),
        timeout_s: float | None = None,
    ) -> bytes:
        """What git prints.

        Args:
            args: The arguments after ``git``.
            cwd: Where to run; None is here.
            git_dir: The repository, if it is not to be found from ``cwd``.
            work_tree: The work tree, if it is not to be found from ``cwd``.
            index: The index file, if it is not the work tree's own.
            input: The standard input.
            ok: The statuses that are no failure.
            timeout_s: After how long the process is ended; None never.

        Raises:
            GitError: any other status, or the program could not be run.
        """
        done = self.call(
            args,
            cwd=cwd,
            git_dir=git_dir,
            work_tree=work_tree,
            index=index,
            input=input,
            timeout_s=timeout_s,
        )
        if done.status not in ok:
            raise failure(args, done, cwd=cwd)
        return done.stdout


def failure(args: Sequence[str], done: Finished, *, cwd: Path | None = None) -> GitError:
    """The error for a git process that ended in a status that was not expected."""
    # Imported here: 1 ms that only those pay whom git refuses something.
    import shlex

    where = ("-C", str(cwd)) if cwd is not None else ()
    return GitError(
        f"git {args[0]} failed: {_reason(done)}",
        argv=("git", *args),
        stderr=done.stderr,
        hint=shlex.join(("git", *where, *args)) if len(args) < 20 else None,
    )


def _reason(done: Finished) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
    return (fatal or lines or [f"status {done.status}"])[0]


def find_git() -> Git | None:
    """The git program on PATH, or None where there is none."""
    path = _on_path("git")
    if path is None:
        return None
    base = {name: value for name, value in os.environ.items() if name not in LOCAL_VARIABLES}
    return Git(path, base)


def _on_path(name: str) -> str | None:
    """As shutil.which, which takes 3 ms to load; None where it is not, or PATH is empty."""
    path = os.environ.get("PATH", os.defpath)
    for folder in path.split(os.pathsep) if path else ():
        file = os.path.join(folder, name)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return None
