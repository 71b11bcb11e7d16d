"""After a commit: one made by hand on the branch of a run becomes a checkpoint.

Source: githooks(5), post-commit
"""

from __future__ import annotations

from git_fabro.doors import Doors
from git_fabro.git.discover import in_progress
from git_fabro.jobs.hooks import byhand
from git_fabro.jobs.hooks.speaking import never_failing


def main() -> int:
    """Records what was committed; always 0, as nothing can stop a commit that is made."""
    return never_failing(_record)


def _record() -> None:
    doors = Doors.open()
    run = byhand.run_here(doors)
    # A rebase or a series of picks tells of its commits once, when it is done.
    if run is not None and in_progress(doors.repository) is None:
        byhand.record(doors, run)


if __name__ == "__main__":
    raise SystemExit(main())
