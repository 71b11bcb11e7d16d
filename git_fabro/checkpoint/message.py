"""Commit messages to values and back: subjects and trailers. Notes are ``note.py``'s.

Source: git-interpret-trailers(1); git-fabro-format(5), "Commits".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from git_fabro.checkpoint import layout

_TRAILER = re.compile(r"([A-Za-z0-9-]+): (.*)\Z")


def with_trailers(subject: str, trailers: Iterable[tuple[str, object]]) -> str:
    """A commit message: subject, blank line, one paragraph of trailers, which is the last."""
    lines = [f"{key}: {value}" for key, value in trailers if value is not None]
    return "\n".join([" ".join(subject.split()), "", *lines]) + "\n"


def trailers_of(message: str) -> dict[str, str]:
    """The trailers of the final paragraph; empty if that is no block of trailers.

    Source: git-interpret-trailers(1); of a key that stands twice the last counts.
    """
    paragraphs = message.rstrip("\n").split("\n\n")
    if len(paragraphs) < 2:
        return {}
    found: dict[str, str] = {}
    for line in paragraphs[-1].split("\n"):
        match = _TRAILER.match(line)
        if match is None:
            return {}
        found[match[1]] = match[2].strip()
    return found


class CheckpointTrailers(NamedTuple):
    """What a run commit says of itself."""

    run: str
    node: str
    status: str
    completed: int
    checkpoint: str
    visit: int
    ordinal: int | None
    branch: str | None


_SUBJECT = re.compile(r"fabro\((?P<run>[^)]*)\): (?P<node>.*) \((?P<status>[^()]*)\)\Z")


def checkpoint_message(trailers: CheckpointTrailers) -> str:
    """The message of a run commit or branch commit."""
    return with_trailers(
        f"fabro({trailers.run}): {trailers.node} ({trailers.status})",
        (
            (layout.TRAILER_RUN, trailers.run),
            (layout.TRAILER_COMPLETED, trailers.completed),
            (layout.TRAILER_CHECKPOINT, trailers.checkpoint),
            (layout.TRAILER_VISIT, trailers.visit),
            (layout.TRAILER_ORDINAL, trailers.ordinal),
            (layout.TRAILER_BRANCH, trailers.branch),
        ),
    )


def parse_checkpoint_message(message: str) -> CheckpointTrailers | None:
    """What a commit message of ours says, or None if it is no checkpoint's."""
    match = _SUBJECT.match(message.split("\n", 1)[0])
    trailers = trailers_of(message)
    if match is None or layout.TRAILER_CHECKPOINT not in trailers:
        return None
    numbers = {
        key: _number(trailers.get(key))
        for key in (layout.TRAILER_COMPLETED, layout.TRAILER_VISIT, layout.TRAILER_ORDINAL)
    }
    return CheckpointTrailers(
        run=trailers.get(layout.TRAILER_RUN, match["run"]),
        node=match["node"],
        status=match["status"],
        completed=numbers[layout.TRAILER_COMPLETED] or 0,
        checkpoint=trailers[layout.TRAILER_CHECKPOINT],
        visit=numbers[layout.TRAILER_VISIT] or 1,
        ordinal=numbers[layout.TRAILER_ORDINAL],
        branch=trailers.get(layout.TRAILER_BRANCH),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,12}", text) else None


def meta_message(
    subject: str,
    *,
    run: str,
    seq: int,
    status: str,
    commit: str | None = None,
    ordinal: int | None = None,
) -> str:
    """The message of a meta commit; commit and ordinal where it names a commit made by hand."""
    return with_trailers(
        subject,
        (
            (layout.TRAILER_RUN, run),
            (layout.TRAILER_SEQ, seq),
            (layout.TRAILER_STATUS, status),
            (layout.TRAILER_COMMIT, commit),
            (layout.TRAILER_ORDINAL, ordinal),
        ),
    )


def notes_by_hand(run: str, commit: str, meta: str) -> dict[str, str]:
    """The notes of a checkpoint made by hand: on the commit for people, on its meta commit the way
    back.
    """
    block = f"{layout.TRAILER_RUN}: {run}\n{layout.TRAILER_CHECKPOINT}: {meta}\n"
    return {commit: f"made by hand\n\n{block}", meta: f"{layout.TRAILER_COMMIT}: {commit}\n"}
