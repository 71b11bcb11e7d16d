"""Admission: defaults, classes, kinds, texts, models; the same source gives the same graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.workflow import admission, graph, settings
from git_fabro.workflow.admission import Source, admit
from git_fabro.workflow.graph import Graph, NodeId, Place, outcome_words
from git_fabro.workflow.settings import Settings


def admitted(
    body: str,
    *,
    chosen: Settings | None = None,
    includes: Mapping[str, str | None] | None = None,
    kinds: frozenset[str] = frozenset(),
) -> Graph:
    text = f"digraph {{ start [shape=Mdiamond] exit [shape=Msquare]\n{body}\n}}"
    source = Source(
        text=text,
        file="f",
        settings=chosen or Settings(),
        includes=includes or {},
        kinds=kinds,
    )
    found = admit(source)
    assert found.graph is not None, [one.render() for one in found.diagnostics]
    return found.graph


def attribute(found: Graph, node: str, key: str) -> object:
    return found.nodes[NodeId(node)].attributes.get(key)


def test_a_graph_holds_typed_values_under_first_names() -> None:
    found = admitted(
        """
        goal="Ship"; graph [default_max_retry="2", stall_timeout=90, wholly_new=x]
        run [command="make", timeout="2m", max_retries=1, goal_gate="True", label=5]
        ask [llm_prompt="Why?", llm_model=big, llm_provider=other]
        nap [shape=insulator, duration=250ms]
        start -> run -> ask -> nap -> exit [weight="3", label=Go, condition="outcome=success"]
        """
    )

    assert found.attributes == {
        "goal": "Ship",
        "default_max_retries": 2,
        "stall_timeout": 90.0,
        "wholly_new": "x",
    }
    assert found.nodes[NodeId("run")].attributes == {
        "script": "make",
        "timeout": 120.0,
        "max_retries": 1,
        "goal_gate": True,
        "label": "5",
    }
    assert found.nodes[NodeId("ask")].attributes == {
        "prompt": "Why?",
        "model": "big",
        "provider": "other",
    }
    assert found.nodes[NodeId("nap")].seconds("duration") == 0.25
    assert (found.start, found.exit) == ("start", "exit")
    assert [(edge.index, edge.weight, edge.label) for edge in found.edges] == [
        (number, 3, "Go") for number in range(4)
    ]
    assert found.nodes[NodeId("run")].place == Place(4, 9)


def test_defaults_hold_from_where_they_are_set_to_the_end_of_their_scope() -> None:
    found = admitted(
        """
        start -> early -> mid -> inner -> deep -> late -> exit
        early [label=x]
        node [max_visits=1, label=y]
        edge [weight=1]
        mid
        subgraph { node [max_visits=2]; edge [weight=2] inner
          subgraph { node [timeout=1s] deep } inner -> exit }
        late [label=z]; late -> exit
        """
    )

    assert {name: attribute(found, name, "max_visits") for name in found.nodes} == {
        "start": None,
        "exit": None,
        "early": None,
        "mid": 1,
        "inner": 2,
        "deep": 2,
        "late": 1,
    }
    assert attribute(found, "deep", "timeout") == 1.0
    assert attribute(found, "late", "label") == "z"
    assert [edge.weight for edge in found.edges] == [0, 0, 0, 0, 0, 0, 2, 1]


def test_two_statements_of_a_node_add_up() -> None:
    found = admitted("a [label=x, max_visits=1] node [timeout=1s] a [label=y] start -> a -> exit")

    assert found.nodes[NodeId("a")].attributes == {"label": "y", "max_visits": 1}


def test_subgraphs_give_classes_to_the_nodes_declared_in_them() -> None:
    found = admitted(
        """
        node [class="c, d"]
        subgraph cluster_1 {
          a [label=x]
          subgraph { label="Über-Work 2!" b [label=x, class="e d"] }
          graph [label="Hard work"]
        }
        subgraph { label="Late" a }
        start -> a -> b -> exit
        """
    )

    a, b = found.nodes[NodeId("a")], found.nodes[NodeId("b")]
    assert (a.classes, a.subgraph_class) == (("c", "d", "hard-work", "late"), "hard-work")
    assert (b.classes, b.subgraph_class) == (("e", "d", "ber-work-2", "hard-work"), "ber-work-2")


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("shape=box", graph.AGENT),
        ("shape=tab", graph.PROMPT),
        ("shape=diamond", graph.CONDITIONAL),
        ("type=one_shot", graph.PROMPT),
        ('type="parallel.fan_in"', graph.FAN_IN),
        ("type=human, shape=box", graph.HUMAN),
        ("type=nothing, shape=hexagon", graph.HUMAN),
        ("node_type=human", graph.HUMAN),
        ("node_type=human, type=prompt", graph.PROMPT),
        ("script=x", graph.COMMAND),
        ("tool_command=x, shape=box", graph.AGENT),
        ("command=x, shape=oval", graph.AGENT),
        ("label=x", graph.AGENT),
        ("type=robot", "robot"),
    ],
)
def test_the_kind_is_decided_by_type_then_shape_then_command(written: str, kind: str) -> None:
    found = admitted(f"a [{written}] start -> a -> exit", kinds=frozenset({"robot"}))

    assert found.nodes[NodeId("a")].kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "digraph { start -> exit start exit }",
        "digraph { Start [shape=box] End [shape=oval] Start -> End }",
        "digraph { begin [type=start] over [type=exit] start [label=x] begin -> start -> over }",
    ],
)
def test_ends_are_found_by_id_where_nothing_else_says(text: str) -> None:
    found = admit(Source(text=text, file="f")).graph

    assert found is not None
    assert found.nodes[found.start].kind == graph.START
    assert found.nodes[found.exit].kind == graph.EXIT


INCLUDES = {"p.md": "Goal: $goal, $who.\n", "goal.txt": "ship $who"}


def test_texts_are_included_and_their_names_replaced_once() -> None:
    found = admitted(
        r"""
        goal="@goal.txt"
        a [prompt="@p.md"]
        b [prompt="@@home {{ vars.who }}", label="$goal", script="echo $who {{ inputs.who }}"]
        start -> a -> b -> exit [label="to $who", condition="x={{ vars.who }}"]
        """,
        includes=INCLUDES,
        chosen=Settings(variables={"who": "$goal {{ goal }}"}),
    )

    assert found.goal == "ship $goal {{ goal }}"
    assert attribute(found, "a", "prompt") == "Goal: ship $goal {{ goal }}, $goal {{ goal }}.\n"
    assert attribute(found, "b", "prompt") == "@home $goal {{ goal }}"
    assert attribute(found, "b", "label") == "ship $goal {{ goal }}"
    assert attribute(found, "b", "script") == "echo $who $goal {{ goal }}"
    assert found.edges[0].label == "to $goal {{ goal }}"
    assert found.edges[0].condition is not None
    assert found.edges[0].condition.alternatives[0][0].value == "$goal {{ goal }}"


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("by $who, $when", "by me, $when"),
        ("{{ inputs.who }} {{ other }}", "me {{ other }}"),
        ("@goal.txt", "ship me"),
        ("@@goal.txt", "@goal.txt"),
    ],
)
def test_a_goal_from_outside_wins(goal: str, expected: str) -> None:
    chosen = Settings(goal=goal, variables={"who": "me"})

    found = admitted(
        'goal="mine" a [label="$goal"] start -> a -> exit', chosen=chosen, includes=INCLUDES
    )

    assert found.goal == found.nodes[NodeId("a")].label == expected


def test_a_file_of_the_goal_from_outside_must_be_there() -> None:
    source = Source(text="digraph { start -> exit start exit }", file="f")

    found = admit(replace(source, settings=Settings(goal="@none.md")))

    assert [one.render() for one in found.diagnostics] == [
        (
            'f:1:1: prompt file "none.md" cannot be read [prompt_file]\n'
            "digraph { start -> exit start exit }\n^"
        )
    ]


def test_included_files_are_named_with_their_places() -> None:
    text = """digraph {
        goal="@goal.txt" broken ] ;
        node [prompt=" @a.md "] a [llm_prompt="@../b c.md", label="@no"]
        subgraph { goal="@no" } b [prompt="@@no"]
    """

    assert admission.includes(text, "f") == (
        admission.Include("goal.txt", Place(2, 14)),
        admission.Include("a.md", Place(3, 22)),
        admission.Include("../b c.md", Place(3, 47)),
    )


@pytest.mark.parametrize(
    ("own", "sheet", "chosen", "default", "expected"),
    [
        ("own", "sheet", "chosen", "default", "own"),
        ("", "sheet", "chosen", "default", "sheet"),
        ("", "", "chosen", "default", "chosen"),
        ("", "", "", "default", "default"),
        ("", "", "", "", None),
    ],
)
def test_the_model_comes_from_the_nearest_that_says_one(
    own: str, sheet: str, chosen: str, default: str, expected: str | None
) -> None:
    body = "".join(
        [
            f'model_stylesheet="box {{ model: {sheet} }}"' if sheet else "",
            f" default_model={default}" if default else "",
            f" a [prompt=x, model={own}]" if own else " a [prompt=x]",
            " b [script=x] start -> a -> b -> exit",
        ]
    )

    found = admitted(body, chosen=Settings(model=chosen))

    assert attribute(found, "a", "model") == expected
    assert attribute(found, "b", "model") is None


def test_the_command_line_is_the_strongest_layer_of_settings() -> None:
    file = settings.parse('[llm]\nmodel="file"\nprovider="file"', "run.toml")[0]
    chosen = settings.merge([settings.command_line(model="typed"), file])

    found = admitted("a [prompt=x] start -> a -> exit", chosen=chosen)

    assert (attribute(found, "a", "model"), attribute(found, "a", "provider")) == ("typed", "file")


def test_custom_words_are_those_behind_a_node_and_its_conditionals() -> None:
    found = admitted(
        """
        a [prompt=x] g [shape=diamond] h [shape=diamond] b [prompt=x]
        start -> a -> g -> h -> b -> exit
        a -> b [condition="outcome=one"] g -> b [condition="outcome=two || outcome=fail"]
        h -> b [condition="outcome!=three"] h -> g b -> a [condition="outcome=four"]
        """
    )

    assert outcome_words(found, NodeId("a")) == {"one", "two", "three"}
    assert outcome_words(found, NodeId("b")) == {"four"}


VALID = """digraph Valid {
    graph [goal="Ship $who", model_stylesheet="* { model: a }"]
    node [shape=parallelogram, timeout="60s"]
    start [shape=Mdiamond]; exit [shape=Msquare]
    split [shape=component] join [shape=tripleoctagon, merge=all]
    subgraph cluster_x { label="X y" a [script="make"] b [shape=box, prompt="@p.md"] }
    gate [shape=hexagon, "human.default_choice"="a"] g [shape=diamond]
    start -> split -> a -> join; split -> b -> join -> g
    g -> gate [condition="outcome=success && x matches \\"a+\\""]
    g -> exit [weight=2]
    gate -> a [label="[A] Again"]
    gate -> exit [freeform=true]
}"""


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid file with some pieces cut out, doubled, or put elsewhere."""
    text = VALID
    for _ in range(draw(st.integers(0, 4))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 30)))
        where = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from([text[begin:end], "", '"', "[", "}", "$x", "{{ y }}", "\\"]))
        cut = text[:begin] + text[end:] if draw(st.booleans()) else text
        text = cut[:where] + piece + cut[where:]
    return text


@given(st.one_of(st.text(), mutated()))
def test_any_text_gives_a_graph_or_errors_and_always_the_same(text: str) -> None:
    source = Source(
        text=text,
        file="f",
        settings=Settings(variables={"who": "me"}),
        includes={include.path: "text" for include in admission.includes(text, "f")},
    )

    found = admit(source)

    assert admit(source) == found
    failed = any(one.severity == "error" for one in found.diagnostics)
    assert (found.graph is None) == failed
    for one in found.diagnostics:
        assert one.render()


@pytest.mark.parametrize(
    "piece",
    ["a->", "a b ", "a [x=1] ", "node [x=1] ", "subgraph { label=x ", "a -> b ", "edge [x=1] "],
)
def test_a_large_graph_is_checked(piece: str) -> None:
    text = "digraph { start exit a b start -> exit " + piece * (200_000 // len(piece)) + "a }"

    assert admit(Source(text=text, file="f")).diagnostics


def test_a_large_graph_in_order_is_admitted() -> None:
    nodes = " ".join(f"n{number} [label=x]" for number in range(5_000))
    chain = " -> ".join(f"n{number}" for number in range(5_000))

    found = admitted(f"{nodes} start -> {chain} -> exit")

    assert len(found.nodes) == 5_002
