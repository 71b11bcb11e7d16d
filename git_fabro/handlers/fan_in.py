"""Joins: which branch is kept, or all of them merged; the files of the line become theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from git_fabro.checkpoint import codec
from git_fabro.checkpoint.model import Oid
from git_fabro.handlers import agent
from git_fabro.handlers.call import Call, Driver, Notice, Result
from git_fabro.handlers.response import last_object_with
from git_fabro.workflow.state import (
    DETERMINISTIC,
    GOOD,
    PARTIAL,
    SUCCESS,
    Json,
    Outcome,
    failed,
)

Branch = Mapping[str, Json]


def run(call: Call, driver: Driver) -> Result:
    """Brings the results of the fan-out before it into the line."""
    results = driver.resolve(call.context.get("parallel.results"))
    if not isinstance(results, list) or not results:
        return Result(failed("there are no parallel results to join"))
    branches = [branch for branch in results if isinstance(branch, dict)]
    base = driver.tip(call.position.branch)
    return merge(call, driver, branches, base, how=_how(call))


def _how(call: Call) -> str:
    own = call.node.text("merge")
    if own:
        return own
    for fan_out in call.graph.fan_outs.values():
        if fan_out.join == call.node.id:
            return call.graph.nodes[fan_out.node].text("merge", "winner")
    return "winner"


def merge(
    call: Call, driver: Driver, results: Sequence[Json], base: Oid | None, *, how: str
) -> Result:
    """The best branch, or all good ones, in the line's work tree; see the manual, "Merge"."""
    branches = [branch for branch in results if isinstance(branch, dict)]
    good = [branch for branch in branches if branch.get("status") in GOOD]
    if not good:
        return Result(failed("no branch succeeded"))
    if how == "all":
        return _take_all(call, driver, good, base)
    return _take_best(call, driver, good, base)


def _take_all(call: Call, driver: Driver, good: Sequence[Branch], base: Oid | None) -> Result:
    status = SUCCESS if all(branch["status"] == SUCCESS for branch in good) else PARTIAL
    updates: dict[str, Json] = {"parallel.fan_in.best_outcome": status}
    heads = _heads(good)
    if base is not None and heads:
        conflicts = driver.take_trees(base, heads, call)
        if conflicts:
            listed: list[Json] = list(conflicts)
            outcome = failed(
                f"branches conflict: {', '.join(conflicts)}", failure_class=DETERMINISTIC
            )
            return Result(with_updates(outcome, {"parallel.fan_in.conflicts": listed}))
    return Result(Outcome(status=SUCCESS, context_updates=updates), merged=tuple(heads))


def _take_best(call: Call, driver: Driver, good: Sequence[Branch], base: Oid | None) -> Result:
    ranked = sorted(good, key=_rank)
    best, trace = ranked[0], {}
    if call.node.text("prompt"):
        asked = agent.run(call)
        trace = dict(asked.trace)
        if asked.outcome.failure is not None:
            return Result(asked.outcome, trace)
        best = _by_id(call, ranked, asked)
    updates: dict[str, Json] = {
        "parallel.fan_in.best_id": best["id"],
        "parallel.fan_in.best_outcome": best["status"],
        "parallel.fan_in.best_head_sha": best.get("head_sha"),
    }
    heads = _heads([best])
    if base is not None and heads:
        driver.take_trees(base, heads, call)
    return Result(Outcome(status=SUCCESS, context_updates=updates), trace, tuple(heads))


def _by_id(call: Call, ranked: Sequence[Branch], asked: Result) -> Branch:
    """The branch that the agent names; an unknown id falls back to the ranking, with a notice."""
    response = asked.trace.get("response.md", b"").decode("utf-8", "replace")
    found = last_object_with(response, frozenset({"best_id"})) or {}
    wanted = found.get("best_id")
    for branch in ranked:
        if branch["id"] == wanted:
            return branch
    call.notice(Notice("best_id_unknown", f"no such branch: {wanted!r}; the ranking decides"))
    return ranked[0]


def _rank(branch: Branch) -> tuple[int, float, str]:
    score = branch.get("score")
    if isinstance(score, str):
        try:
            score = float(score)
        except ValueError:
            score = 0
    number = float(score) if isinstance(score, (int, float)) and score == score else 0.0
    return (0 if branch["status"] == SUCCESS else 1, -number, str(branch["id"]))


def _heads(branches: Sequence[Branch]) -> list[Oid]:
    heads = [branch.get("head_sha") for branch in branches]
    return [Oid(head) for head in heads if isinstance(head, str)]


def with_updates(outcome: Outcome, updates: Mapping[str, Json]) -> Outcome:
    """An outcome with more context updates."""
    return replace(outcome, context_updates={**outcome.context_updates, **updates})


def results_file(results: Sequence[Json]) -> bytes:
    """``parallel_results.json`` of a parallel node's trace."""
    return codec.document(list(results))
