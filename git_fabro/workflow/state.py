"""What a run is made of: outcomes, records, and the state that they add up to. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from git_fabro.workflow.graph import NodeId

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED = "success", "partial_success", "fail", "retry", "skipped"
STATUSES = (SUCCESS, PARTIAL, FAIL, RETRY, SKIPPED)
GOOD = frozenset({SUCCESS, PARTIAL})

SUBMITTED, RUNNING, BLOCKED, PAUSED, STOPPED = (
    "submitted",
    "running",
    "blocked",
    "paused",
    "stopped",
)
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

#: The number of the record contract that this writer writes (git-fabro-format(5)).
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
    """What a node came to, masked. With a custom outcome ``word`` the status is success."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where one thread of execution stands: the run itself, or one branch of a fan-out.

    ``failure`` is the visit whose failure a conditional still has to route. ``ended`` says why
    nothing follows (the reason of the last ``node.finished``), "" while something does.
    ``open_visit`` is the visit that has begun and not ended, "" between two.
    """

    current_node: NodeId | None = None
    next_node_id: NodeId | None = None
    next_edge: int | None = None
    completed_nodes: tuple[str, ...] = ()
    node_retries: Mapping[str, int] = field(default_factory=dict)
    node_outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    node_visits: Mapping[str, int] = field(default_factory=dict)
    context_values: Mapping[str, Json] = field(default_factory=dict)
    loop_failure_signatures: Mapping[str, int] = field(default_factory=dict)
    restart_failure_signatures: Mapping[str, int] = field(default_factory=dict)
    unhandled: tuple[str, ...] = ()
    failure: str | None = None
    ended: str = ""
    open_visit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What ended a question: ``how`` is answered, expired, refused or cancelled."""

    how: str
    choice: str | None = None
    label: str = ""
    target: str = ""
    text: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One choice of a gate."""

    key: str
    label: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A question of the run, from its being asked until the gate's attempt ends."""

    ask: int
    asked_seq: int
    asked_at: str
    node: NodeId
    visit: int
    attempt: int
    branch: str | None
    text: str
    options: tuple[Option, ...] = ()
    freeform: bool = False
    default: str | None = None
    deadline: str | None = None
    sensitive: bool = False
    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One branch of a fan-out; ``status`` is "" until it has ended."""

    status: str = ""
    parent: str | None = None
    line: Line = Line()
    head_sha: str | None = None
    nodes: tuple[str, ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict)
    failure: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFanOut:
    """A fan-out from its start until the parallel node has finished."""

    base_sha: str | None
    join: NodeId
    join_policy: str
    max_parallel: int
    started_at: str
    branches: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    status: str = ""
    won: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Where a run stands: the fold of all its records.

    Keyed by visit (``plan@2``): ``deadlines`` (RFC 3339), ``attempts`` (failed so far in the open
    visit), ``fan_outs``, ``gates``. ``branches`` is keyed by ``split@1/api``.
    """

    seq: int = 0
    timestamp: str = ""
    status: str = SUBMITTED
    reason: str = ""
    started_at: str = ""
    line: Line = Line()
    initial_context: Mapping[str, Json] = field(default_factory=dict)
    gates: Mapping[str, Gate] = field(default_factory=dict)
    deadlines: Mapping[str, str] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    fan_outs: Mapping[str, OpenFanOut] = field(default_factory=dict)
    branches: Mapping[str, Branch] = field(default_factory=dict)

    def line_of(self, branch: str | None) -> Line:
        """The line of a branch, or the run's own for None."""
        return self.line if branch is None else self.branches[branch].line
