"""The errors that git-fabro raises.

::

    FabroError                     128   base; carries a hint
    ├── RequestError               128   what was asked cannot be: unknown run, bad graph
    │   └── NotFoundError          128   the thing that was named is not there
    ├── ConflictError              128   the repository is not as we read it; looking again may help
    │   ├── LeasedError            128   another process drives the run
    │   ├── StaleRefError          128   a ref no longer holds the value that was read
    │   └── BusyError              128   a lock of git's was held for longer than we waited
    ├── RecordError                128   what is stored cannot be trusted
    │   └── MissingObjectError     128   an object that is named is absent
    └── GitError                   128   git or the repository failed; carries argv and stderr

A failing node is an ``Outcome``, never one of these: an exception means that git-fabro could not do
its own job.
"""

from __future__ import annotations


class FabroError(Exception):
    """Base of all errors: a line that says what and which, and a hint: the next command."""

    status = 128

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class RequestError(FabroError):
    """What was asked cannot be."""


class NotFoundError(RequestError):
    """The thing that was named is not there."""


class ConflictError(FabroError):
    """The repository is not as it was read."""


class LeasedError(ConflictError):
    """Another process holds the run."""


class StaleRefError(ConflictError):
    """A ref does not hold the value that the caller read; nothing was moved."""


class BusyError(ConflictError):
    """A lock of git's was held for longer than we waited; nothing was moved."""


class RecordError(FabroError):
    """What is stored does not parse or does not agree with itself."""


class MissingObjectError(RecordError):
    """An object that is named is absent: a shallow clone, or damage."""


class GitError(FabroError):
    """The git program, or the repository under it, failed."""

    def __init__(
        self,
        message: str,
        *,
        argv: tuple[str, ...] = (),
        stderr: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.argv = argv
        self.stderr = stderr
