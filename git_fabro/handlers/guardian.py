"""Process groups that must not outlive their driver: who ends them, and what a killed one leaves.

Source: setsid(2), kill(2), proc(5).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: Between the request to end and the end (git-fabro-workflow(7)).
PATIENCE_S = 5.0

_PROC = Path("/proc")

#: Reads ``+PGID`` and ``-PGID`` until its driver is gone, then ends what is still listed.
_GUARDIAN = """
groups=
while read -r line; do
    group=${line#?} rest=
    for one in $groups; do [ "$one" = "$group" ] || rest="$rest $one"; done
    case $line in +*) rest="$rest $group" ;; esac
    groups=$rest
done
[ "$groups" ] || exit 0
for one in $groups; do kill -TERM "-$one"; kill -CONT "-$one"; done
for second in PATIENCE; do
    for one in $groups; do kill -0 "-$one" && sleep 1 && break; done
done
for one in $groups; do kill -KILL "-$one"; done
""".replace("PATIENCE", " ".join("x" * round(PATIENCE_S)))


@dataclass(frozen=True, slots=True)
class Process:
    """A process that can be told from a later one of the same number."""

    pid: int
    start: str  # of proc(5), in clock ticks since boot; "" where there is no /proc


class Guardian:
    """Lists the running groups where a killed driver's guardian and its successor find them.

    The guardian process begins with the first group and ends by itself when ``close`` is called or
    when this process dies, whatever killed it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._groups: dict[int, Process] = {}
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, pid: int) -> None:
        with self._lock:
            self._groups[pid] = Process(pid, start_time(pid))
            self._tell(b"+%d\n" % pid)
            self._write()

    def remove(self, pid: int) -> None:
        with self._lock:
            self._groups.pop(pid, None)
            self._tell(b"-%d\n" % pid)
            # The file is left for the next group: an entry counts only while its process lives.

    def close(self) -> None:
        """Ends the guardian process, and with it every group that is still listed."""
        with self._lock:
            process, self._process = self._process, None
        if process and process.stdin:
            process.stdin.close()
            process.wait()
        self._path.unlink(missing_ok=True)

    def _tell(self, line: bytes) -> None:
        if self._process is None or not _sent(self._process, line):
            # One that somebody killed is replaced, and learns of all groups there are.
            self._process = _start()
            _sent(self._process, b"".join(b"+%d\n" % group for group in self._groups))

    def _write(self) -> None:
        groups = [{"pid": one.pid, "start": one.start} for one in self._groups.values()]
        fresh = f"{self._path}.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(descriptor, json.dumps(groups).encode())
        os.close(descriptor)
        os.replace(fresh, self._path)


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", _GUARDIAN],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.defpath},
        bufsize=0,
        start_new_session=True,
    )


def _sent(process: subprocess.Popen[bytes], line: bytes) -> bool:
    assert process.stdin is not None
    if process.poll() is not None:
        return False
    try:
        process.stdin.write(line)
    except BrokenPipeError:
        return False
    return True


def end_leftovers(path: Path, run_id: str) -> tuple[int, ...]:
    """Ends what a killed driver left running, waits until it is gone, and names it: pids, sorted.

    That is each group in the file ``group`` whose leader is still the one that was written down,
    and each process of this user with the run's ``FABRO_RUN_ID`` in its environment, so that one
    which made a session of its own is found too. Never this process or one it descends from.
    """
    ours = set(_ancestors(os.getpid()))
    written = [one for one in _written(path) if one.start]

    def find() -> set[int]:
        groups = [one.pid for one in written if start_time(one.pid) == one.start]
        found = {pid for group in groups for pid in members(group)}
        return (found | set(_with_run_id(run_id))) - ours

    ended = _end(find)
    path.unlink(missing_ok=True)
    return tuple(sorted(ended))


def end_group(group: int) -> None:
    """Asks a group to end, and kills what is left of it when patience is used up."""
    if signal_group(group, signal.SIGTERM):
        await_group(group, patience_s=PATIENCE_S)


def await_group(group: int, *, patience_s: float) -> None:
    """Waits for a group that was asked to end, and kills what is left of it then."""
    if signal_group(group, 0):
        _end(lambda: set(members(group)), asked=set(members(group)), patience_s=patience_s)


def signal_group(group: int, number: int) -> bool:
    """Sends a signal to a group; whether there was one."""
    try:
        os.killpg(group, number)
        if number == signal.SIGTERM:
            os.killpg(group, signal.SIGCONT)  # A stopped process does not see the request.
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _end(
    find: Callable[[], set[int]], *, asked: set[int] | None = None, patience_s: float = PATIENCE_S
) -> set[int]:
    """Ends all that find() finds, also what appears meanwhile; what was ended.

    There is no event for the end of a process that is no child: it is looked for, ever less often.
    """
    asked = asked or set()
    deadline = time.monotonic() + patience_s
    pause_s = 0.001
    while (found := find()) and time.monotonic() < deadline + PATIENCE_S:
        late = time.monotonic() >= deadline
        for pid in found if late else found - asked:
            for number in (signal.SIGKILL,) if late else (signal.SIGTERM, signal.SIGCONT):
                _signal(pid, number)
        asked |= found
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 0.05)
    return asked


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def members(group: int) -> list[int]:
    """The living processes of a group. Without /proc: its leader's id while the group is there."""
    if not _PROC.is_dir():
        return [group] if signal_group(group, 0) else []
    return [pid for pid in _processes() if (stat := _stat(pid)) and stat[2] == str(group)]


def start_time(pid: int) -> str:
    """When a process began, in the kernel's clock ticks; "" if it is gone or cannot be known."""
    stat = _stat(pid)
    return stat[19] if stat else ""


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None if the process is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rfind(")") + 2 :].split()
    return fields if len(fields) > 19 and fields[0] not in "ZX" else None


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir(_PROC) if name.isdigit())


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        stat = _stat(pid)
        pid = int(stat[1]) if stat else 0


def _with_run_id(run_id: str) -> Iterator[int]:
    wanted = f"FABRO_RUN_ID={run_id}".encode()
    for pid in _processes() if _PROC.is_dir() else ():
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue  # It is gone, or another user's.
        if wanted in environment.split(b"\0") and _stat(pid):
            yield pid


def _written(path: Path) -> Iterable[Process]:
    try:
        rows = json.loads(path.read_text())
        return [Process(int(row["pid"]), str(row["start"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError):
        return []
