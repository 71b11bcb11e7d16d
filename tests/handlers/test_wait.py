"""Waiting for a deadline, and being asked to stop meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from git_fabro.handlers import wait
from git_fabro.handlers.call import Interrupted, Stop
from git_fabro.workflow.state import SUCCESS, Outcome
from tests.handlers.calls import a_call


def test_a_deadline_that_has_passed_is_not_waited_for(tmp_path: Path) -> None:
    call = a_call(tmp_path, deadline=1.0)

    assert wait.run(call).outcome == Outcome(status=SUCCESS)


def test_success_comes_no_sooner_than_the_deadline(tmp_path: Path) -> None:
    call = a_call(tmp_path, deadline=time.time() + 0.05)

    wait.run(call)

    assert time.time() >= call.deadline


def test_a_stop_ends_the_waiting(tmp_path: Path) -> None:
    stop = Stop()
    call = a_call(tmp_path, deadline=time.time() + 600, stop=stop)
    threading.Thread(target=stop.set, args=("stop",)).start()

    with pytest.raises(Interrupted, match="stop"):
        wait.run(call)
