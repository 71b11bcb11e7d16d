"""``git fabro rewind``: a run back to one of its checkpoints."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from git_fabro import sending
from git_fabro.cli import history, naming, options, render
from git_fabro.doors import shown_path
from git_fabro.errors import RequestError
from git_fabro.jobs.history import plan as planning
from git_fabro.jobs.history import rewind as job
from git_fabro.jobs.history.plan import Place, Plan
from git_fabro.operations import Operation
from git_fabro.sending import Sent

DryRun = Annotated[bool, typer.Option("-n", "--dry-run", help="print the plan and its hash only")]
PlanHash = Annotated[
    str | None, typer.Option("--plan", metavar="HASH", help="do just the plan with this hash")
]
Push = Annotated[
    bool, typer.Option("--push", help="have the remote follow, unless it has more than was here")
]
NoPush = Annotated[bool, typer.Option("--no-push", help="push nothing, whatever fabro.push says")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="do not ask")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(rewind)


def rewind(
    words: history.Words = None,
    run: options.RunOption = None,
    dry_run: DryRun = False,
    plan: PlanHash = None,
    yes: Yes = False,
    show_list: history.List = False,
    push: Push = False,
    no_push: NoPush = False,
    as_json: options.AsJson = False,
) -> int:
    """Put a run and its work tree back to a checkpoint; undo takes it back."""
    if push and no_push:
        raise RequestError("either --push or --no-push", hint="git fabro rewind -h")
    here = naming.here()
    name, text = naming.run_and_target(here, words or [], run, "rewind")
    if text is None or show_list:
        return history.print_timeline(here, name)
    place = history.place_of(here, name)
    wanted = history.target_of(here, name, text)
    planned = planning.plan(place, wanted)
    if plan is not None and plan != planned.hash:
        raise RequestError(
            f"the plan is another one by now: {planned.hash}",
            hint=f"git fabro rewind -n {name} {text}",
        )
    if dry_run:
        _show(planned, as_json=as_json)
        return 0
    if planned.unsaved and plan is None and not yes and not _is_agreed(planned):
        return 1
    operation = job.rewind(place, planned)
    wants = push or (not no_push and place.doors.repository.config("fabro.push") == "checkpoint")
    sent = _sent(place, operation) if wants else None
    _tell(planned, Done(name, operation, sent), as_json=as_json)
    return 0


@dataclass(frozen=True, slots=True)
class Done:
    """A rewind that is done; ``sent`` None: nothing was to be pushed."""

    run: str
    operation: Operation
    sent: Sent | None


def _sent(place: Place, operation: Operation) -> Sent:
    return sending.send_moves(place.doors.repository, place.doors.objects, operation.moves)


def _is_agreed(planned: Plan) -> bool:
    """Whether the person at the terminal wants it, as work that is in no commit is replaced.

    Raises:
        RequestError: there is nobody to ask.
    """
    for text in _lines(planned):
        render.say(text)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RequestError(
            f"{len(planned.unsaved)} changes that are in no commit would be replaced",
            hint="git fabro rewind -y; git fabro undo brings them back",
        )
    render.say("Replace these changes? They can be brought back by undo. [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _lines(planned: Plan) -> list[str]:
    lines = [f"{move.ref}: {move.old[:12]} -> {move.new[:12]}" for move in planned.moves]
    if planned.work is None:
        return [*lines, "the run has no work tree"]
    unsaved = set(planned.unsaved)
    for verb, paths in (("write", planned.write), ("delete", planned.delete)):
        for path in paths:
            mark = " (changes that are in no commit)" if path in unsaved else ""
            lines.append(f"{verb} {shown_path(path)}{mark}")
    return [*lines, *(f"keep {shown_path(path)}: {planning.UNKNOWN}" for path in planned.keep)]


def _show(planned: Plan, *, as_json: bool) -> None:
    if as_json:
        render.document(planned.to_json())
        return
    for text in _lines(planned):
        render.out(render.line(text))
    render.out(f"plan {planned.hash}")


def _tell(planned: Plan, done: Done, *, as_json: bool) -> None:
    if as_json:
        ids = {"run_id": done.run, "operation": done.operation.id}
        render.document({**ids, **planned.to_json(), "push": _pushed_json(done.sent)})
        return
    render.out(f"rewound {done.run} to @{planned.target.ordinal}")
    files = f"{len(planned.write)} written, {len(planned.delete)} deleted"
    render.out(f"work tree: {files}" if planned.work else "refs only: the run has no work tree")
    if done.sent is not None:
        _tell_push(done.sent)
    render.hint(f"git fabro resume {done.run}; git fabro undo")


def _tell_push(sent: Sent) -> None:
    if not sent.why:
        render.out(f"pushed to {render.line(sent.remote)}")
        return
    render.warn(f"not pushed: {sent.why}")
    if sent.hint:
        render.hint(sent.hint)


def _pushed_json(sent: Sent | None) -> dict[str, object] | None:
    if sent is None:
        return None
    refs = [{"ref": one.ref, "what": one.what, "reason": one.reason or None} for one in sent.refs]
    return {"remote": sent.remote or None, "refs": refs, "why": sent.why or None}
