"""Times as records hold them."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(when: datetime) -> str:
    """A time as records hold it: RFC 3339, UTC, milliseconds, 24 characters."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z"


def moment(text: str) -> datetime:
    """The time that a stamp says."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def stamp_of(when: int) -> str:
    """The stamp of a time in whole seconds since the epoch."""
    return stamp(datetime.fromtimestamp(when, UTC))
