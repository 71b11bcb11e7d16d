"""One git process that talks to a remote: it asks nobody, and ends by itself or is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from git_fabro.checkpoint import harmless
from git_fabro.errors import GitError
from git_fabro.git.discover import Repository
from git_fabro.git.program import Finished, Git

#: How long a transport of ours may last unless ``fabro.pushTimeout`` says otherwise.
DEADLINE_S = 10.0

_GRACE_S = 1.0
_ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)
_ASKS_NOBODY = {
    "GIT_TERMINAL_PROMPT": "0",
    # Answers with nothing, so that who would ask fails at once instead.
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "force",
    "GCM_INTERACTIVE": "never",
}
_SSH = "ssh -o BatchMode=yes"


def deadline_s(repo: Repository) -> float:
    """The seconds of ``fabro.pushTimeout``; ten where it is not set, or is no time."""
    try:
        seconds = float(repo.config("fabro.pushTimeout") or DEADLINE_S)
    except ValueError:
        return DEADLINE_S
    return seconds if 0 < seconds < float("inf") else DEADLINE_S


def talk(
    repo: Repository, args: Sequence[str], remote: str, *, timeout_s: float | None
) -> Finished:
    """Run git to its end, without a terminal, an input or a question; whatever its status.

    What it printed on standard error is made harmless, and without passwords.

    Args:
        repo: Where to run.
        args: The arguments after ``git``.
        remote: Whom it talks to, for the message.
        timeout_s: After how long it is ended, with all that it started; None never.

    Raises:
        GitError: there is no git program, it could not be started, or it did not end in time.
    """
    if repo.git is None:
        raise GitError(f"git {args[0]} needs the git program: {remote}", hint="install git")
    try:
        return _talk(repo, repo.git, args, remote, timeout_s)
    except OSError as exc:
        raise GitError(f"git {args[0]} failed: {exc}", argv=("git", *args)) from exc


def _talk(
    repo: Repository, git: Git, args: Sequence[str], remote: str, timeout_s: float | None
) -> Finished:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # Files and no pipes: a daemon that ssh leaves behind would hold a pipe open for ever.
        files = (out.fileno(), err.fileno())
        with _leaving_when_asked(), _started(repo, git, args, files) as process:
            try:
                status = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise GitError(
                    f"no answer within {round(timeout_s or 0, 1):g} s: {shown(remote)}",
                    argv=("git", *args),
                    hint="git config fabro.pushTimeout SECONDS",
                ) from None
        out.seek(0)
        err.seek(0)
        said = err.read().decode(errors="replace")
        return Finished(status, out.read(), shown(said))


def shown(text: str) -> str:
    """What a remote said, or its name, fit to be printed."""
    return harmless.safe(harmless.without_password(text))


@contextmanager
def _started(
    repo: Repository, git: Git, args: Sequence[str], files: tuple[int, int]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, which has no terminal; none of it is left afterwards."""
    process = subprocess.Popen(
        git.argv(args),
        cwd=repo.work_tree or repo.git_dir,
        env=_environment(repo, git),
        stdin=subprocess.DEVNULL,
        stdout=files[0],
        stderr=files[1],
        start_new_session=True,
    )
    try:
        yield process
    except BaseException:
        _end(process)
        raise


@contextmanager
def _leaving_when_asked() -> Iterator[None]:
    """Asked to end, we leave as if interrupted: the session of git hears of no signal but ours."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Signals belong to the main thread; elsewhere whoever called us has them.
    is_ours = threading.current_thread() is threading.main_thread()
    taken = [n for n in _ASKED_TO_END if is_ours and signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _environment(repo: Repository, git: Git) -> dict[str, str]:
    environment = git.environment(git_dir=repo.git_dir, work_tree=repo.work_tree) | _ASKS_NOBODY
    own = ("GIT_SSH_COMMAND" in os.environ, "GIT_SSH" in os.environ, repo.config("core.sshCommand"))
    # Somebody's own ssh may be no ssh at all, and is left as it is; it has no terminal either.
    return environment if any(own) else environment | {"GIT_SSH_COMMAND": _SSH}


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()
