"""What a visit leaves to be read: the files of ``nodes/<node>/`` and the patch of its commit."""

from __future__ import annotations

import hashlib
import os
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


def make_patch(printed: bytes, mask: Mask) -> Patch:
    """A patch from what ``git diff-tree --numstat -p`` printed: counts, a blank line, the patch.

    Binary files count as files without lines. A patch that was cut has no blob name.
    """
    counts, _, text = printed.partition(b"\n\n")
    rows = [row.split(b"\t", 2) for row in counts.split(b"\n") if row.count(b"\t") >= 2]
    summary = DiffSummary(
        files=len(rows),
        added=sum(int(row[0]) for row in rows if row[0].isdigit()),
        deleted=sum(int(row[1]) for row in rows if row[1].isdigit()),
    )
    data, was_cut = cut(mask.data(text))
    whole = bool(data) and not was_cut
    blob = f"blob://sha256/{hashlib.sha256(data).hexdigest()}" if whole else None
    return Patch(summary, data, blob)


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
    try:
        there = set(os.listdir(logs))
    except (FileNotFoundError, NotADirectoryError):
        return found
    for name in TRACE_FILES:
        if name not in there:
            continue
        try:
            data = (logs / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        found[name], was_cut = cut(data)
        if was_cut:
            was_too_long(name)
    return found
