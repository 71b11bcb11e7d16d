"""Pairs of measurements: both sides in turn, A B A B, in one run; medians of the ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def compare(
    name: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    peer: str,
    pairs: int,
    parts: int = 1,
    before: Callable[[], object] = lambda: None,
) -> Row:
    """One row: the median ratio and its spread, milliseconds for each of the parts.

    ``before`` is called before each side, and is not measured.
    """
    measured = []
    for _ in range(max(pairs, 1)):
        before()
        one = timed(ours) / parts
        before()
        measured.append((one, timed(theirs) / parts))
    ratios = [one / other for one, other in measured]
    return {
        "name": name,
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "ours_ms": statistics.median(one for one, _ in measured),
        "peer_ms": statistics.median(other for _, other in measured),
        "peer": peer,
        "pairs": len(measured),
    }
