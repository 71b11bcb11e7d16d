"""Nodes that do nothing of their own: start, exit, conditional. Routing does the rest."""

from __future__ import annotations

from git_fabro.handlers.call import Call, Result
from git_fabro.workflow.state import SUCCESS, Outcome


def run(call: Call) -> Result:
    """Success, at once."""
    return Result(Outcome(status=SUCCESS))
