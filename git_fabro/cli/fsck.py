"""``git fabro fsck``: the record of runs, proved."""

from __future__ import annotations

from typing import Annotated

import typer

from git_fabro.checkpoint.finding import Finding
from git_fabro.cli import naming, options, pager, render
from git_fabro.jobs import fsck as job
from git_fabro.jobs.fsck import Checked

Which = Annotated[str | None, typer.Argument(metavar="[RUN]", help="default: all runs")]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="all findings, and what is no fault")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="nothing but the exit status")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(fsck)


def fsck(
    run: Which = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: options.AsJson = False,
) -> int:
    """Prove the record of runs: chains, records, states, links, files and notes."""
    place = naming.here()
    source = place.reading()
    names = naming.all_runs(place) if run is None else [naming.find_run(place, run)]
    wanted = [place.branches[one] for one in names if one in place.branches]
    checked = list(job.check(source, wanted, every=run is None))
    if as_json:
        render.document({"runs": [_json(one) for one in checked]})
    elif not quiet:
        pager.begin("fsck", source)
        for one in checked:
            _print(one, verbose=verbose)
    return 1 if any(one.findings for one in checked) else 0


def _json(checked: Checked) -> dict[str, object]:
    return {
        "run_id": checked.run,
        "findings": [
            {"rule": one.rule, "ref": one.ref, "commit": one.commit, "message": one.message}
            for one in checked.findings
        ],
    }


def _print(checked: Checked, *, verbose: bool) -> None:
    name = checked.run or "of no run"
    made_by = "" if checked.made_by == "git-fabro" else ", made by Fabro, by looser rules"
    count = len(checked.findings)
    found = "ok" if not count else f"{count} finding{'s' if count > 1 else ''}"
    render.out(f"{name} {found} ({checked.commits} commits{made_by})")
    shown = checked.findings if verbose else checked.findings[:1]
    for one in shown:
        render.out(f"  {_line(one)}")
    for text in checked.information if verbose else ():
        render.out(f"  {render.line(text)}")


def _line(one: Finding) -> str:
    commit = f" {one.commit[:12]}" if one.commit is not None else ""
    return render.line(f"{one.ref}{commit}: {one.message} [{one.rule}]")
