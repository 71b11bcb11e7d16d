"""``git fabro run``: run a workflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from git_fabro.cli import driving, naming, render
from git_fabro.errors import RequestError
from git_fabro.handlers import presets
from git_fabro.jobs.run import begin
from git_fabro.jobs.run.crew import Terms
from git_fabro.workflow import settings


def register(app: typer.Typer) -> None:
    app.command(context_settings={"help_option_names": ["-h"]})(run)


def run(
    workflow: Annotated[str, typer.Argument(metavar="WORKFLOW", help="a file, or a name")],
    goal: Annotated[str | None, typer.Option(help="the objective, in place of the file's")] = None,
    goal_file: Annotated[Path | None, typer.Option(help="a file that holds the goal")] = None,
    inputs: Annotated[
        list[str], typer.Option("-I", "--input", metavar="K=V", help="an input")
    ] = [],  # noqa: B006
    labels: Annotated[list[str], typer.Option("--label", metavar="K=V", help="a label")] = [],  # noqa: B006
    agent: Annotated[str | None, typer.Option(metavar="PRESET", help="a known agent")] = None,
    agent_command: Annotated[
        str | None, typer.Option(metavar="CMD", help="any other agent")
    ] = None,
    model: Annotated[str | None, typer.Option(help="passed on to the agent")] = None,
    provider: Annotated[str | None, typer.Option(help="passed on to the agent")] = None,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="answer gates by their first choice")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="simulate; no Git")] = False,
    dirty: Annotated[
        str | None,
        typer.Option(metavar="head|carry|in-place", help="what to do with uncommitted changes"),
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="no work tree of its own")] = False,
    no_checkpoint: Annotated[
        bool, typer.Option("--no-checkpoint", help="no checkpoints, only the journal")
    ] = False,
    detach: Annotated[
        bool, typer.Option("-d", "--detach", help="in the background; prints the run id")
    ] = False,
    max_parallel: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="branches at once, at most")
    ] = None,
    executor: Annotated[str, typer.Option(help="local")] = "local",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="no progress")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="the summary as one JSON document")
    ] = False,
) -> int:
    """Run a workflow: each finished node is a checkpoint."""
    if executor != "local":
        raise RequestError(f"no such executor: {executor}", hint="git fabro run --executor local")
    request = begin.Request(
        workflow=workflow,
        folder=Path.cwd(),
        environment=dict(os.environ),
        command_line=settings.command_line(
            goal=_goal(goal, goal_file),
            inputs=driving.pairs(inputs, "--input"),
            preset=agent,
            command=None if agent_command is None else presets.split_command(agent_command),
            model=model,
            provider=provider,
        ),
        labels=driving.pairs(labels, "--label"),
        dirty=dirty,
        in_place=in_place,
        checkpoints=not no_checkpoint,
        terms=Terms(
            auto_approve=auto_approve,
            dry_run=dry_run,
            max_parallel=max_parallel,
            prompter=None if detach else driving.prompter(),
        ),
    )
    plan = begin.prepare(request, naming.doors_or_none())
    for note in plan.notes:
        render.warn(note)
    driving.show_diagnostics(plan.loaded.diagnostics)
    view = driving.Progress(quiet=quiet or detach)
    drive = driving.Drive(
        lambda began: begin.run(plan, on_record=view.on_record, began=began), view, as_json=as_json
    )
    return driving.detached(drive, plan.directory.path.parent, plan.run) if detach else drive.here()


def _goal(goal: str | None, goal_file: Path | None) -> str | None:
    if goal_file is None:
        return goal
    if goal is not None:
        raise RequestError("both --goal and --goal-file were given")
    try:
        return goal_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise RequestError(f"cannot read the goal: {goal_file}: {exc}") from exc
