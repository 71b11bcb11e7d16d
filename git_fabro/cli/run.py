"""``git fabro run``: run a workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from git_fabro.cli import detaching, driving, naming, options, render, terminal
from git_fabro.cli.progress import Progress
from git_fabro.errors import RequestError
from git_fabro.handlers import presets
from git_fabro.jobs.run import begin
from git_fabro.jobs.run.crew import Terms
from git_fabro.workflow import settings

Goal = Annotated[
    str | None, typer.Option("--goal", metavar="TEXT", help="the goal, not the file's")
]
GoalFile = Annotated[
    Path | None, typer.Option("--goal-file", metavar="FILE", help="a file with the goal")
]
Inputs = Annotated[
    list[str] | None, typer.Option("-I", "--input", metavar="K=V", help="a value for the workflow")
]
Agent = Annotated[str | None, typer.Option("--agent", metavar="PRESET", help="a known agent")]
AgentCommand = Annotated[
    str | None, typer.Option("--agent-command", metavar="CMD", help="any other agent")
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="passed on to the agent")
]
Provider = Annotated[
    str | None, typer.Option("--provider", metavar="NAME", help="passed on to the agent")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="simulate all nodes; no Git")]
Dirty = Annotated[
    str | None, typer.Option("--dirty", metavar="HOW", help="head, carry or in-place")
]
InPlace = Annotated[bool, typer.Option("--in-place", help="no work tree of the run's own")]
NoCheckpoint = Annotated[bool, typer.Option("--no-checkpoint", help="keep only the journal")]
MaxParallel = Annotated[
    int | None, typer.Option("--max-parallel", min=1, metavar="N", help="branches at once")
]
Executor = Annotated[str, typer.Option("--executor", metavar="NAME", help="only: local")]


def register(app: typer.Typer) -> None:
    app.command(context_settings=options.SETTINGS)(run)


def run(
    workflow: options.Workflow,
    goal: Goal = None,
    goal_file: GoalFile = None,
    inputs: Inputs = None,
    labels: options.Labels = None,
    agent: Agent = None,
    agent_command: AgentCommand = None,
    model: Model = None,
    provider: Provider = None,
    auto_approve: options.AutoApprove = False,
    dry_run: DryRun = False,
    dirty: Dirty = None,
    in_place: InPlace = False,
    no_checkpoint: NoCheckpoint = False,
    detach: options.Detach = False,
    max_parallel: MaxParallel = None,
    executor: Executor = "local",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> int:
    """Run a workflow; each finished node is a checkpoint."""
    if executor != "local":
        raise RequestError(f"no such executor: {executor}", hint="git fabro run --executor local")
    place = naming.here()
    request = begin.Request(
        workflow=workflow,
        folder=place.folder,
        environment=place.environment,
        command_line=settings.command_line(
            goal=_goal(goal, goal_file),
            inputs=options.pairs(inputs, "--input"),
            preset=agent,
            command=None if agent_command is None else presets.split_command(agent_command),
            model=model,
            provider=provider,
        ),
        labels=options.pairs(labels, "--label"),
        dirty=dirty,
        in_place=in_place,
        checkpoints=not no_checkpoint,
        terms=Terms(
            auto_approve=auto_approve,
            dry_run=dry_run,
            max_parallel=max_parallel,
            prompter=None if detach else terminal.prompter(),
        ),
    )
    plan = begin.prepare(request, place.doors)
    for note in plan.notes:
        render.warn(note)
    driving.show_diagnostics(plan.loaded.diagnostics)
    view = Progress(quiet=quiet, verbose=verbose)
    drive = driving.Drive(
        lambda began: begin.run(plan, on_record=view.on_record, began=began),
        as_json=as_json,
        has_branch=plan.doors is not None,
    )
    if detach:
        return detaching.detached(drive, plan.directory.path, as_json=as_json)
    return drive.here()


def _goal(goal: str | None, goal_file: Path | None) -> str | None:
    if goal_file is None:
        return goal
    if goal is not None:
        raise RequestError("both --goal and --goal-file were given", hint="git fabro run -h")
    try:
        return goal_file.read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise RequestError(
            f"cannot read the goal: {goal_file}: {exc.strerror}", hint="git fabro run --goal TEXT"
        ) from exc
    except UnicodeDecodeError as exc:
        raise RequestError(
            f"cannot read the goal: {goal_file}: not UTF-8", hint="git fabro run --goal TEXT"
        ) from exc
