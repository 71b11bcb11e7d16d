"""After an amend or a rebase: the commits that took the place of others stay checkpoints.

Standard input has a line for each: old, new.
Source: githooks(5), post-rewrite
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from git_fabro import handmade
from git_fabro.checkpoint.model import Oid, parse_oid
from git_fabro.doors import Doors
from git_fabro.jobs.hooks import byhand
from git_fabro.jobs.hooks.speaking import never_failing


def main() -> int:
    """Records what was rewritten; always 0, as nothing can stop what has happened."""
    return never_failing(_record)


def _record() -> None:
    doors = Doors.open()
    run = handmade.run_here(doors.repository)
    pairs = tuple(parse(sys.stdin.buffer))
    if run is not None and pairs:
        byhand.remap(doors, run, pairs)
    elif run is not None:
        # A hook manager kept the lines to itself: what has no record yet gets one.
        byhand.record(doors, run)


def parse(lines: Iterable[bytes]) -> Iterator[tuple[Oid, Oid]]:
    """Old and new commits, in the order in which git made the new ones.

    Raises:
        RecordError: a line does not begin with two object names.
    """
    for line in lines:
        old, _, rest = os.fsdecode(line).strip().partition(" ")
        yield parse_oid(old), parse_oid(rest.partition(" ")[0])


if __name__ == "__main__":
    raise SystemExit(main())
