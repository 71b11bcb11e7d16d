"""Hooks of a run: who hears of what, what a blocking one decides, and what a slow one costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from git_fabro.workflow.records import RunNotice
from git_fabro.workflow.state import FAIL, SUCCESS
from tests.scenario.parity import Stage, check, stage

LINE = "a=ok; b=ok; c=ok : a >> b; b >> exit; c >> exit"
FAN = "s=split; a=ok; b=bad; j=join; z=ok : s >> a; s >> b; a >> j; b >> j; j >> z; z >> exit"
TELL = 'printf "%s\\n" "$FABRO_EVENT" >> "$TOLD"'


def hook(event: str, command: str, **more: Any) -> str:
    table: dict[str, Any] = {"name": "guard", "event": event, "command": command, **more}
    return "[[hooks]]\n" + "".join(f"{key} = {json.dumps(v)}\n" for key, v in table.items())


def decides(decision: str, **more: str) -> str:
    return f"echo '{json.dumps({'decision': decision, **more})}'"


def notices(run: Stage) -> list[tuple[str, str]]:
    events = [record.event for record in run.events(RunNotice)]
    return [(e.code, e.message) for e in events if isinstance(e, RunNotice)]


def told(run: Stage, folder: Path) -> list[dict[str, Any]]:
    file = folder / "told"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines]


def staged(folder: Path, shorthand: str, settings: str) -> Stage:
    run = stage(folder, shorthand, settings=settings)
    run.environment["TOLD"] = str(folder / "told")
    return run


ALL = [
    *("run_start", "run_complete", "run_failed", "stage_start", "stage_complete"),
    *("stage_failed", "stage_retrying", "edge_selected", "checkpoint_saved"),
    *("parallel_start", "parallel_complete"),
]


def test_every_event_is_told(tmp_path: Path) -> None:
    settings = "".join(hook(event, TELL, name=event) for event in ALL)
    run = staged(tmp_path, FAN.replace("b=bad", "b=try(2) max_retries=1"), settings)

    state = run.begin()

    assert state.status == SUCCESS
    heard = [(one["event"], one.get("node", "")) for one in told(run, tmp_path)]
    assert heard[:3] == [
        ("run_start", "start"),
        ("stage_start", "start"),
        ("edge_selected", "start"),
    ]
    assert heard[-1] == ("run_complete", "")
    assert ("stage_retrying", "b") in heard
    assert heard.index(("parallel_start", "s")) < heard.index(("stage_start", "a"))
    assert heard.index(("parallel_complete", "s")) > heard.index(("stage_complete", "b"))
    assert {("checkpoint_saved", n) for n in "sabjz"} <= set(heard)
    check(run)


def test_failures_are_told_as_such(tmp_path: Path) -> None:
    settings = "".join(hook(event, TELL, name=event) for event in ALL)
    run = staged(tmp_path, "a=bad : a >> exit", settings)

    run.begin()

    heard = [(one["event"], one.get("node", "")) for one in told(run, tmp_path)]
    assert ("stage_failed", "a") in heard
    assert ("stage_complete", "a") not in heard
    assert heard[-1] == ("run_failed", "")


def test_an_event_stands_on_stdin_and_in_the_environment(tmp_path: Path) -> None:
    both = 'cat > "$TOLD"; printf "%s" "$FABRO_EVENT" > "$TOLD.env"'
    run = staged(tmp_path, LINE, hook("stage_start", both, matcher="^b$"))

    run.begin()

    event = {
        "attempt": 1,
        "branch": None,
        "event": "stage_start",
        "kind": "command",
        "node": "b",
        "run_id": run.run,
        "visit": 1,
    }
    assert json.loads((tmp_path / "told").read_text()) == event
    assert (tmp_path / "told").read_text() == (tmp_path / "told.env").read_text()


@pytest.mark.parametrize(
    ("event", "path", "visit"),
    [("run_start", "start", "start@1"), ("stage_start", "start a", "b@1")],
)
@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("exit 2", "ended with status 2", id="exit-2"),
        pytest.param("exit 1", "ended with status 1", id="exit-1"),
        pytest.param(decides("block", reason="not today"), "not today", id="decision"),
    ],
)
def test_a_blocking_hook_ends_the_run(
    tmp_path: Path, event: str, path: str, visit: str, command: str, why: str
) -> None:
    matcher = "^b$" if event == "stage_start" else ""
    run = staged(tmp_path, LINE, hook(event, command, matcher=matcher))

    state = run.begin()

    reason = f"{visit}: hook guard of {event}: {why}"
    assert (run.path().startswith(path) or visit == "start@1", state.status, run.reason()) == (
        True,
        FAIL,
        reason,
    )
    ended = run.finished(visit)
    assert ended.outcome.failure is not None
    assert (ended.next, ended.reason) == (None, "structural")
    assert ended.outcome.failure.failure_class == "structural"
    check(run)


def test_a_run_that_a_hook_blocked_goes_on_when_it_lets_it(tmp_path: Path) -> None:
    run = staged(tmp_path, LINE, hook("run_start", 'test -e "$TOLD"'))
    assert run.begin().status == FAIL
    (tmp_path / "told").write_text("")

    state = run.resume()

    assert state.status == SUCCESS
    assert run.path() == "start a b exit"
    check(run)


def test_a_slow_blocking_hook_blocks(tmp_path: Path) -> None:
    settings = hook("stage_start", "exec sleep 600", matcher="^b$", timeout_ms=50)
    run = staged(tmp_path, LINE, settings)

    assert run.begin().status == FAIL
    assert run.reason().startswith("b@1: hook guard of stage_start: ")


def test_a_slow_hook_that_does_not_block_is_a_notice(tmp_path: Path) -> None:
    settings = hook("stage_complete", "exec sleep 600", matcher="^b$", timeout_ms=50)
    run = staged(tmp_path, LINE, settings)

    assert run.begin().status == SUCCESS
    assert [code for code, _ in notices(run)] == ["hook"]


def test_a_skipped_node_does_not_run_and_is_no_failure(tmp_path: Path) -> None:
    settings = hook("stage_start", decides("skip", reason="done before"), matcher="^a$")
    run = staged(tmp_path, "a=put(f); b=ok : a >> b; b >> exit", settings)

    state = run.begin()

    assert state.status == SUCCESS
    ended = run.finished("a@1")
    assert (ended.outcome.status, ended.outcome.notes) == ("skipped", "done before")
    assert "f" not in run.repo.git("ls-tree", "--name-only", f"fabro/run/{run.run}").split()
    check(run)


def test_an_edge_may_be_overridden(tmp_path: Path) -> None:
    settings = hook("edge_selected", decides("override", edge_to="c"), matcher="^b$")
    run = staged(tmp_path, LINE, settings)

    state = run.begin()

    assert (run.path(), state.status) == ("start a c exit", SUCCESS)
    ended = run.finished("a@1")
    assert ended.next is not None
    assert (ended.next.node, ended.next.edge, ended.reason) == ("c", None, "hook")
    check(run)


def test_no_override_leads_past_a_limit_of_visits(tmp_path: Path) -> None:
    settings = hook("edge_selected", decides("override", edge_to="a"), matcher="^b$")
    run = staged(tmp_path, LINE.replace("a=ok", "a=ok max_visits=2"), settings)

    state = run.begin()

    assert (run.path(), state.status) == ("start a a", FAIL)
    assert run.reason() == 'node "a" may run 2 times (max_visits) and would run a 3rd time'
    check(run)


def test_a_blocked_edge_ends_the_run(tmp_path: Path) -> None:
    run = staged(tmp_path, LINE, hook("edge_selected", "exit 2", matcher="^b$"))

    state = run.begin()

    reason = "a@1: hook guard of edge_selected: ended with status 2"
    assert (run.path(), state.status, run.reason()) == ("start a", FAIL, reason)
    check(run)


def test_a_hook_that_comes_too_late_to_block_says_so(tmp_path: Path) -> None:
    run = staged(tmp_path, LINE, hook("stage_complete", "exit 2", matcher="^b$", blocking=True))

    state = run.begin()

    assert state.status == SUCCESS
    assert notices(run) == [
        ("hook", "hook guard of stage_complete: ended with status 2; it is too late to block")
    ]
