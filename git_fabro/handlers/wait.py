"""Nodes that let time pass: the deadline is recorded, so a resume waits for the rest only."""

from __future__ import annotations

import time

from git_fabro.handlers.call import Call, Interrupted, Result
from git_fabro.workflow.state import SUCCESS, Outcome

#: A clock that is set while we wait is noticed this soon.
_LONGEST_WAIT_S = 60.0


def run(call: Call) -> Result:
    """Success, once the deadline has passed.

    Raises:
        Interrupted: ``call.stop`` was set before.
    """
    while (left_s := (call.deadline or 0.0) - time.time()) > 0:
        if call.stop.wait(min(left_s, _LONGEST_WAIT_S)):
            raise Interrupted(call.stop.reason)
    return Result(Outcome(status=SUCCESS))
