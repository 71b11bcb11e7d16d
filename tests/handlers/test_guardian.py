"""Drivers that are killed, and what becomes of the groups they ran."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from git_fabro.handlers.guardian import Guardian, end_leftovers, start_time
from tests.handlers.calls import is_running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

RUN = "01JKXYZ3F9QWABCDEF12345678"

#: A driver: runs a script in a group of its own, says the pids that it prints, and waits.
DRIVER = """
import subprocess, sys
from pathlib import Path
from git_fabro.handlers.guardian import Guardian
guardian = Guardian(Path(sys.argv[1]))
child = subprocess.Popen(["sh", "-c", sys.argv[2]], stdout=subprocess.PIPE, start_new_session=True)
{add}
print(child.stdout.readline().decode(), flush=True, end="")
sys.stdin.read()
"""
ADD = "guardian.add(child.pid)"


def start_driver(path: Path, script: str, *, add: str = ADD) -> tuple[subprocess.Popen, list[int]]:
    """A driver that runs a script, and the pids that the script wrote on its first line."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER.format(add=add), str(path), script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "FABRO_RUN_ID": RUN, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
    return driver, [int(pid) for pid in driver.stdout.readline().split()]


def a_group() -> subprocess.Popen:
    """A group that stays until it is ended, and is no zombie then."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    threading.Thread(target=child.wait).start()
    return child


def kill(driver: subprocess.Popen) -> None:
    driver.kill()
    driver.wait()
    driver.stdin.close()
    driver.stdout.close()


@pytest.mark.parametrize(
    "script",
    ["sleep 600 & echo $$ $!; wait", "trap '' TERM; echo $$; while :; do sleep 0.1; done"],
    ids=["ends when asked", "must be killed"],
)
def test_groups_end_with_a_driver_that_is_killed(tmp_path: Path, script: str) -> None:
    driver, pids = start_driver(tmp_path / "group", script)

    kill(driver)

    until(lambda: not any(is_running(pid) for pid in pids))


def test_a_guardian_that_was_killed_is_replaced(tmp_path: Path) -> None:
    guardian = Guardian(tmp_path / "group")
    first, second = a_group(), a_group()
    guardian.add(first.pid)
    watcher = guardian._process
    watcher.kill()
    watcher.wait()

    guardian.add(second.pid)
    guardian.close()

    assert (first.wait(), second.wait()) == (-signal.SIGTERM, -signal.SIGTERM)
    watcher.stdin.close()


def test_a_group_that_was_removed_is_left_alone(tmp_path: Path) -> None:
    guardian = Guardian(tmp_path / "group")
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    guardian.add(child.pid)
    guardian.remove(child.pid)

    guardian.close()

    assert child.poll() is None
    child.communicate()
    assert not (tmp_path / "group").exists()


def test_the_file_names_each_running_group(tmp_path: Path) -> None:
    guardian = Guardian(tmp_path / "group")
    children = [a_group(), a_group()]

    for child in children:
        guardian.add(child.pid)

    written = json.loads((tmp_path / "group").read_text())
    assert written == [{"pid": c.pid, "start": start_time(c.pid)} for c in children]
    assert all(row["start"] for row in written)
    guardian.close()
    for child in children:
        child.wait()


@pytest.mark.parametrize("add", [ADD, ""], ids=["written down", "killed before it was"])
def test_leftovers_are_ended_even_in_a_session_of_their_own(tmp_path: Path, add: str) -> None:
    script = "setsid sleep 600 & setsid -f sleep 601; echo $$ $! $(pgrep -f '^sleep 601$'); wait"
    driver, pids = start_driver(tmp_path / "group", script, add=add)
    kill(driver)

    ended = end_leftovers(tmp_path / "group", RUN)

    assert not any(is_running(pid) for pid in pids)
    assert set(pids[1:]) <= set(ended)
    assert not (tmp_path / "group").exists()


def test_one_that_hides_its_run_is_found_by_the_file(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"]}, process_group=0)
    write(tmp_path / "group", child.pid, start_time(child.pid))

    ended = end_leftovers(tmp_path / "group", RUN)

    assert (ended, child.wait()) == ((child.pid,), -signal.SIGTERM)


@pytest.mark.parametrize("start", ["1", ""])
def test_a_pid_that_was_given_again_is_left_alone(tmp_path: Path, start: str) -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, process_group=0)
    write(tmp_path / "group", child.pid, start)

    ended = end_leftovers(tmp_path / "group", RUN)

    assert (ended, child.poll()) == ((), None)
    child.communicate()


def test_neither_this_process_nor_its_ancestors_nor_another_run_are_ended(tmp_path: Path) -> None:
    driver = (
        "import sys; from pathlib import Path;"
        "from git_fabro.handlers.guardian import end_leftovers;"
        f"print(end_leftovers(Path(sys.argv[1]), {RUN!r}))"
    )
    other = subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE, env={**os.environ, "FABRO_RUN_ID": RUN[:-1]}
    )

    done = subprocess.run(
        [
            "sh",
            "-c",
            '"$@"; echo still here',
            "sh",
            sys.executable,
            "-c",
            driver,
            tmp_path / "group",
        ],
        env={**os.environ, "FABRO_RUN_ID": RUN, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == ("()\nstill here\n", "")
    assert other.poll() is None
    other.communicate()


@pytest.mark.parametrize("text", [None, "", "{", "[1]", '[{"pid": "x", "start": ""}]', "{}"])
def test_a_file_that_says_nothing_ends_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "group").write_text(text)

    assert end_leftovers(tmp_path / "group", RUN) == ()


def write(path: Path, pid: int, start: str) -> None:
    path.write_text(json.dumps([{"pid": pid, "start": start}]))
