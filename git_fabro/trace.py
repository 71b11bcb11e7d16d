"""What a visit leaves to be read: the files of ``nodes/<node>/`` and the patch of its commit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.secrets import Mask
from git_fabro.workflow.records import DiffSummary

#: The files of a visit that go into Git, under these names only.
TRACE_FILES = (
    "prompt.md",
    "response.md",
    "status.json",
    "provider_used.json",
    "script_invocation.json",
    "script_timing.json",
    "parallel_results.json",
    "stdout.log",
    "stderr.log",
)
PATCH_FILE = "diff.patch"


@dataclass(frozen=True, slots=True)
class Patch:
    """What a node changed: counts, the patch as text, and its name if it is whole."""

    summary: DiffSummary = DiffSummary()
    data: bytes = b""
    blob: str | None = None
    files: tuple[str, ...] = ()


def make_patch(numstat: bytes, text: bytes, mask: Mask) -> Patch:
    """A patch from what ``git diff-tree --numstat -z`` and ``-p`` printed.

    Binary files count as files without lines. A patch that was cut has no blob name.
    """
    rows = [row for row in numstat.split(b"\0") if row.count(b"\t") >= 2]
    added = sum(_count(row.split(b"\t")[0]) for row in rows)
    deleted = sum(_count(row.split(b"\t")[1]) for row in rows)
    data, was_cut = cut(mask.data(text))
    whole = bool(data) and not was_cut
    blob = f"blob://sha256/{hashlib.sha256(data).hexdigest()}" if whole else None
    return Patch(DiffSummary(files=len(rows), added=added, deleted=deleted), data, blob)


def _count(field: bytes) -> int:
    return int(field) if field.isdigit() else 0


def cut(data: bytes, limit_bytes: int = layout.TRACE_LIMIT_BYTES) -> tuple[bytes, bool]:
    """Data of at most the limit: of more, head and tail stay and the cut is named."""
    if len(data) <= limit_bytes:
        return data, False
    half = limit_bytes // 2 - 64
    missing = len(data) - 2 * half
    return b"%b\n[... %d bytes cut ...]\n%b" % (data[:half], missing, data[-half:]), True


def trace_files(logs: Path, was_too_long: Callable[[str], None]) -> dict[str, bytes]:
    """The trace files of a visit, each within its limit.

    Args:
        logs: The visit's folder of the run directory.
        was_too_long: Takes the name of each file that was cut.
    """
    found: dict[str, bytes] = {}
    for name in TRACE_FILES:
        try:
            data = (logs / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        found[name], was_cut = cut(data)
        if was_cut:
            was_too_long(name)
    return found
