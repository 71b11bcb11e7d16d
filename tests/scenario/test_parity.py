"""The parity matrix of the dialect: thirty workflows, the path each takes, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_fabro.workflow.records import NodeFinished
from git_fabro.workflow.state import BLOCKED, FAIL, PARTIAL, SUCCESS
from tests.scenario.parity import Stage, check, stage

YES_OR_NO = 'q=human; y=ok; n=ok : q >"[Y] Yes" y; q >"[N] No" n; y >> exit; n >> exit'
SPLIT = "s=split; a=put(f); b=put(f); j=join merge=all; r=ok : s >> a; s >> b; a >> j; b >> j; "


def say_no(run: Stage) -> None:
    run.answer("q@1", "no")


def refuse(run: Stage) -> None:
    run.answer("q@1", "", refused=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the graph, the path, the status with its reason, and what a person does."""

    graph: str
    path: str
    status: str
    reason: str = ""
    then: Callable[[Stage], None] | None = None


ROWS = {
    1: Row("a=ok; b=ok : a >> b; b >> exit", "start a b exit", SUCCESS),
    2: Row('"lint-1.x"=ok : "lint-1.x" >> exit', "start lint-1.x exit", SUCCESS),
    3: Row("a=bad; b=ok : a >> b; b >> exit", "start a b exit", FAIL, "unhandled failures: a@1"),
    4: Row(
        "[on_failure=exit] a=bad; b=ok : a >> b; b >> exit",
        "start a",
        FAIL,
        "a@1: exit status 1",
    ),
    5: Row("[on_failure=succeed] a=bad; b=ok : a >> b; b >> exit", "start a b exit", SUCCESS),
    6: Row(
        "a=bad; fix=ok : a >outcome=failed? fix; a >9 exit; fix >> exit",
        "start a fix exit",
        SUCCESS,
    ),
    7: Row(
        "[on_failure=exit] a=bad; g=cond; c=ok : "
        "a >> g; g >outcome=success? exit; g >outcome=fail? c; c >> exit",
        "start a g c exit",
        SUCCESS,
    ),
    8: Row(
        "a=bad; g=cond; c=ok : a >> g; g >outcome=success? exit; g >> c; c >> exit",
        "start a g c exit",
        FAIL,
        "unhandled failures: a@1",
    ),
    9: Row(
        "a=visit(2); g=cond; c=ok : a >> g; g >outcome=success? exit; g >> c; c >> a",
        "start a g c a g exit",
        SUCCESS,
    ),
    10: Row(
        "a=bad; g=cond; h=cond; b=ok; c=ok : a >> g; g >> h; "
        "h >outcome=success? b; h >outcome=fail? c; b >> exit; c >> exit",
        "start a g h c exit",
        SUCCESS,
    ),
    11: Row("a=try(3) max_retries=2 : a >> exit", "start a*3 exit", SUCCESS),
    12: Row(
        "[default_max_retries=4] a=try(2) : a >> exit",
        "start a exit",
        FAIL,
        "unhandled failures: a@1",
    ),
    13: Row(
        '[default_max_retries=4] a=says({"outcome":"retry"}, {"outcome":"success"}) : a >> exit',
        "start a*2 exit",
        SUCCESS,
    ),
    14: Row(
        'a=says({"outcome":"retry"}) max_retries=1 allow_partial=true : a >> exit',
        "start a*2 exit",
        PARTIAL,
    ),
    15: Row(
        "p=ok; a=visit(2) retry_target=p : p >> a; a >outcome=success? exit",
        "start p a p a exit",
        SUCCESS,
    ),
    16: Row(
        "a=bad max_visits=2 : a >outcome=fail? a; a >> exit",
        "start a a",
        FAIL,
        'node "a" may run 2 times (max_visits) and would run a 3rd time',
    ),
    17: Row(
        "a=bad : a >outcome=fail? a; a >> exit",
        "start a a a",
        FAIL,
        "same failure 3 times: a|deterministic|exit status <n>",
    ),
    18: Row(
        "a=visit(2) goal_gate=true retry_target=p; p=ok : "
        "a >outcome=fail? exit; a >outcome=success? exit; p >> a",
        "start a exit p a exit",
        SUCCESS,
    ),
    19: Row(
        "[retry_target=exit] a=bad goal_gate=true : a >outcome=fail? exit; a >> exit",
        "start a exit",
        FAIL,
        "goal gate not satisfied: a@1",
    ),
    20: Row(
        "a=ok; k2=ok; k10=ok; z=ok : a >outcome=fail? z; a >3 k2; a >3 k10; a >1 z; "
        "k2 >> exit; k10 >> exit; z >> exit",
        "start a k10 exit",
        SUCCESS,
    ),
    21: Row(
        "a=ok; b=ok; c=ok : a >outcome=success? b; a >50 c; b >> exit; c >> exit",
        "start a b exit",
        SUCCESS,
    ),
    22: Row(
        'a=says({"preferred_next_label":"ship  "}); s=ok; h=ok : '
        'a >"[S] Ship" s; a >9 h; s >> exit; h >> exit',
        "start a s exit",
        SUCCESS,
    ),
    23: Row(
        'a=says({"suggested_next_ids":["nope","c"]}); b=ok; c=ok : '
        "a >9 b; a >> c; b >> exit; c >> exit",
        "start a c exit",
        SUCCESS,
    ),
    24: Row(
        'a=says({"context_updates":{"score":"81"}}); g=cond; hi=ok; lo=ok : '
        "a >> g; g >context.score > 9? hi; g >> lo; hi >> exit; lo >> exit",
        "start a g hi exit",
        SUCCESS,
    ),
    25: Row(
        'a=says({"outcome":"port"}); p=ok : a >outcome=port? p; a >> exit; p >> exit',
        "start a p exit",
        SUCCESS,
    ),
    26: Row(YES_OR_NO, "start q", BLOCKED),
    27: Row(YES_OR_NO, "start q n exit", SUCCESS, then=say_no),
    28: Row(
        'q=human retry_target=r; y=ok; r=ok : q >"[Y] Yes" y; y >> exit; r >> exit',
        "start q r exit",
        SUCCESS,
        then=refuse,
    ),
    29: Row(
        "s=split; a=ok; c=ok; b=bad; j=join : s >> a; a >> c; c >> j; s >> b; b >> j; j >> exit",
        "start s{a c / b} j exit",
        PARTIAL,
    ),
    30: Row(
        SPLIT + "j >outcome=fail? r; j >> exit; r >> exit",
        "start s{a / b} j r exit",
        SUCCESS,
    ),
}


@pytest.mark.parametrize("row", [pytest.param(row, id=f"row-{n}") for n, row in ROWS.items()])
def test_a_workflow_takes_its_path_to_its_end(tmp_path: Path, row: Row) -> None:
    run = stage(tmp_path, row.graph)

    state = run.begin()
    if row.then is not None:
        assert state.status == BLOCKED
        row.then(run)
        state = run.resume()

    assert (run.path(), state.status, run.reason()) == (row.path, row.status, row.reason)
    check(run)


def test_a_parked_run_ends_its_process_with_status_3(tmp_path: Path) -> None:
    run = stage(tmp_path, YES_OR_NO)

    done = subprocess.run(
        [sys.executable, "-m", "git_fabro", "run", "w.fabro"],
        cwd=run.repo.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )

    assert done.returncode == 3
    names = run.repo.git("for-each-ref", "--format=%(refname:lstrip=4)", "refs/heads/fabro/run")
    run.run = type(run.run)(names)
    assert run.path() == "start q"
    check(run)


def test_a_conflict_lists_its_paths_and_keeps_the_branches(tmp_path: Path) -> None:
    run = stage(tmp_path, SPLIT + "j >outcome=fail? r; j >> exit; r >> exit")

    run.begin()

    [joined] = [
        record.event
        for record in run.events(NodeFinished)
        if record.position is not None and record.position.node == "j"
    ]
    assert isinstance(joined, NodeFinished)
    assert joined.outcome.context_updates == {"parallel.fan_in.conflicts": ["f"]}
    assert joined.outcome.failure is not None
    assert joined.outcome.failure.message == "branches conflict: f"
    assert run.show(run.branch_ref("s@1/a") + ":f") == "a"
    assert run.show(run.branch_ref("s@1/b") + ":f") == "b"
    assert run.repo.git("ls-tree", "--name-only", f"fabro/run/{run.run}").split() == [
        "README",
        "run.toml",
        "w.fabro",
    ]
