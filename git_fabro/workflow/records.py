"""The kinds of records: what can be said about a run. Names of fields are the names on disk.

A field whose name is a Python keyword carries a trailing underscore, which is not part of the name.
Source: the manual, git-fabro-format(5), "Records".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from git_fabro.workflow.state import EVENT_CONTRACT, Json, Option, Outcome, Position

Origin = Literal["external", "core"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSummary:
    name: str = ""
    goal: str = ""
    nodes: int = 0
    edges: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCreated:
    kind: ClassVar[str] = "run.created"
    origin: ClassVar[Origin] = "external"
    run_id: str
    created_at: str
    digest: str
    settings: Mapping[str, Json] = field(default_factory=dict)
    graph: GraphSummary = GraphSummary()
    includes: Mapping[str, str] = field(default_factory=dict)
    workflow_slug: str = ""
    workflow_file: str = ""
    working_directory: str = "."
    host_repo_path: str | None = None
    base_branch: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    parent: Mapping[str, Json] | None = None
    contract: int = EVENT_CONTRACT
    context: Mapping[str, Json] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    authority: str = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    kind: ClassVar[str] = "run.started"
    origin: ClassVar[Origin] = "core"
    start: str
    mode: str = "run"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """``again`` names the visits that run anew, ``["plan@2"]``."""

    kind: ClassVar[str] = "run.resumed"
    origin: ClassVar[Origin] = "external"
    after: int
    commit: str | None = None
    files: str = "verified"
    again: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBranch:
    kind: ClassVar[str] = "run.branch"
    origin: ClassVar[Origin] = "external"
    run_branch: str
    base_sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GitIdentity:
    kind: ClassVar[str] = "git.identity"
    origin: ClassVar[Origin] = "external"
    name: str
    email: str
    source: str = "git"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted:
    kind: ClassVar[str] = "node.started"
    origin: ClassVar[Origin] = "external"
    handler: str
    fidelity: str = ""
    thread: str = ""
    deadline: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFailed:
    """A retry is scheduled; the position's attempt is the one that ended."""

    kind: ClassVar[str] = "node.attempt_failed"
    origin: ClassVar[Origin] = "external"
    outcome: Outcome
    duration_ms: int
    draw: float
    delay_ms: int
    retry_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """Where the line goes: ``edge`` is an index in file order, None for a jump."""

    node: str
    edge: int | None = None
    loop_restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One failure more in a table, ``loop`` or ``restart``."""

    table: str
    signature: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished:
    """A node ended and routing chose what follows; ``unhandled`` is the whole list afterwards."""

    kind: ClassVar[str] = "node.finished"
    origin: ClassVar[Origin] = "external"
    handler: str
    outcome: Outcome
    attempts: int = 1
    duration_ms: int = 0
    counted: Counted | None = None
    next: Next | None = None
    reason: str = ""
    draw: float | None = None
    unhandled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    kind: ClassVar[str] = "question.asked"
    origin: ClassVar[Origin] = "core"
    question: str
    ask: int
    text: str
    options: tuple[Option, ...] = ()
    freeform: bool = False
    default: str | None = None
    deadline: str | None = None
    sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    name: str
    email: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """``choice`` None means the freeform edge."""

    kind: ClassVar[str] = "question.answered"
    origin: ClassVar[Origin] = "external"
    question: str
    ask: int
    asked_seq: int
    choice: str | None = None
    label: str = ""
    target: str = ""
    text: str | None = None
    principal: Principal | None = None
    channel: str = "terminal"
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionExpired:
    kind: ClassVar[str] = "question.expired"
    origin: ClassVar[Origin] = "external"
    question: str
    ask: int
    asked_seq: int
    waited_ms: int
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCancelled:
    kind: ClassVar[str] = "question.cancelled"
    origin: ClassVar[Origin] = "external"
    question: str
    ask: int
    asked_seq: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRefused:
    kind: ClassVar[str] = "question.refused"
    origin: ClassVar[Origin] = "external"
    question: str
    ask: int
    asked_seq: int
    reason: str = ""
    principal: Principal | None = None
    channel: str = "command"
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPlan:
    id: str
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelStarted:
    kind: ClassVar[str] = "parallel.started"
    origin: ClassVar[Origin] = "core"
    base_sha: str | None
    join: str
    join_policy: str
    max_parallel: int
    branches: tuple[BranchPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFinished:
    """The position is the parallel node's, with the branch; ``context``: the keys it changed."""

    kind: ClassVar[str] = "branch.finished"
    origin: ClassVar[Origin] = "core"
    id: str
    status: str
    head_sha: str | None = None
    nodes: tuple[str, ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict)
    failure: Mapping[str, Json] | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelFinished:
    kind: ClassVar[str] = "parallel.finished"
    origin: ClassVar[Origin] = "core"
    status: str
    won: str | None = None
    branches: tuple[str, ...] = ()
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSummary:
    files: int = 0
    added: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMade:
    """The former commit, told afterwards; ``ordinal`` is None on a branch."""

    kind: ClassVar[str] = "checkpoint"
    origin: ClassVar[Origin] = "external"
    git_commit_sha: str
    meta_commit_sha: str | None
    ordinal: int | None
    diff_summary: DiffSummary = DiffSummary()
    patch_blob: str | None = None
    cause: str = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactCollected:
    kind: ClassVar[str] = "artifact.collected"
    origin: ClassVar[Origin] = "external"
    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    kind: ClassVar[str] = "run.diff"
    origin: ClassVar[Origin] = "external"
    base_sha: str
    head_sha: str
    diff_summary: DiffSummary = DiffSummary()
    patch_blob: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNotice:
    kind: ClassVar[str] = "run.notice"
    origin: ClassVar[Origin] = "external"
    level: str
    code: str
    message: str
    details: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaused:
    kind: ClassVar[str] = "run.paused"
    origin: ClassVar[Origin] = "external"
    channel: str = "command"
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunUnpaused:
    kind: ClassVar[str] = "run.unpaused"
    origin: ClassVar[Origin] = "external"
    channel: str = "command"
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStopped:
    kind: ClassVar[str] = "run.stopped"
    origin: ClassVar[Origin] = "external"
    cause: str
    interrupted: tuple[str, ...] = ()
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRewound:
    kind: ClassVar[str] = "run.rewound"
    origin: ClassVar[Origin] = "external"
    ordinal: int
    git_commit_sha: str
    meta_commit_sha: str
    left: Mapping[str, Json]
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForked:
    kind: ClassVar[str] = "run.forked"
    origin: ClassVar[Origin] = "external"
    from_: Mapping[str, Json]
    run_id: str
    changes: Mapping[str, Json] = field(default_factory=dict)
    contract: int = EVENT_CONTRACT
    authority: str = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    kind: ClassVar[str] = "run.finished"
    origin: ClassVar[Origin] = "core"
    status: str
    reason: str = ""
    unhandled: tuple[str, ...] = ()
    duration_ms: int = 0
    head_sha: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunApplied:
    kind: ClassVar[str] = "run.applied"
    origin: ClassVar[Origin] = "external"
    base_branch: str
    commit: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTaken:
    kind: ClassVar[str] = "lease.taken"
    origin: ClassVar[Origin] = "external"
    owner: str
    lease: str | None
    host: str
    pid: int
    program: str
    contract: int = EVENT_CONTRACT


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseReleased:
    kind: ClassVar[str] = "lease.released"
    origin: ClassVar[Origin] = "external"
    owner: str
    lease: str | None
    reason: str
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A kind of a later version: kept, shown, counted, without effect on the state."""

    kind: str
    origin: str
    data: Mapping[str, Json] = field(default_factory=dict)


Known = (
    RunCreated
    | RunStarted
    | RunResumed
    | RunBranch
    | GitIdentity
    | NodeStarted
    | AttemptFailed
    | NodeFinished
    | QuestionAsked
    | QuestionAnswered
    | QuestionExpired
    | QuestionCancelled
    | QuestionRefused
    | ParallelStarted
    | BranchFinished
    | ParallelFinished
    | CheckpointMade
    | ArtifactCollected
    | RunDiff
    | RunNotice
    | RunPaused
    | RunUnpaused
    | RunStopped
    | RunRewound
    | RunForked
    | RunFinished
    | RunApplied
    | LeaseTaken
    | LeaseReleased
)
Event = Known | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One fact, appended in order, never changed.

    ``at`` is RFC 3339 in UTC with milliseconds, 24 characters. ``extra`` keeps keys of the data
    that this version does not know, so that nothing is lost when the record is written again.
    """

    seq: int
    at: str
    event: Event
    position: Position | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)
