"""Choices of human gates: their keys, and what an answer means."""

from __future__ import annotations

import pytest

from git_fabro.workflow.condition import parse
from git_fabro.workflow.gate import Choice, choices_of, match_choice, normalise_label
from git_fabro.workflow.graph import Edge, NodeId


def edge(
    label: str = "", target: str = "t", *, condition: str = "", freeform: bool = False
) -> Edge:
    return Edge(
        source=NodeId("q"),
        target=NodeId(target),
        index=0,
        label=label,
        condition=parse(condition) if condition else None,
        freeform=freeform,
    )


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("  Ship It ", "ship it"),
        ("[S] Ship", "ship"),
        ("[Ctrl C] Ship", "ship"),
        ("R) Reject", "reject"),
        ("12) Reject", "reject"),
        ("Y - Yes, publish", "yes, publish"),
        ("Yes - and no", "and no"),
        ("Maybe - or not", "maybe - or not"),
        ("Y-Yes", "y-yes"),
        ("[Y]es", "[y]es"),
        ("[A] [B] c", "[b] c"),
        ("", ""),
    ],
)
def test_labels_are_compared_without_accelerator(label: str, expected: str) -> None:
    assert normalise_label(label) == expected


@pytest.mark.parametrize(
    ("labels", "keys"),
    [
        pytest.param(["[A] Approve", "R) Reject", "Y - Yes"], ["A", "R", "Y"], id="written"),
        pytest.param(["yes", "no"], ["Y", "N"], id="first letter"),
        pytest.param(["Ship", "Stop", "Stay"], ["S", "T", "A"], id="next free letter"),
        pytest.param(["…", "a", "aa"], ["1", "A", "3"], id="number"),
        pytest.param(["Yes", "[Y] Yup"], ["E", "Y"], id="a written key is the author's"),
        pytest.param(["[x] One", "[X] Two"], ["X", "X"], id="clash"),
        pytest.param(["[OK] Fine", "okay"], ["OK", "O"], id="longer keys"),
        pytest.param(["Über", "7 days"], ["Ü", "7"], id="any letter or digit"),
    ],
)
def test_keys_come_from_the_accelerator_or_the_text(labels: list[str], keys: list[str]) -> None:
    assert [choice.key for choice in choices_of(map(edge, labels))] == keys


def test_only_unconditional_edges_are_offered() -> None:
    found = choices_of(
        [
            edge("[Y] Yes", "a"),
            edge("", "no_label"),
            edge("Never", "b", condition="outcome=fail"),
            edge("Say", "c", freeform=True),
        ]
    )

    assert found == (
        Choice("Y", "Yes", NodeId("a")),
        Choice("N", "no_label", NodeId("no_label")),
    )


OFFERED = choices_of([edge("[N] Yes", "go"), edge("No", "stop"), edge("Y - N", "yes")])
FREEFORM = edge("Say", "talk", freeform=True)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        pytest.param("n", "go", id="key before label"),
        pytest.param(" YES ", "go", id="label before target"),
        pytest.param("no", "stop", id="label"),
        pytest.param("[Z] no", "stop", id="label with another accelerator"),
        pytest.param("Stop", "stop", id="target"),
        pytest.param("talk", "talk", id="text for the freeform edge"),
        pytest.param("perhaps", "talk", id="other text"),
        pytest.param("  ", None, id="blank"),
    ],
)
def test_an_answer_is_matched(text: str, target: str | None) -> None:
    found = match_choice(OFFERED, FREEFORM, text)

    assert (found.target if found else None) == target


def test_without_a_freeform_edge_other_text_means_nothing() -> None:
    assert match_choice(OFFERED, None, "perhaps") is None
