"""Fan-outs: where branches meet, and what belongs to them."""

from __future__ import annotations

import re

import pytest

from git_fabro.workflow.admission import Admission, Source, admit

KINDS = {"s": "component", "t": "component", "j": "tripleoctagon", "k": "tripleoctagon"}


def admitted(edges: str) -> Admission:
    """A graph of edges between ``start``, ``exit`` and one-letter nodes; s, t open, j, k join."""
    names = sorted(set(re.findall(r"\b[a-z]\b", edges)))
    nodes = " ".join(f"{name} [label=x, shape={KINDS.get(name, 'box')}]" for name in names)
    ends = "start [shape=Mdiamond] exit [shape=Msquare]"
    return admit(Source(text=f"digraph {{ {ends} {nodes} {edges} }}", file="f"))


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        pytest.param(
            "start -> s -> a -> b -> j -> exit s -> c -> j",
            {"s": ("j", {"a": "ab", "c": "c"})},
            id="two branches",
        ),
        pytest.param(
            "start -> s -> a -> j -> exit s -> b -> c -> j c -> b",
            {"s": ("j", {"a": "a", "b": "bc"})},
            id="a loop in a branch",
        ),
        pytest.param(
            "start -> s -> a -> j -> exit s -> b -> j j -> s",
            {"s": ("j", {"a": "a", "b": "b"})},
            id="a loop around all of it",
        ),
        pytest.param(
            "start -> s -> t t -> a -> k t -> b -> k -> c -> j -> exit s -> d -> j",
            {"s": ("j", {"t": "abckt", "d": "d"}), "t": ("k", {"a": "a", "b": "b"})},
            id="one inside of another",
        ),
        pytest.param(
            "start -> s -> t t -> a -> k t -> b -> k -> j -> exit",
            {"s": ("j", {"t": "abkt"}), "t": ("k", {"a": "a", "b": "b"})},
            id="a single branch that is a fan-out",
        ),
        pytest.param(
            "start -> s -> a -> e -> exit s -> b -> e",
            {"s": ("e", {"a": "a", "b": "b"})},
            id="no fan_in",
        ),
        pytest.param(
            "start -> s -> a -> t s -> b -> t t -> c -> k t -> d -> k -> exit",
            {"s": ("t", {"a": "a", "b": "b"}), "t": ("k", {"c": "c", "d": "d"})},
            id="one after another, the first without a fan_in",
        ),
        pytest.param(
            "start -> s -> a -> j -> t s -> b -> j t -> c -> k t -> d -> k -> exit",
            {"s": ("j", {"a": "a", "b": "b"}), "t": ("k", {"c": "c", "d": "d"})},
            id="one after another",
        ),
        pytest.param(
            "start -> s -> a -> b -> j a -> c -> j -> exit",
            {"s": ("j", {"a": "abc"})},
            id="a choice inside of a single branch",
        ),
    ],
)
def test_branches_end_where_they_meet(
    edges: str, expected: dict[str, tuple[str, dict[str, str]]]
) -> None:
    admission = admitted(edges)

    assert admission.graph is not None
    found = {
        node: (
            fan_out.join,
            {branch: "".join(sorted(nodes)) for branch, nodes in fan_out.branches.items()},
        )
        for node, fan_out in admission.graph.fan_outs.items()
    }
    assert found == expected
    assert [list(branches) for _, branches in found.values()] == [
        list(branches) for _, branches in expected.values()
    ]


@pytest.mark.parametrize(
    ("edges", "messages"),
    [
        pytest.param(
            "start -> s -> a -> exit s -> b -> b",
            ['the branches of "s" do not meet'],
            id="a branch that never ends",
        ),
        pytest.param(
            "start -> s -> a -> e -> j -> exit s -> b -> e",
            ['node "e" belongs to two branches of "s"'],
            id="branches that flow together before their fan_in",
        ),
        pytest.param(
            "start -> s -> a -> j -> exit s -> b -> j b -> a",
            ['node "a" belongs to two branches of "s"'],
            id="from one branch into another",
        ),
        pytest.param(
            "start -> s -> a -> j -> exit s -> j",
            ['node "j" belongs to two branches of "s"'],
            id="an empty branch",
        ),
        pytest.param(
            "start -> s -> a -> j -> exit s -> a",
            [
                'second edge "s" -> "a" with the same condition',
                'an edge crosses the border of "s"',
            ],
            id="a branch twice",
        ),
        pytest.param(
            "start -> s -> a -> j -> exit s -> b -> j a -> s",
            ['an edge crosses the border of "s"'],
            id="out of a branch",
        ),
        pytest.param(
            "start -> c -> s -> a -> j -> exit s -> b -> j c -> a",
            ['an edge crosses the border of "s"'],
            id="into a branch",
        ),
        pytest.param(
            "start -> s -> t -> a -> j -> exit t -> b -> j s -> c -> j",
            ['node "t" belongs to two branches of "s"'],
            id="an inner fan-out that ends in the outer one's join",
        ),
    ],
)
def test_what_breaks_the_order_is_refused(edges: str, messages: list[str]) -> None:
    admission = admitted(edges)

    assert admission.graph is None
    said = [one.message for one in admission.diagnostics if one.severity != "info"]
    assert sorted(set(said)) == sorted(messages)


def test_fan_outs_may_be_nested_deeply() -> None:
    depth = 300
    opening = "".join(
        f"s{n} [shape=component] s{n} -> s{n + 1} s{n} -> a{n} -> j{n} " for n in range(depth)
    )
    nodes = "".join(
        f"a{n} [label=x] j{n} [shape=tripleoctagon] j{n + 1} -> j{n} " for n in range(depth)
    )
    ends = f"s{depth} [label=x] j{depth} [label=x] s{depth} -> j{depth} start -> s0 j0 -> exit"

    graph = admit(Source(text=f"digraph {{ start exit {opening} {nodes} {ends} }}", file="f")).graph

    assert graph is not None
    assert all(fan_out.join == f"j{fan_out.node[1:]}" for fan_out in graph.fan_outs.values())
