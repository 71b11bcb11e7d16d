"""A graph is drawn as text, as DOT and as JSON, with what has happened to a run."""

from __future__ import annotations

from dataclasses import replace

from git_fabro.jobs import drawing
from git_fabro.workflow.admission import Source, admit
from git_fabro.workflow.graph import Graph, NodeId
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import FAIL, SUCCESS, Line, Outcome, RunState

LOOP = """digraph Loop {
    start [shape=Mdiamond]; exit [shape=Msquare]
    test [script="true"]; fix [script="true"]; lost [script="true", label="say \\"hi\\""]
    start -> test
    test -> exit [condition="outcome=success", label="good"]
    test -> fix
    fix -> test [loop_restart=true]
    lost -> exit
}
"""
AGAIN = RunState(
    line=Line(
        current_node=NodeId("fix"),
        next_node_id=NodeId("test"),
        completed_nodes=("start", "test", "fix"),
        node_outcomes={
            "start": Outcome(status=SUCCESS),
            "test": Outcome(status=FAIL),
            "fix": Outcome(status=SUCCESS, word="patched"),
        },
        node_visits={"start": 1, "test": 1, "fix": 2},
    )
)


def _graph() -> Graph:
    found = admit(
        Source(text=LOOP, file="loop.fabro", settings=Settings(), includes={}, kinds=frozenset())
    ).graph
    assert found is not None
    return found


def _text(state: RunState | None) -> list[str]:
    return ["".join(text for text, _ in parts) for parts in drawing.text(_graph(), state)]


def test_a_workflow_is_text_from_the_start_on() -> None:
    assert _text(None) == [
        "start (start)",
        "  -> test",
        "test (command)",
        '  -> exit "good" (conditional)',
        "  -> fix",
        "exit (exit)",
        "fix (command)",
        "  -> test (loop restart)",
        "lost (command)",
        "  -> exit",
    ]


def test_a_run_has_outcomes_visits_and_the_path_taken() -> None:
    assert _text(AGAIN) == [
        "start (start) success",
        "  => test",
        "test (command) fail, next",
        '  -> exit "good" (conditional)',
        "  => fix",
        "exit (exit)",
        "fix (command) patched x2",
        "  => test (loop restart)",
        "lost (command)",
        "  -> exit",
    ]


def test_the_parts_name_the_status_whose_colour_they_have() -> None:
    told = [parts[1] for parts in drawing.text(_graph(), AGAIN) if len(parts) == 2]

    assert told[:2] == [(" success", "success"), (" fail, next", "fail")]


def test_the_dot_of_a_workflow_quotes_what_it_must() -> None:
    rows = drawing.dot(_graph(), None).splitlines()

    assert rows[0] == 'digraph "Loop" {'
    assert '  "start" [shape=Mdiamond, label="start"]' in rows
    assert '  "lost" [shape=parallelogram, label="say \\"hi\\""]' in rows
    assert '  "test" -> "exit" [label="good", style=dashed]' in rows
    assert rows[-1] == "}"


def test_the_dot_of_a_run_is_coloured() -> None:
    rows = drawing.dot(_graph(), AGAIN).splitlines()

    assert (
        '  "start" [shape=Mdiamond, label="start\\nsuccess", style=filled, fillcolor="#bfe3bf"]'
        in rows
    )
    assert any('"test" [' in row and "#b6d4f4" in row for row in rows)
    assert '  "start" -> "test" [penwidth=3]' in rows
    ended = replace(AGAIN, line=replace(AGAIN.line, next_node_id=None))
    assert any(
        '"test" [' in row and "#f4b6b6" in row for row in drawing.dot(_graph(), ended).splitlines()
    )


def test_the_document_has_nodes_and_edges() -> None:
    found = drawing.document(_graph(), AGAIN)

    assert found["nodes"][3] == {  # type: ignore[index]
        "id": "fix",
        "kind": "command",
        "label": "fix",
        "status": "patched",
        "visits": 2,
    }
    assert [edge["taken"] for edge in found["edges"]] == [True, False, True, True, False]  # type: ignore[attr-defined]
