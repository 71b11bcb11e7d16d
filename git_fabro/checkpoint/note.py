"""The notes of a checkpoint: what happened, for people, and the way back from its meta commit.

Source: git-fabro-format(5), "Commits".
"""

from __future__ import annotations

from git_fabro.checkpoint import codec, layout
from git_fabro.workflow.records import NodeFinished, Record


def notes_of(run: str, record: Record, commit: str, meta: str) -> dict[str, str]:
    """The notes of a checkpoint: on its run commit for people, on its meta commit the way back."""
    position, event = record.position, record.event
    if position is None or not isinstance(event, NodeFinished):
        return {}
    outcome = event.outcome
    lines = [f"{position} ({outcome.text}) in {event.duration_ms} ms"]
    if event.attempts > 1:
        lines.append(f"attempts: {event.attempts}")
    if outcome.failure is not None:
        lines.append(" ".join(outcome.failure.message.split())[:500])
    if event.next is not None:
        lines.append(f"next: {event.next.node} ({event.reason})")
    else:
        lines.append(f"the run ends here ({event.reason})")
    usage = codec.canonical(dict(outcome.usage)).decode() if outcome.usage else None
    trailers = (
        (layout.TRAILER_RUN, run),
        (layout.TRAILER_CHECKPOINT, meta),
        (layout.TRAILER_VISIT, position.visit),
        (layout.TRAILER_DURATION, f"{event.duration_ms}ms"),
        (layout.TRAILER_USAGE, usage),
    )
    block = "".join(f"{key}: {value}\n" for key, value in trailers if value is not None)
    text = "\n".join(lines)
    return {commit: f"{text}\n\n{block}", meta: f"{layout.TRAILER_COMMIT}: {commit}\n"}
