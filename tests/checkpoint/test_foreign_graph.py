"""The workflow of one of Fabro's runs, out of run.json."""

from __future__ import annotations

from typing import Any

import pytest

from git_fabro.checkpoint.foreign_graph import dot_of
from git_fabro.workflow import admission
from git_fabro.workflow.admission import Source

GRAPH: dict[str, Any] = {
    "name": "Ship it",
    "nodes": {
        "start": {"id": "start", "attrs": {"shape": {"String": "Mdiamond"}}},
        "plan": {
            "id": "plan",
            "classes": ["quick", "cheap"],
            "attrs": {
                "shape": {"String": "parallelogram"},
                "script": {"String": 'echo "a \\ b"\necho c'},
                "max_retries": {"Integer": 2},
                "goal_gate": {"Boolean": True},
                "timeout": {"Duration": {"secs": 90, "nanos": 0}},
            },
        },
        "exit": {"id": "exit", "attrs": {"shape": {"String": "Msquare"}}},
    },
    "edges": [
        {"from": "start", "to": "plan", "attrs": {}},
        {"from": "plan", "to": "exit", "attrs": {"condition": {"String": "outcome=success"}}},
    ],
    "attrs": {"goal": {"String": "ship"}, "new": {"Unheard": [1, 2]}},
}


def test_a_graph_as_dot_is_the_graph_again() -> None:
    source = dot_of(GRAPH)

    assert source is not None
    assert source.decode() == (
        'digraph "Ship it" {\n'
        '    goal="ship"\n'
        '    "start" [shape="Mdiamond"]\n'
        '    "plan" [class="quick cheap", shape="parallelogram", '
        'script="echo \\"a \\\\ b\\"\necho c", max_retries=2, goal_gate=true, timeout=90s]\n'
        '    "exit" [shape="Msquare"]\n'
        '    "start" -> "plan"\n'
        '    "plan" -> "exit" [condition="outcome=success"]\n'
        "}\n"
    )
    admitted = admission.admit(Source(text=source.decode(), file="graph.fabro"))
    assert [one.severity for one in admitted.diagnostics if one.severity == "error"] == []
    graph = admitted.graph
    assert graph is not None
    assert (graph.name, graph.goal, list(graph.nodes)) == (
        "Ship it",
        "ship",
        ["start", "plan", "exit"],
    )
    plan = graph.nodes[next(node for node in graph.nodes if node == "plan")]
    assert plan.text("script") == 'echo "a \\ b"\necho c'
    assert plan.number("max_retries") == 2


@pytest.mark.parametrize(("nanos", "text"), [(0, "1s"), (500_000_000, "1500ms")])
def test_a_duration_is_seconds_or_thousandths(nanos: int, text: str) -> None:
    attributes = {"timeout": {"Duration": {"secs": 1, "nanos": nanos}}}
    source = dot_of({"nodes": {"a": {"attrs": attributes}}, "edges": []})

    assert source == f'digraph "workflow" {{\n    "a" [timeout={text}]\n}}\n'.encode()


@pytest.mark.parametrize(
    "graph",
    [
        None,
        "digraph {}",
        [],
        {},
        {"nodes": {}, "edges": []},
        {"nodes": {"a": {}}},
        {"nodes": ["a"], "edges": []},
    ],
)
def test_what_is_no_graph_gives_none(graph: Any) -> None:
    assert dot_of(graph) is None


def test_what_has_another_shape_than_fabros_is_left_out_and_nothing_is_raised() -> None:
    graph: Any = {
        "name": 3,
        "nodes": {"a": None, 'b"]': {"attrs": {"x y": {"String": "no"}, "label": "bare"}}},
        "edges": ["a", {"from": "a"}],
        "attrs": [],
    }

    assert dot_of(graph) == b'digraph "workflow" {\n    "a"\n    "b\\"]"\n    "a" -> "None"\n}\n'
