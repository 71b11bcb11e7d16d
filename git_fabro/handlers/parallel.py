"""Fan-outs: which branches run, what they come to together. The driver runs them."""

from __future__ import annotations

from collections.abc import Mapping

from git_fabro.handlers import fan_in
from git_fabro.handlers.call import Call, Driver, Result
from git_fabro.workflow import conclusion, condition, engine
from git_fabro.workflow.graph import FAN_IN, FanOut, NodeId
from git_fabro.workflow.records import BranchPlan, ParallelFinished, ParallelStarted
from git_fabro.workflow.state import FAIL, SKIPPED, SUCCESS, Branch, Json, Outcome, RunState, failed

#: How many branches run at once where the node does not say.
MAX_PARALLEL = 4


def run(call: Call, driver: Driver) -> Result:
    """Runs the branches of a fan-out, or goes on with those that have not ended.

    Raises:
        Parked: every branch that has not ended waits for people.
        Interrupted: the run is stopped.
    """
    visit, fan_out = str(call.position), call.graph.fan_outs[call.node.id]
    if visit not in driver.state.fan_outs:
        driver.note(_plan(call, driver, fan_out), call.position)
    opened = driver.state.fan_outs[visit]
    names = [name for name in opened.branches if name not in opened.skipped]
    if not opened.status:
        left = [name for name in names if not driver.state.branches[f"{visit}/{name}"].status]
        driver.run_branches(visit, left, call)
        driver.note(_finished(driver, visit), call.position)
    return _result(call, driver, fan_out, visit)


def _plan(call: Call, driver: Driver, fan_out: FanOut) -> ParallelStarted:
    edges = {edge.target: edge for edge in call.graph.outgoing(call.node.id)}

    def is_skipped(branch: NodeId) -> bool:
        when = edges[branch].condition
        return when is not None and not condition.evaluate(
            when, lambda key: driver.resolve(call.context.get(key))
        )

    return ParallelStarted(
        base_sha=driver.tip(call.position.branch),
        join=fan_out.join,
        join_policy=call.node.text("join_policy", "wait_all"),
        max_parallel=call.node.number("max_parallel") or MAX_PARALLEL,
        branches=tuple(BranchPlan(id=b, skipped=is_skipped(b)) for b in fan_out.branches),
    )


def _finished(driver: Driver, visit: str) -> ParallelFinished:
    opened = driver.state.fan_outs[visit]
    statuses = _statuses(driver.state, visit)
    won = None
    if opened.join_policy == "first_success":
        won = next((name for name, status in statuses.items() if status == SUCCESS), None)
    began = engine.moment(opened.started_at)
    return ParallelFinished(
        status=conclusion.join_status(opened.join_policy, list(statuses.values())),
        won=won,
        branches=opened.branches,
        duration_ms=int((driver.now() - began).total_seconds() * 1000),
    )


def _statuses(state: RunState, visit: str) -> dict[str, str]:
    opened = state.fan_outs[visit]
    return {
        name: SKIPPED if name in opened.skipped else state.branches[f"{visit}/{name}"].status
        for name in opened.branches
    }


def _result(call: Call, driver: Driver, fan_out: FanOut, visit: str) -> Result:
    state = driver.state
    opened = state.fan_outs[visit]
    statuses = _statuses(state, visit)
    results: list[Json] = [
        _branch_result(driver, name, statuses[name], state.branches.get(f"{visit}/{name}"))
        for name in opened.branches
    ]
    updates: dict[str, Json] = {
        "parallel.results": results,
        "parallel.branch_count": len(results),
    }
    status = opened.status
    if all(one == SKIPPED for one in statuses.values()):
        outcome = failed("every branch was skipped by its condition")
    elif status == FAIL:
        broken = ", ".join(name for name, one in statuses.items() if one == FAIL)
        outcome = failed(f"no branch succeeded: {broken}")
    else:
        outcome = Outcome(status=status)
    outcome = fan_in.with_updates(outcome, updates)
    trace = {"parallel_results.json": fan_in.results_file(results)}
    joins_itself = call.graph.nodes[fan_out.join].kind != FAN_IN
    if joins_itself and outcome.status != FAIL:
        base = driver.tip(call.position.branch)
        merged = fan_in.merge(call, driver, results, base, how=_how(call))
        return Result(fan_in.with_updates(merged.outcome, updates), trace, merged.merged)
    return Result(outcome, trace)


def _how(call: Call) -> str:
    return call.node.text("merge", "all")


def _branch_result(
    driver: Driver, name: str, status: str, branch: Branch | None
) -> dict[str, Json]:
    """One entry of ``parallel.results`` (git-fabro-workflow(7))."""
    found: dict[str, Json] = {"id": name, "status": status}
    if branch is None:
        return found
    found["head_sha"] = branch.head_sha
    found["nodes"] = list(branch.nodes)
    failure: Mapping[str, Json] = branch.failure or {}
    if failure:
        found["failure_reason"] = failure.get("message", "")
        found["failure_class"] = failure.get("failure_class", "")
    for key in ("score", "last_response"):
        if key in branch.context:
            found[key] = branch.context[key]
    found["context"] = dict(branch.context)
    return found
