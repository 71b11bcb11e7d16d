"""Runs one program for one attempt: its group, its limits, its two streams, masked as they come."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from git_fabro.checkpoint.secrets import StreamMask
from git_fabro.errors import GitError
from git_fabro.handlers.call import Call, Interrupted
from git_fabro.handlers.guardian import PATIENCE_S, await_group, end_group, signal_group
from git_fabro.workflow.state import DETERMINISTIC, TIMED_OUT, TRANSIENT, Failure

#: A stream longer than this keeps its first and its last half (git-fabro-workflow(7)).
STREAM_BYTES = 8 * 1024 * 1024

#: How long what is left behind by a program may still write, once the program itself has ended.
_GRACE_S = 0.5

_READ_BYTES = 64 * 1024
_LONGEST_POLL_MS = 2**31 - 1

NOT_FOUND, NOT_RUNNABLE = 127, 126
#: EX_TEMPFAIL of sysexits(3).
TEMPORARY = 75

#: Colours, and what else is no text.
_UNSEEN = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program ended. ``status`` is None if a signal ended it; the streams are masked."""

    status: int | None
    signal: int | None = None
    timed_out: bool = False
    stalled: bool = False
    stdout: bytes = b""
    stderr: bytes = b""
    duration_ms: int = 0


def run_program(call: Call, argv: Sequence[str], *, stdin: bytes = b"") -> Ran:
    """Runs a program in a session of its own until it ends or is stopped; its group ends with it.

    Both streams are written, masked, to ``stdout.log`` and ``stderr.log`` of ``call.logs`` while
    the program runs. A program that cannot be started has status 127 or 126, as in a shell.

    Raises:
        Interrupted: ``call.stop`` was set; its group has ended.
    """
    try:
        call.logs.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise _no_log(exc) from exc
    begun = time.monotonic()
    with (
        _Kept(call.logs / "stdout.log", call.mask.stream()) as stdout,
        _Kept(call.logs / "stderr.log", call.mask.stream()) as stderr,
    ):
        try:
            child = _spawn(call, argv, with_stdin=bool(stdin))
        except OSError as exc:
            status = NOT_FOUND if exc.errno == errno.ENOENT else NOT_RUNNABLE
            stderr.take(f"{exc.filename or argv[0]}: {exc.strerror}\n".encode())
            return Ran(status=status, stderr=stderr.finish(), stdout=stdout.finish())
        running = _Running(call, child, (stdout, stderr), stdin, begun)
        call.groups.add(child.pid)
        try:
            running.until_ended()
        finally:
            running.end_all()
            call.groups.remove(child.pid)
        written = stdout.finish(), stderr.finish()
    if running.why == "stop":
        raise Interrupted(call.stop.reason)
    return Ran(
        status=child.returncode if child.returncode >= 0 else None,
        signal=-child.returncode if child.returncode < 0 else None,
        timed_out=running.why in ("timeout", "stall"),
        stalled=running.why == "stall",
        stdout=written[0],
        stderr=written[1],
        duration_ms=round((time.monotonic() - begun) * 1000),
    )


def failure_of(call: Call, ran: Ran, said: str | None = None) -> Failure | None:
    """Why a program counts as failed; None if it does not (git-fabro-workflow(7)).

    ``said`` is its complaint; None takes the last line of stderr, else of stdout.
    """
    if ran.stalled:
        return Failure(f"no output for {call.stall_timeout_s:g}s", TIMED_OUT)
    if ran.timed_out:
        return Failure(f"timed out after {call.timeout_s or 0:g}s", TIMED_OUT)
    if ran.status == 0:
        return None
    ended = f"exit status {ran.status}"
    if ran.status is None:
        ended = f"ended by signal {ran.signal}"
    if said is None:
        said = last_line(ran.stderr) or last_line(ran.stdout)
    failure_class = TRANSIENT if ran.status == TEMPORARY else DETERMINISTIC
    return Failure(f"{ended}: {said}" if said else ended, failure_class)


def last_line(stream: bytes) -> str:
    """The last line of a stream that says something, cut to 200 characters."""
    for line in reversed(stream.splitlines()):
        if said := _UNSEEN.sub("", line.decode("utf-8", "replace")).strip():
            return said[:200]
    return ""


def _spawn(call: Call, argv: Sequence[str], *, with_stdin: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=call.directory,
        env=dict(call.environment),
        bufsize=0,
        start_new_session=True,
    )


class _Running:
    """The loop that serves a program. ``why`` says what ended it, "" if it did so itself."""

    def __init__(
        self,
        call: Call,
        child: subprocess.Popen[bytes],
        kept: tuple[_Kept, _Kept],
        stdin: bytes,
        begun: float,
    ) -> None:
        self.why = ""
        self._call, self._child = call, child
        self._input = memoryview(stdin)
        self._heard = begun
        self._limit = begun + call.timeout_s if call.timeout_s else None
        self._kill_at: float | None = None  # set once it was asked to end
        self._grace: float | None = None  # set once it has ended
        self._poller = select.poll()
        self._streams: dict[int, _Kept] = {}
        for pipe, one in zip((child.stdout, child.stderr), kept, strict=True):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._streams[pipe.fileno()] = one
            self._poller.register(pipe, select.POLLIN)
        self._poller.register(call.stop.fileno(), select.POLLIN)
        self._ended = _exit_descriptor(child)
        self._poller.register(self._ended, select.POLLIN)
        if child.stdin:
            os.set_blocking(child.stdin.fileno(), False)
            self._poller.register(child.stdin, select.POLLOUT)

    def until_ended(self) -> None:
        """Returns when the program has ended and its pipes are closed or were given up."""
        while self._grace is None or (self._streams and time.monotonic() < self._grace):
            for descriptor, _ in self._poller.poll(self._pause_ms()):
                self._serve(descriptor)
            if self._grace is None:
                self._watch()

    def end_all(self) -> None:
        """Leaves no process of the group, and no descriptor, behind."""
        if self._grace is None:
            signal_group(self._child.pid, signal.SIGKILL)
        self._child.wait()
        if self._kill_at is None:
            end_group(self._child.pid)
        else:
            await_group(self._child.pid, patience_s=self._kill_at - time.monotonic())
        for descriptor in tuple(self._streams):
            self._read(descriptor)
        os.close(self._ended)
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe:
                pipe.close()

    def _serve(self, descriptor: int) -> None:
        if descriptor in self._streams:
            self._read(descriptor)
        elif descriptor == self._ended:
            self._poller.unregister(descriptor)
            self._grace = time.monotonic() + _GRACE_S
        elif descriptor == self._call.stop.fileno():
            self._poller.unregister(descriptor)
            self._ask("stop")
        else:
            self._feed(descriptor)

    def _watch(self) -> None:
        """Ends a program whose time is up."""
        now = time.monotonic()
        if self._kill_at is not None:
            if now >= self._kill_at:
                signal_group(self._child.pid, signal.SIGKILL)
        elif self._limit is not None and now >= self._limit:
            self._ask("timeout")
        elif self._call.stall_timeout_s and now >= self._heard + self._call.stall_timeout_s:
            self._ask("stall")

    def _ask(self, why: str) -> None:
        if self._kill_at is None and self._grace is None:
            self.why = why
            self._kill_at = time.monotonic() + PATIENCE_S
            signal_group(self._child.pid, signal.SIGTERM)

    def _pause_ms(self) -> int | None:
        """Until something is due; None: only an event ends it."""
        stall = self._call.stall_timeout_s
        if self._grace is not None:
            due = [self._grace]
        elif self._kill_at is not None:
            due = [max(self._kill_at, time.monotonic() + 0.1)]
        else:
            due = [] if self._limit is None else [self._limit]
            due += [self._heard + stall] if stall else []
        if not due:
            return None
        return max(0, min(int((min(due) - time.monotonic()) * 1000) + 1, _LONGEST_POLL_MS))

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        self._heard = time.monotonic()
        if chunk:
            self._streams[descriptor].take(chunk)
        else:
            self._poller.unregister(descriptor)
            del self._streams[descriptor]

    def _feed(self, descriptor: int) -> None:
        try:
            self._input = self._input[os.write(descriptor, self._input) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = self._input[:0]  # A program need not read what it is given.
        if not self._input and self._child.stdin:
            self._poller.unregister(descriptor)
            self._child.stdin.close()


def _exit_descriptor(child: subprocess.Popen[bytes]) -> int:
    """A descriptor that becomes readable when the process ends."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # An old kernel, or a sandbox that forbids it.
            return os.pidfd_open(child.pid)
    read, write = os.pipe()

    def wait() -> None:
        child.wait()
        os.close(write)

    threading.Thread(target=wait, daemon=True).start()
    return read


class _Kept:
    """One stream: masked into its file as it comes, and in memory; of too much, head and tail."""

    def __init__(self, path: Path, mask: StreamMask) -> None:
        self._mask = mask
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise _no_log(exc) from exc
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0

    def __enter__(self) -> _Kept:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def take(self, chunk: bytes) -> None:
        self._keep(self._mask.feed(chunk))

    def finish(self) -> bytes:
        """The whole stream, or its two ends with a line between that names what was cut."""
        self._keep(self._mask.finish())
        if self._size <= STREAM_BYTES:
            return bytes(self._head + self._tail)
        cut = b"\n[git-fabro: %d bytes cut]\n" % (self._size - STREAM_BYTES)
        end = cut + self._tail[-STREAM_BYTES // 2 :]
        os.ftruncate(self._file, len(self._head))
        os.lseek(self._file, len(self._head), os.SEEK_SET)
        _write(self._file, end)
        return bytes(self._head + end)

    def _keep(self, shown: bytes) -> None:
        # What attach follows stops growing at the limit; the end brings the last half.
        _write(self._file, shown[: max(0, STREAM_BYTES - self._size)])
        self._size += len(shown)
        room = STREAM_BYTES // 2 - len(self._head)
        self._head += shown[:room]
        self._tail += shown[room:]
        if len(self._tail) > STREAM_BYTES:
            del self._tail[: -STREAM_BYTES // 2]


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as exc:
        raise _no_log(exc) from exc


def _no_log(exc: OSError) -> GitError:
    where = f": {exc.filename}" if exc.filename else ""
    return GitError(
        f"cannot write the log of a node: {exc.strerror}{where}",
        hint="git fabro resume, once it can",
    )
