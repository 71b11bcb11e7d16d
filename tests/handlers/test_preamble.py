"""What an agent is told before its prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.handlers.preamble import (
    COMPACT,
    FULL,
    LIMITS,
    SUMMARY_HIGH,
    SUMMARY_LOW,
    SUMMARY_MEDIUM,
    TRUNCATE,
    build,
    has_thread,
    resolve_fidelity,
    resolve_thread,
)
from git_fabro.workflow.graph import Edge, Node, NodeId
from git_fabro.workflow.state import Failure, Line, Outcome
from tests.handlers.calls import a_graph, a_node, a_settings

GRAPH = a_graph(
    a_node("plan", "agent"),
    a_node("test", "command", script="make test"),
    a_node("big", "command", script="one\ntwo"),
    goal="ship it",
)
BLOB = "blob://sha256/" + "0" * 64
WHOLE = "".join(f"line {n}\n" for n in range(30))


def command(status: str, output: str, stderr: str = "", **more) -> Outcome:
    updates = {"command.output": output, "command.stderr": stderr}
    return Outcome(status=status, context_updates=updates, **more)


LINE = Line(
    completed_nodes=("start", "plan", "test", "plan", "big"),
    node_visits={"start": 1, "plan": 4, "test": 1, "big": 2},
    open_visit="big@2",
    node_outcomes={
        "start": Outcome(status="success"),
        "plan": Outcome(
            status="success",
            word="port",
            context_updates={"response.plan": "x" * 300},
            files_touched=tuple(f"f{n}" for n in range(22)),
        ),
        "test": command("fail", "1 failed", "a\nb", failure=Failure("exit status 1:\n b")),
        "big": command("success", BLOB),
    },
    context_values={
        "graph.goal": "ship it",
        "internal.run_id": "R",
        "current_node": "big",
        "thread.x": 1,
        "response.plan": "secret words",
        "outcome": "success",
        "list": [1, "é"],
        "long": "y" * 600,
        "command.output": BLOB,
    },
)


def told(mode: str, line: Line = LINE, graph=GRAPH) -> str:
    return build(
        mode,
        graph=graph,
        run="R1",
        line=line,
        resolve=lambda value: WHOLE if value == BLOB else value,
        artifact=lambda value: "command.output.json" if value == BLOB else None,
    )


COMPACT_TEXT = """\
Goal: ship it

Completed:
- start@1 (start): success
- plan@3 (agent): visited again since
- test@1 (command): fail
  reason: exit status 1: b
  script: make test
  output: 1 failed
  stderr:
    a
    b
- plan@4 (agent): port
  response: {response}
  files: {files} and 2 more
- big@1 (command): success
  script:
    one
    two
  output:
{output}

Context:
- command.output: 262 bytes in $FABRO_ARTIFACTS/command.output.json
- list: [1, "é"]
- long: "{long}…
- outcome: "success\""""


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (FULL, ""),
        (TRUNCATE, "Goal: ship it\nRun: R1"),
        (
            COMPACT,
            COMPACT_TEXT.format(
                response="x" * 199 + "…",
                files=", ".join(f"f{n}" for n in range(20)),
                output="\n".join(f"    line {n}" for n in range(10, 30)),
                long="y" * 498,
            ),
        ),
        (
            SUMMARY_LOW,
            (
                "Goal: ship it\n\nCompleted:\n- start@1 (start): success\n"
                "- plan@3 (agent): visited again since\n- test@1 (command): fail\n"
                "- plan@4 (agent): port\n- big@1 (command): success"
            ),
        ),
    ],
)
def test_preambles(mode: str, text: str) -> None:
    assert told(mode) == text


def test_a_longer_summary_has_reasons_context_and_answers() -> None:
    medium, high = told(SUMMARY_MEDIUM), told(SUMMARY_HIGH)

    assert "  reason: exit status 1: b\n" in medium
    assert '- list: [1, "é"]\n' in medium
    assert "x" * 300 not in medium
    assert "  response: " + "x" * 300 in high
    assert "    line 29" in high


def test_the_oldest_visits_go_first_and_are_counted() -> None:
    nodes = [a_node(f"node{n:03}", "agent") for n in range(200)]
    line = Line(
        completed_nodes=tuple(node.id for node in nodes),
        node_visits={node.id: 1 for node in nodes},
        node_outcomes={node.id: Outcome(status="success") for node in nodes},
    )

    text = told(SUMMARY_LOW, line, a_graph(*nodes, goal="g"))

    lines = text.splitlines()
    kept = sum(line.startswith("- node") for line in lines)
    assert lines[:4] == ["Goal: g", "", "Completed:", f"- ({200 - kept} more left out)"]
    assert lines[-1] == "- node199@1 (agent): success"
    assert 2300 < len(text) <= LIMITS[SUMMARY_LOW]


TEXTS = st.text(alphabet="ab\n é", max_size=40) | st.sampled_from(["x" * 5000, "y\n" * 3000])


@given(st.sampled_from(sorted(LIMITS)), TEXTS, st.lists(TEXTS, max_size=8), TEXTS)
def test_a_summary_keeps_its_limit(mode, goal, responses, value) -> None:
    nodes = [a_node(f"n{n}", "agent") for n in range(len(responses))]
    line = Line(
        completed_nodes=tuple(node.id for node in nodes),
        node_visits={node.id: 1 for node in nodes},
        node_outcomes={
            node.id: Outcome(
                status="fail",
                failure=Failure(text),
                context_updates={f"response.{node.id}": text, "command.output": text},
            )
            for node, text in zip(nodes, responses, strict=True)
        },
        context_values={f"k{n}{value[:9]}": value for n in range(30)},
    )

    assert len(told(mode, line, a_graph(*nodes, goal=goal))) <= LIMITS[mode]


def test_nothing_done_and_nothing_known_is_the_goal_alone() -> None:
    assert {told(mode, Line()) for mode in (COMPACT, *LIMITS)} == {"Goal: ship it"}


def an_edge(fidelity: str = "", thread_id: str = "") -> Edge:
    return Edge(
        source=NodeId("a"), target=NodeId("b"), index=0, fidelity=fidelity, thread_id=thread_id
    )


@pytest.mark.parametrize(
    ("edge", "node", "graph", "fidelity"),
    [
        ("full", "truncate", "summary:low", "full"),
        ("", "truncate", "summary:low", "truncate"),
        ("", "", "summary:low", "summary:low"),
        ("", "", "", "compact"),
        ("odd", "odd", "full", "full"),
        (None, "", "full", "full"),
    ],
)
def test_fidelity_comes_from_edge_node_graph(edge, node, graph, fidelity) -> None:
    found = resolve_fidelity(
        a_graph(default_fidelity=graph),
        a_node(fidelity=node),
        None if edge is None else an_edge(fidelity=edge),
    )

    assert found == fidelity


@pytest.mark.parametrize(
    ("node", "edge", "graph", "subgraph", "previous", "thread"),
    [
        ("n", "e", "g", "s", "p", "n"),
        ("", "e", "g", "s", "p", "e"),
        ("", "", "g", "s", "p", "g"),
        ("", "", "", "s", "p", "s"),
        ("", "", "", None, "p", "p"),
        ("", None, "", None, None, "work"),
    ],
)
def test_a_thread_comes_from_the_nearest(node, edge, graph, subgraph, previous, thread) -> None:
    found = resolve_thread(
        a_graph(default_thread=graph),
        Node(
            id=NodeId("work"), kind="agent", attributes={"thread_id": node}, subgraph_class=subgraph
        ),
        None if edge is None else an_edge(thread_id=edge),
        previous,
    )

    assert found == thread


@pytest.mark.parametrize(
    ("preset", "command", "has"),
    [("", (), False), ("claude", (), False), ("", ("a", ("--resume", "{thread}")), True)],
)
def test_a_command_with_a_thread_continues_conversations(preset, command, has) -> None:
    assert has_thread(a_settings(preset, command)) == has
