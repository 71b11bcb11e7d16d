"""Programs, run for real: their streams, their limits, and that nothing of them stays."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from git_fabro.handlers.call import Interrupted, Stop
from git_fabro.handlers.process import STREAM_BYTES, run_program
from tests.handlers.calls import Groups, a_call, is_running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def read_when_written(path: Path) -> str:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text()


def test_a_program_has_its_status_and_both_streams(tmp_path: Path) -> None:
    call = a_call(tmp_path)

    ran = run_program(call, sh("echo out; echo err >&2; exit 3"))

    assert replace(ran, duration_ms=0) == replace(
        ran,
        status=3,
        signal=None,
        timed_out=False,
        stalled=False,
        stdout=b"out\n",
        stderr=b"err\n",
        duration_ms=0,
    )
    assert (tmp_path / "logs" / "stdout.log").read_bytes() == b"out\n"
    assert (tmp_path / "logs" / "stderr.log").read_bytes() == b"err\n"


def test_a_program_has_its_folder_its_environment_and_nothing_else(tmp_path: Path) -> None:
    call = a_call(tmp_path, environment={"PATH": "/usr/bin:/bin", "ONE": "1"})

    ran = run_program(call, ["env"])
    where = run_program(call, ["pwd"])

    assert sorted(ran.stdout.decode().split()) == ["ONE=1", "PATH=/usr/bin:/bin"]
    assert where.stdout.decode().strip() == str(tmp_path / "work")


def test_stdin_is_empty_unless_given(tmp_path: Path) -> None:
    assert run_program(a_call(tmp_path), ["cat"]).stdout == b""


@pytest.mark.parametrize("size", [1, 65_536, 3_000_000])
def test_what_is_given_to_stdin_arrives_while_output_is_read(tmp_path: Path, size: int) -> None:
    given = (b"0123456789abcde\n" * (size // 16 + 1))[:size]

    assert run_program(a_call(tmp_path), ["cat"], stdin=given).stdout == given


def test_a_program_need_not_read_its_stdin(tmp_path: Path) -> None:
    ran = run_program(a_call(tmp_path), sh("exec <&-; echo done"), stdin=b"x" * 1_000_000)

    assert (ran.status, ran.stdout) == (0, b"done\n")


def test_a_signal_is_no_status(tmp_path: Path) -> None:
    ran = run_program(a_call(tmp_path), sh("kill -9 $$"))

    assert (ran.status, ran.signal, ran.timed_out) == (None, 9, False)


@pytest.mark.parametrize(("mode", "status"), [(None, 127), (0o644, 126)])
def test_a_program_that_cannot_be_started_ends_as_in_a_shell(tmp_path, mode, status) -> None:
    program = tmp_path / "program"
    if mode:
        program.write_text("#!/bin/sh\n")
        program.chmod(mode)

    ran = run_program(a_call(tmp_path), [str(program)])

    assert ran.status == status
    assert ran.stderr.startswith(f"{program}: ".encode())


def test_streams_are_masked_in_memory_and_on_disk(tmp_path: Path) -> None:
    ran = run_program(
        a_call(tmp_path), sh("printf hunt; printf er22; echo AKIAIOSFODNN7EXAMPLE >&2")
    )

    assert (ran.stdout, ran.stderr) == (b"***", b"***\n")
    assert (tmp_path / "logs" / "stdout.log").read_bytes() == b"***"
    assert (tmp_path / "logs" / "stderr.log").read_bytes() == b"***\n"


def test_output_can_be_followed_while_the_program_runs(tmp_path: Path) -> None:
    call = a_call(tmp_path)
    followed: list[str] = []

    def follow() -> None:
        followed.append(read_when_written(tmp_path / "logs" / "stdout.log"))
        (tmp_path / "work" / "go").touch()

    watcher = threading.Thread(target=follow)
    watcher.start()
    run_program(call, sh("echo first; until [ -e go ]; do sleep 0.01; done; echo second"))
    watcher.join()

    assert followed == ["first\n"]


@pytest.mark.parametrize(("over", "cut"), [(0, 0), (1, 1), (5_000_000, 5_000_000)])
def test_a_long_stream_keeps_its_two_ends(tmp_path: Path, over: int, cut: int) -> None:
    half = STREAM_BYTES // 2
    script = f"import os;os.write(1,b'a'*{half});os.write(1,b'b'*{over});os.write(1,b'c'*{half})"

    ran = run_program(a_call(tmp_path), [sys.executable, "-c", script])

    line = b"\n[git-fabro: %d bytes cut]\n" % cut if cut else b""
    assert ran.stdout == b"a" * half + line + b"c" * half
    assert (tmp_path / "logs" / "stdout.log").read_bytes() == ran.stdout


def test_a_second_attempt_begins_its_logs_anew(tmp_path: Path) -> None:
    run_program(a_call(tmp_path), sh("echo a long line of the first attempt"))

    run_program(a_call(tmp_path), sh("echo 2"))

    assert (tmp_path / "logs" / "stdout.log").read_bytes() == b"2\n"


def test_a_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    groups = Groups()
    call = a_call(tmp_path, timeout_s=0.3, groups=groups)

    ran = run_program(call, sh("sleep 600 & echo $!; wait"))

    assert (ran.timed_out, ran.stalled, ran.signal) == (True, False, 15)
    assert not is_running(int(ran.stdout))
    assert len(groups.seen) == 1
    assert groups.open == set()


def test_what_a_program_says_when_it_is_asked_to_end_is_kept(tmp_path: Path) -> None:
    call = a_call(tmp_path, timeout_s=0.3)

    ran = run_program(
        call, sh("trap 'echo bye; exit 7' TERM; echo on; while :; do sleep 0.02; done")
    )

    assert (ran.status, ran.timed_out, ran.stdout) == (7, True, b"on\nbye\n")


def test_who_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    call = a_call(tmp_path, timeout_s=0.2)

    ran = run_program(call, sh("trap '' TERM; sh -c 'while :; do sleep 0.1; done' & echo $!; wait"))

    assert (ran.signal, ran.timed_out) == (9, True)
    assert not is_running(int(ran.stdout))


def test_silence_is_a_stall_and_output_is_not(tmp_path: Path) -> None:
    call = a_call(tmp_path, stall_timeout_s=0.6)

    ran = run_program(call, sh("for n in 1 2 3 4 5; do echo $n; sleep 0.2; done; exec sleep 600"))

    assert (ran.timed_out, ran.stalled, ran.stdout) == (True, True, b"1\n2\n3\n4\n5\n")


def test_a_stop_ends_the_group_and_leaves_no_outcome(tmp_path: Path) -> None:
    stop, groups = Stop(), Groups()
    call = a_call(tmp_path, stop=stop, groups=groups)
    log = tmp_path / "logs" / "stdout.log"

    def ask() -> None:
        read_when_written(log)
        stop.set("join_policy")
        stop.set("stop")

    asker = threading.Thread(target=ask)
    asker.start()
    with pytest.raises(Interrupted, match="join_policy"):
        run_program(call, sh("sleep 600 & echo $!; wait"))
    asker.join()

    assert not is_running(int(log.read_text()))
    assert groups.open == set()


def test_a_stop_that_was_set_before_ends_the_program_at_once(tmp_path: Path) -> None:
    stop = Stop()
    stop.set("lease")

    with pytest.raises(Interrupted, match="lease"):
        run_program(a_call(tmp_path, stop=stop), sh("sleep 600"))


@pytest.mark.parametrize("pipes", ["", ">/dev/null 2>&1"], ids=["holds the pipes", "does not"])
def test_what_is_left_behind_after_success_is_ended(tmp_path: Path, pipes: str) -> None:
    ran = run_program(a_call(tmp_path), sh(f"sleep 600 {pipes} & echo $!"))

    assert ran.status == 0
    assert not is_running(int(ran.stdout))


def test_one_that_left_the_group_and_holds_the_pipes_does_not_hang_us(tmp_path: Path) -> None:
    ran = run_program(a_call(tmp_path), sh("setsid sleep 3 & echo done"))

    assert (ran.status, ran.stdout) == (0, b"done\n")


def test_a_stopped_process_is_ended_too(tmp_path: Path) -> None:
    ran = run_program(a_call(tmp_path, timeout_s=0.3), sh("kill -STOP $$"))

    assert (ran.timed_out, ran.signal) == (True, 15)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    call = a_call(tmp_path)
    run_program(call, ["true"])
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(5):
        run_program(call, ["true"], stdin=b"x")
        run_program(call, ["no-such-program"])

    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_programs_run_in_several_threads(tmp_path: Path) -> None:
    calls = [a_call(tmp_path, logs=tmp_path / str(n)) for n in range(8)]
    said: dict[int, bytes] = {}

    def one(n: int) -> None:
        said[n] = run_program(calls[n], sh(f"echo {n}")).stdout

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert said == {n: f"{n}\n".encode() for n in range(8)}
