"""What a run is made of: outcomes, records, and the state that they add up to. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from git_fabro.workflow.graph import NodeId

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"

SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED = "success", "partial_success", "fail", "retry", "skipped"
STATUSES = (SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED)
GOOD = frozenset({SUCCESS, PARTIAL})

SUBMITTED, RUNNING, BLOCKED, PAUSED, STOPPED = "submitted", "running", "blocked", "paused", "stopped"
APPLIED = "applied"
ENDED = frozenset({SUCCESS, PARTIAL, FAIL, APPLIED})

DETERMINISTIC, TRANSIENT, TIMED_OUT = "deterministic", "transient_infra", "timed_out"
CANCELLED, BUDGET, STRUCTURAL, COMPILATION = (
    "cancelled",
    "budget_exhausted",
    "structural",
    "compilation_loop",
)
FAILURE_CLASSES = frozenset(
    {DETERMINISTIC, TRANSIENT, TIMED_OUT, CANCELLED, BUDGET, STRUCTURAL, COMPILATION}
)

#: The number of the record contract that this writer writes (records, 1).
EVENT_CONTRACT = 1


@dataclass(frozen=True, slots=True)
class Visit:
    """The n-th execution of a node within a run, counted from 1; written ``plan@2``."""

    node: NodeId
    number: int

    def __str__(self) -> str:
        return f"{self.node}@{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where in the run something happened.

    ``branch`` is ``split@1/api`` inside a fan-out (the innermost one), else None.
    """

    node: NodeId
    visit: int
    attempt: int = 1
    branch: str | None = None

    def __str__(self) -> str:
        return f"{self.node}@{self.visit}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a node failed. The signature is empty until the engine has counted it."""

    message: str
    failure_class: str = DETERMINISTIC
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a node came to, masked. ``word`` is a custom outcome word of an agent; status is success."""

    status: str
    word: str = ""
    context_updates: Mapping[str, Json] = field(default_factory=dict)
    preferred_label: str = ""
    suggested_next_ids: tuple[str, ...] = ()
    failure: Failure | None = None
    notes: str = ""
    files_touched: tuple[str, ...] = ()
    usage: Mapping[str, Json] | None = None

    @property
    def text(self) -> str:
        """What the context key ``outcome`` holds."""
        return self.word or self.status


def failed(message: str, *, failure_class: str = DETERMINISTIC, status: str = FAIL) -> Outcome:
    """An outcome that says no, and why."""
    return Outcome(status=status, failure=Failure(message, failure_class))
