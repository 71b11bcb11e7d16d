"""What a line came to: the run's end for every reason, a branch's, and a fan-out's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from git_fabro.workflow import conclusion
from git_fabro.workflow.conclusion import Conclusion, join_status
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.state import STRUCTURAL, Line, Outcome, failed
from tests.workflow.graphs import AGAIN, BAD, OK, PARTLY, Walk, graph_of

LINE = "a; b; start -> a -> b -> exit;"
GATE = "a [goal_gate=true]; b; start -> a -> b -> exit;"


@pytest.mark.parametrize(
    ("body", "mode", "outcomes", "ended"),
    [
        pytest.param(LINE, "route", {}, Conclusion("success"), id="good"),
        pytest.param(
            LINE,
            "route",
            {"a": BAD},
            Conclusion("fail", "unhandled failures: a@1", "a@1"),
            id="unhandled",
        ),
        pytest.param(
            LINE,
            "route",
            {"a": BAD, "b": BAD},
            Conclusion("fail", "unhandled failures: a@1, b@1", "a@1"),
            id="two-unhandled",
        ),
        pytest.param(LINE, "route", {"a": PARTLY}, Conclusion("partial_success"), id="partly"),
        pytest.param(LINE, "succeed", {"a": BAD, "b": PARTLY}, Conclusion("success"), id="succeed"),
        pytest.param(
            LINE,
            "exit",
            {"a": BAD},
            Conclusion("fail", "a@1: exit status 1", "a@1"),
            id="exit",
        ),
        pytest.param(
            LINE,
            "route",
            {"a": AGAIN},
            Conclusion("fail", "unhandled failures: a@1", "a@1"),
            id="retries-exhausted",
        ),
        pytest.param(
            GATE,
            "succeed",
            {"a": BAD},
            Conclusion("fail", "goal gate not satisfied: a@1", "a@1"),
            id="goal-gate-before-succeed",
        ),
        pytest.param(
            'a; start -> a; a -> exit [condition="outcome=fail"];',
            "route",
            {},
            Conclusion("fail", "no edge of a can be taken", "a@1"),
            id="no-edge",
        ),
        pytest.param(
            'a; start -> a; a -> exit [condition="outcome=success"];',
            "route",
            {"a": failed("tests are red")},
            Conclusion("fail", "a@1: tests are red", "a@1"),
            id="failure-without-an-edge",
        ),
        pytest.param(
            'a; g [shape=diamond]; start -> a -> g; g -> exit [condition="outcome=success"];',
            "route",
            {"a": failed("tests are red")},
            Conclusion("fail", "a@1: tests are red", "a@1"),
            id="failure-behind-a-conditional",
        ),
        pytest.param(
            'a; g [shape=diamond]; start -> a -> g; g -> exit [condition="outcome=fail"];',
            "route",
            {},
            Conclusion("fail", "no edge of g can be taken", "a@1"),
            id="no-edge-of-a-conditional",
        ),
        pytest.param(
            "a [max_visits=1]; start -> a; a -> exit [condition=done]; a -> a;",
            "route",
            {},
            Conclusion(
                "fail",
                'node "a" may run 1 time (max_visits) and would run a 2nd time',
                "a@1",
            ),
            id="max-visits",
        ),
        pytest.param(
            "a; b [max_visits=2]; start -> a -> b; b -> exit [condition=done]; b -> a;",
            "route",
            {},
            Conclusion(
                "fail",
                'node "b" may run 2 times (max_visits) and would run a 3rd time',
                "a@3",
            ),
            id="max-visits-of-the-next",
        ),
        pytest.param(
            "a [goal_gate=true, retry_target=a, max_visits=2]; start -> a; "
            'a -> exit [condition="outcome=fail"]; a -> exit;',
            "route",
            {"a": BAD},
            Conclusion(
                "fail",
                'node "a" may run 2 times (max_visits) and would run a 3rd time',
                "a@2",
            ),
            id="max-visits-of-a-goal-gates-target",
        ),
        pytest.param(
            'a; start -> a; a -> a [condition="outcome=fail"]; a -> exit;',
            "route",
            {"a": BAD},
            Conclusion("fail", "same failure 3 times: a|deterministic|exit status <n>", "a@3"),
            id="same-failure",
        ),
        pytest.param(
            'a; start -> a; a -> a [condition="outcome=fail", loop_restart=true]; a -> exit;',
            "route",
            {"a": BAD},
            Conclusion("fail", "a@1: restart refused: exit status 1", "a@1"),
            id="restart-refused",
        ),
        pytest.param(
            'a; start -> a; a -> a [condition="outcome=fail", loop_restart=true]; a -> exit;',
            "route",
            {"a": failed("busy", failure_class="transient_infra")},
            Conclusion("fail", "same failure 3 times: a|transient_infra|busy", "a@3"),
            id="restarted-too-often",
        ),
    ],
)
def test_a_run_ends(body: str, mode: str, outcomes: dict[str, Outcome], ended: Conclusion) -> None:
    graph = graph_of(body, on_failure=mode)
    walk = Walk(graph)

    walk.through(**outcomes)

    assert conclusion.conclude(graph, walk.line) == ended


def test_the_limit_of_all_nodes_is_named_by_its_own_attribute() -> None:
    graph = graph_of("a; start -> a; a -> exit [condition=done]; a -> a;", max_node_visits="12")
    walk = Walk(graph)

    walk.through()

    message = 'node "a" may run 12 times (max_node_visits) and would run a 13th time'
    assert conclusion.conclude(graph, walk.line).reason == message


def test_the_limit_of_a_join_is_named_after_a_fan_out() -> None:
    graph = graph_of(
        "s [shape=component]; a; b; j [shape=tripleoctagon, max_visits=1]; "
        "start -> s; s -> a -> j; s -> b -> j; j -> exit [condition=done]; j -> s;"
    )
    walk = Walk(graph)

    path = walk.through()

    assert path == "start s j s"
    reason = 'node "j" may run 1 time (max_visits) and would run a 2nd time'
    assert conclusion.conclude(graph, walk.line).reason == reason


@pytest.mark.parametrize("node", ["a", "g"])
def test_a_hook_that_blocks_is_the_reason(node: str) -> None:
    graph = graph_of("a [auto_status=true]; g [shape=diamond]; start -> a -> g -> exit;")
    walk = Walk(graph)
    while walk.line.next_node_id != node:
        walk.step()

    blocked = failed("hook guard of stage_start: no", failure_class=STRUCTURAL)
    ended = walk.step(blocked, blocked=True)

    assert (ended.next, ended.reason) == (None, "structural")
    reason = f"{node}@1: hook guard of stage_start: no"
    assert conclusion.conclude(graph, walk.line) == Conclusion("fail", reason, f"{node}@1")


def test_a_failed_run_goes_on_where_the_blame_is() -> None:
    graph = graph_of(LINE)
    walk = Walk(graph)
    walk.through(a=BAD)

    assert conclusion.failed_visit(graph, walk.state) == "a"


FAN = """
    s [shape=component]; a; a2 [goal_gate=true]; g [shape=diamond]; b
    j [shape=JOIN]; end; start -> s; s -> a -> a2 -> g -> j; s -> b -> j; j -> end -> exit
"""


def branch(**changes: object) -> Line:
    line = Line(
        next_node_id=NodeId("j"),
        completed_nodes=("a", "a2", "g"),
        node_outcomes={"a": OK, "a2": OK, "g": OK},
        node_visits={"a": 1, "a2": 1, "g": 1},
    )
    return replace(line, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "ended"),
    [
        pytest.param(branch(), Conclusion("success"), id="good"),
        pytest.param(
            branch(node_outcomes={"a": PARTLY, "a2": OK, "g": OK}),
            Conclusion("success"),
            id="partly-before",
        ),
        pytest.param(
            branch(node_outcomes={"a": OK, "a2": PARTLY, "g": OK}),
            Conclusion("partial_success"),
            id="partly-at-the-end",
        ),
        pytest.param(
            branch(unhandled=("a@1",)),
            Conclusion("fail", "unhandled failures: a@1", "a@1"),
            id="unhandled",
        ),
        pytest.param(
            branch(node_outcomes={"a": OK, "a2": BAD, "g": OK}),
            Conclusion("fail", "goal gate not satisfied: a2@1", "a2@1"),
            id="goal-gate",
        ),
        pytest.param(
            branch(
                next_node_id=None,
                ended="no_edge",
                current_node=NodeId("a"),
                completed_nodes=("a",),
                node_outcomes={"a": BAD},
            ),
            Conclusion("fail", "a@1: exit status 1", "a@1"),
            id="stopped-on-a-failure",
        ),
    ],
)
def test_a_branch_ends(line: Line, ended: Conclusion) -> None:
    graph = graph_of(FAN.replace("JOIN", "tripleoctagon"))

    fan_out = graph.fan_outs[NodeId("s")]
    assert conclusion.conclude_branch(graph, fan_out, NodeId("a"), line) == ended


@pytest.mark.parametrize(
    ("mode", "ended"),
    [
        pytest.param("route", Conclusion("fail", "unhandled failures: b@1", "b@1"), id="route"),
        pytest.param("succeed", Conclusion("success"), id="succeed"),
    ],
)
def test_a_failure_that_reaches_a_conditional_join_is_the_branchs(
    mode: str, ended: Conclusion
) -> None:
    graph = graph_of(FAN.replace("JOIN", "diamond"), on_failure=mode)
    line = Line(
        next_node_id=NodeId("j"),
        completed_nodes=("b",),
        node_outcomes={"b": BAD},
        node_visits={"b": 1},
        failure="b@1",
    )

    fan_out = graph.fan_outs[NodeId("s")]
    assert conclusion.conclude_branch(graph, fan_out, NodeId("b"), line) == ended


S, P, F, K = "success", "partial_success", "fail", "skipped"


@pytest.mark.parametrize(
    ("statuses", "wait_all", "first_success"),
    [
        ([S, S], S, S),
        ([S, P], P, S),
        ([S, F], P, S),
        ([S, K], S, S),
        ([P, P], P, P),
        ([P, F], P, P),
        ([P, K], P, P),
        ([F, F], F, F),
        ([F, K], F, F),
        ([K, K], F, F),
        ([], F, F),
    ],
)
def test_what_branches_come_to_together(
    statuses: list[str], wait_all: str, first_success: str
) -> None:
    assert join_status("wait_all", statuses) == wait_all
    assert join_status("first_success", statuses) == first_success
