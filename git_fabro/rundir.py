"""The run directory: what is in it, and how other processes leave requests there.

Deleting it loses at most the node in flight. What the journal holds is the journal's own room.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import RunId
from git_fabro.errors import ConflictError, GitError, LeasedError, RecordError
from git_fabro.journal import JournalWriter

_REQUEST = re.compile(r"(?P<kind>answer-(?P<gate>.+)|pause|stop)\.json\Z")
_REQUEST_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """Something that another process asks of the driver; ``body`` is the file's JSON object."""

    kind: str  # answer, pause or stop
    gate: str  # of an answer, else ""
    id: str
    body: Mapping[str, object]
    path: Path


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """The paths of one run's directory."""

    path: Path

    @classmethod
    def of(cls, home: Path, run: RunId) -> RunDirectory:
        return cls(home / run)

    @property
    def journal(self) -> Path:
        return self.path / "journal.jsonl"

    @property
    def requests(self) -> Path:
        return self.path / "requests"

    @property
    def worktree(self) -> Path:
        return self.path / "worktree"

    @property
    def artifacts(self) -> Path:
        return self.path / "artifacts"

    @property
    def group(self) -> Path:
        return self.path / "group"

    @property
    def index(self) -> Path:
        """The private index of an in-place run."""
        return self.path / "index"

    def branch_worktree(self, branch: str) -> Path:
        """The work tree of ``split@1/api``."""
        return self.path / "branches" / branch

    def logs(self, visit: str) -> Path:
        return self.path / "logs" / visit

    def create(self) -> None:
        """Makes the directory, closed to others.

        Raises:
            GitError: the file system refuses.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.requests.mkdir(exist_ok=True)
            self.artifacts.mkdir(exist_ok=True)
        except OSError as exc:
            raise GitError(f"cannot make the run directory: {self.path}: {exc.strerror}") from exc

    def open_journal(self) -> JournalWriter:
        """The journal, to be appended to by the holder of the lease."""
        return JournalWriter(self.journal)

    def lock(self) -> BinaryIO:
        """Locks the directory until the file that comes back is closed, at the latest at our end.

        Raises:
            LeasedError: another process holds the lock.
        """
        file = (self.path / "lock").open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            file.close()
            raise LeasedError(
                f"run is being driven by another process: {self.path.name}",
                hint=f"git fabro attach {self.path.name}",
            ) from exc
        return file

    def is_locked(self) -> bool:
        """Whether a process holds the directory's lock now."""
        try:
            with (self.path / "lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def remove(self) -> None:
        """Removes the directory with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name: str, data: bytes) -> None:
        """Replaces one file, so that a reader sees the old or the new one whole.

        Raises:
            GitError: the file system refuses.
        """
        target = self.path / name
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            part.replace(target)
        except OSError as exc:
            raise GitError(f"cannot write: {target}: {exc.strerror}") from exc

    def write_trace(self, visit: str, files: Mapping[str, bytes]) -> None:
        """Writes files of a visit's folder; whoever reads them waits for its record.

        Raises:
            GitError: the file system refuses.
        """
        folder = self.logs(visit)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, data in files.items():
                (folder / name).write_bytes(data)
        except OSError as exc:
            raise GitError(f"cannot write: {folder}: {exc.strerror}") from exc

    def read(self, name: str) -> bytes | None:
        """The bytes of one file, None if it is not there."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise GitError(f"cannot read: {self.path / name}: {exc.strerror}") from exc

    def leave_request(self, kind: str, body: Mapping[str, object], *, gate: str = "") -> None:
        """Leaves a request for the driver. The first answer to a question stands.

        Raises:
            ConflictError: there is one already.
        """
        name = f"answer-{gate}.json" if kind == "answer" else f"{kind}.json"
        self.create()
        part = self.requests / f".{name}.{os.getpid()}.part"
        part.write_bytes(json.dumps(body).encode())
        try:
            # A link fails where a name exists, and shows the file whole: exclusive and atomic.
            os.link(part, self.requests / name)
        except FileExistsError as exc:
            what = f"an answer to {gate} waits to be read" if gate else f"{kind} is asked for"
            raise ConflictError(f"{what} already: {self.path.name}") from exc
        finally:
            part.unlink(missing_ok=True)

    def forget_controls(self) -> None:
        """Removes what was asked of a driver that is gone: a pause or a stop is for now."""
        for name in ("pause.json", "stop.json"):
            (self.requests / name).unlink(missing_ok=True)

    def pending_requests(self) -> Iterator[Request]:
        """What other processes ask for; a file that does not parse has an empty body."""
        try:
            names = sorted(os.listdir(self.requests))
        except FileNotFoundError:
            return
        for name in names:
            match = _REQUEST.match(name)
            if match is None:
                continue
            path = self.requests / name
            body = _request_body(path)
            kind = "answer" if match["gate"] else match["kind"]
            yield Request(kind, match["gate"] or "", str(body.get("id", "")), body, path)


def _request_body(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            body = codec.parse_json(file.read(_REQUEST_LIMIT_BYTES), path.name)
    except (OSError, RecordError):
        return {}
    return body if isinstance(body, dict) else {}
