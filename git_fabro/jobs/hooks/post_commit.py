"""After a commit: one made by hand on the branch of a run becomes a checkpoint.

Source: githooks(5), post-commit
"""

from __future__ import annotations

from git_fabro import handmade
from git_fabro.branches import Source
from git_fabro.git.discover import in_progress
from git_fabro.jobs.hooks.speaking import never_failing


def main() -> int:
    """Records what was committed; always 0, as nothing can stop a commit that is made."""
    return never_failing(_record)


def _record() -> None:
    source = Source.open()
    run = handmade.run_here(source.repository)
    # A rebase or a series of picks tells of its commits once, when it is done.
    if run is None or in_progress(source.repository) is not None:
        return
    if handmade.record(source, run):
        return
    # Imported here: 100 ms that a commit on a run that is at rest does not pay.
    from git_fabro.doors import Doors
    from git_fabro.jobs.hooks import byhand

    doors = Doors(repository=source.repository, objects=source.objects, refs=source.refs)
    byhand.record(doors, run)


if __name__ == "__main__":
    raise SystemExit(main())
