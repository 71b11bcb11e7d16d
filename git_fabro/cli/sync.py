"""``git fabro sync``: runs here and at a remote up to each other."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.cli import history, naming, options, render
from git_fabro.git import remote as remotes
from git_fabro.jobs import sync as job
from git_fabro.jobs.sync import Report, Synced

Remote = Annotated[
    str | None,
    typer.Argument(metavar="[REMOTE]", help="default: fabro.remote, the branch's, origin"),
]
Run = Annotated[str | None, typer.Option("--run", metavar="RUN", help="only this run")]
DryRun = Annotated[bool, typer.Option("-n", "--dry-run", help="fetch, and print what would move")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(sync)


def sync(
    remote: Remote = None, run: Run = None, dry_run: DryRun = False, as_json: options.AsJson = False
) -> int:
    """Fetch runs, move forward what can be, push what is ahead; what diverged is named."""
    here = naming.here()
    doors = history.repository(here)
    name = remotes.choose(doors.repository, remote)
    if run is not None:
        remotes.fetch(doors.repository, name)
    chosen = naming.find_run(naming.here(), run) if run is not None else None
    report = job.sync(doors, name, run=chosen, dry_run=dry_run)
    if as_json:
        render.document(_json(report))
    else:
        _tell(report, dry_run=dry_run)
    return 0 if report.is_whole else 1


def _tell(report: Report, *, dry_run: bool) -> None:
    for one in report.refs:
        moved = f"{(one.old or 'new')[:12]} -> {one.new[:12]}"
        would = "would be " if dry_run and one.what in ("fetched", "pushed") else ""
        why = f" ({one.why})" if one.why else ""
        render.out(render.line(f"{would}{one.what} {one.ref}: {moved}{why}"))
    if not report.refs:
        render.out(f"in step with {render.line(report.remote)}")
    if any(one.what == "diverged" for one in report.refs):
        render.hint(f"git log --oneline --left-right {_both(report)}")


def _both(report: Report) -> str:
    """The two sides of the first ref that diverged, as git log takes them."""
    one = next(one for one in report.refs if one.what == "diverged")
    return f"{one.old}...{one.new}" if one.old else one.new


def _json(report: Report) -> dict[str, object]:
    return {"remote": report.remote, "refs": [_row(one) for one in report.refs]}


def _row(one: Synced) -> dict[str, object]:
    return {
        "ref": one.ref,
        "what": one.what,
        "old": one.old,
        "new": one.new,
        "why": one.why or None,
    }
