"""Every ref, path and trailer name of git-fabro, and the grammar of ids, spelt only here."""

from __future__ import annotations

import re
from typing import Literal

from git_fabro.checkpoint.model import RunId
from git_fabro.errors import RequestError

Namespace = Literal["heads", "hidden"]

HEADS, REMOTES = "refs/heads/", "refs/remotes/"
RUN_PREFIX = "refs/heads/fabro/run/"
#: Where the Rust program had its run branches under its former name.
ARC_RUN_PREFIX = "refs/heads/arc/run/"
META_PREFIX = "refs/heads/fabro/meta/"
HIDDEN_META_PREFIX = "refs/fabro/meta/"
LEASE_PREFIX = "refs/fabro/lease/"
PARALLEL_PREFIX = "refs/fabro/parallel/"
SNAPSHOT_PREFIX = "refs/fabro/checkpoint/"
NOTES_REF = "refs/notes/fabro"
OPS_REF = "refs/fabro/ops"
PRUNED_REF = "refs/fabro/pruned"
#: Where refs of a remote stand that have no place below refs/remotes.
TRACKING_PREFIX = "refs/fabro/remotes/"
#: A ref of one of these names, or below one, leaves refs of ours no place: git has no ref below
#: another.
_FOLDERS = (RUN_PREFIX, META_PREFIX, HIDDEN_META_PREFIX, LEASE_PREFIX, PARALLEL_PREFIX)
NAMES_IN_THE_WAY = (
    *("refs/heads/fabro", "refs/fabro"),
    *(one.rstrip("/") for one in (*_FOLDERS, SNAPSHOT_PREFIX, TRACKING_PREFIX)),
)
FOLDERS_IN_THE_WAY = tuple(f"{ref}/" for ref in (NOTES_REF, PRUNED_REF, OPS_REF))
#: Push options by which somebody says that a record is to lose what the server has.
OPTION_REWIND, OPTION_PRUNE = "fabro.rewind", "fabro.prune"

RUN_JSON, START_JSON, GRAPH = "run.json", "start.json", "graph.fabro"
CHECKPOINT_JSON, RECORDS = "checkpoint.json", "records.jsonl"
NODES, ARTIFACTS = "nodes", "artifacts"

#: Fields of run.json and checkpoint.json that this writer writes; a higher number is refused.
SCHEMA = 1

TRAILER_RUN = "Fabro-Run"
TRAILER_COMPLETED = "Fabro-Completed"
TRAILER_CHECKPOINT = "Fabro-Checkpoint"
TRAILER_VISIT = "Fabro-Visit"
TRAILER_ORDINAL = "Fabro-Ordinal"
TRAILER_BRANCH = "Fabro-Branch"
TRAILER_COMMIT = "Fabro-Commit"
TRAILER_SEQ = "Fabro-Seq"
TRAILER_STATUS = "Fabro-Status"
TRAILER_DURATION = "Fabro-Duration"
TRAILER_USAGE = "Fabro-Usage"
TRAILER_INDEX = "Fabro-Index"

TRACE_LIMIT_BYTES = 512 * 1024
OFFLOAD_BYTES = 100 * 1024

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}\Z")
_FOREIGN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def make_ulid(milliseconds: int, randomness: int) -> str:
    """A ULID of 26 characters: 48 bits of time since the epoch, then 80 bits of randomness.

    Source: the ULID specification, "Binary layout and byte order" and "Encoding".
    """
    value = (milliseconds & (1 << 48) - 1) << 80 | randomness & (1 << 80) - 1
    return "".join(_CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5))


def ulid_milliseconds(ulid: str) -> int:
    """The time in a ULID, in milliseconds since the epoch."""
    value = 0
    for character in ulid[:10]:
        value = value * 32 + _CROCKFORD.index(character)
    return value


def is_ulid(text: str) -> bool:
    return _ULID.match(text) is not None


def is_run_id(text: str) -> bool:
    """Whether a text can be a run's id, ours or the Rust program's: one segment, safe in a ref."""
    return (
        _FOREIGN_ID.match(text) is not None
        and len(text) <= 100
        and ".." not in text
        and not text.endswith((".", ".lock"))
    )


def parse_run_id(text: str) -> RunId:
    """A run id.

    Raises:
        RequestError: the text cannot be one.
    """
    if not is_run_id(text):
        raise RequestError(f"not a run id: {text[:80]!r}", hint="git fabro list -a")
    return RunId(text)


def run_ref(run: RunId) -> str:
    return RUN_PREFIX + run


def run_branch(run: RunId) -> str:
    """The run branch as people write it: ``fabro/run/<id>``."""
    return f"fabro/run/{run}"


def meta_ref(run: RunId, namespace: Namespace = "heads") -> str:
    return (META_PREFIX if namespace == "heads" else HIDDEN_META_PREFIX) + run


def lease_ref(run: RunId) -> str:
    return LEASE_PREFIX + run


def branch_ref(run: RunId, branch: str) -> str:
    """The ref of a parallel branch: ``refs/fabro/parallel/<run>/split@1/api``."""
    return f"{PARALLEL_PREFIX}{run}/{branch}"


def run_of(ref: str) -> RunId | None:
    """The run whose run or metadata branch a ref is; None for any other ref."""
    for prefix in (RUN_PREFIX, META_PREFIX, HIDDEN_META_PREFIX):
        if ref.startswith(prefix) and is_run_id(ref.removeprefix(prefix)):
            return RunId(ref.removeprefix(prefix))
    return None


def remote_run(ref: str) -> tuple[str, str, RunId] | None:
    """Remote, local name of the branch and run, of a remote's branch of a run; None for others.

    ``refs/remotes/origin/fabro/run/01JK`` is ``("origin", "refs/heads/fabro/run/01JK", "01JK")``.
    """
    rest = ref.removeprefix(REMOTES)
    for prefix in (RUN_PREFIX, META_PREFIX, ARC_RUN_PREFIX):
        remote, slash, run = rest.rpartition(f"/{prefix.removeprefix(HEADS)}")
        if slash and remote and is_run_id(run):
            return remote, prefix + run, RunId(run)
    return None


def is_in_the_way(ref: str) -> bool:
    """Whether no ref of ours can be made as long as this one is there."""
    return ref in NAMES_IN_THE_WAY or ref.startswith(FOLDERS_IN_THE_WAY)


def tracking_ref(remote: str, ref: str) -> str:
    """Where this repository keeps what a remote's ref was when it was last looked at.

    ``refs/remotes/origin/fabro/run/01JK`` for a branch; for others below ``refs/fabro/remotes``:
    ``refs/fabro/remotes/origin/meta/01JK``, ``refs/fabro/remotes/origin/notes/fabro``.
    """
    if ref.startswith(HEADS):
        return f"{REMOTES}{remote}/{ref.removeprefix(HEADS)}"
    return f"{TRACKING_PREFIX}{remote}/{ref.removeprefix('refs/').removeprefix('fabro/')}"


def is_tracking(ref: str) -> bool:
    """Whether a ref only tells what a remote had."""
    return ref.startswith((REMOTES, TRACKING_PREFIX))


def local_ref(ref: str) -> str:
    """The local name of a tracking ref of a run's branch; any other ref is its own."""
    named = remote_run(ref)
    if named is not None:
        return named[1]
    _, _, run = ref.rpartition("/meta/")
    is_hidden = ref.startswith(TRACKING_PREFIX) and is_run_id(run)
    return HIDDEN_META_PREFIX + run if is_hidden else ref


def tracking_refspecs(remote: str, run: RunId | None = None) -> tuple[str, ...]:
    """Refspecs that fetch what is ours, or of one run, into its tracking places, and no other ref.

    All are patterns, so that what a remote does not have is no error.
    """
    if run is None:
        own = [RUN_PREFIX, META_PREFIX, HIDDEN_META_PREFIX, SNAPSHOT_PREFIX, PARALLEL_PREFIX]
    else:
        own = [run_ref(run), meta_ref(run), meta_ref(run, "hidden")]
        own += [snapshot_prefix(run), parallel_prefix(run)]
    shared = (NOTES_REF, PRUNED_REF)
    return tuple(f"+{ref}*:{tracking_ref(remote, ref)}*" for ref in (*own, *shared))


def snapshot_prefix(run: RunId) -> str:
    return f"{SNAPSHOT_PREFIX}{run}/"


def parallel_prefix(run: RunId) -> str:
    return f"{PARALLEL_PREFIX}{run}/"


def refs_of(run: RunId) -> tuple[str, ...]:
    """What keeps the objects of a run: its refs, or how their names begin, and the notes."""
    own = (run_ref(run), meta_ref(run), meta_ref(run, "hidden"), lease_ref(run))
    return (*own, PARALLEL_PREFIX + run, SNAPSHOT_PREFIX + run, NOTES_REF)


def notes_namespace() -> str:
    return NOTES_REF.removeprefix("refs/notes/")


def node_path(node: str, file: str) -> str:
    return f"{NODES}/{node}/{file}"


def artifact_path(name: str) -> str:
    return f"{ARTIFACTS}/{name}.json"


def collected_path(sha256: str) -> str:
    return f"{ARTIFACTS}/files/{sha256}"
