"""What a human gate offers: its choices with their keys, and which of them an answer means.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from git_fabro.workflow.graph import Edge, Graph, NodeId

_ACCELERATOR = re.compile(r"(?:\[([^\]]+)\]|([^\W_]{1,3})(?:\)|\s+-))\s+")


@dataclass(frozen=True, slots=True)
class Choice:
    """A way out that a gate offers; the label is without its accelerator."""

    key: str
    label: str
    target: NodeId


def normalise_label(text: str) -> str:
    """A label for comparing: trimmed, in lower case, without its accelerator."""
    return _split(text)[1].lower()


def choices(graph: Graph, node: NodeId) -> tuple[Choice, ...]:
    """What a gate offers, in file order."""
    return choices_of(graph.outgoing(node))


def freeform_edge(graph: Graph, node: NodeId) -> Edge | None:
    """The edge of a gate that takes any text, if it has one."""
    return next((edge for edge in graph.outgoing(node) if edge.freeform), None)


def choices_of(edges: Iterable[Edge]) -> tuple[Choice, ...]:
    """The choices that a gate's edges make.

    A key that an author wrote is his: derived keys are found among what those leave over.
    """
    offered = [edge for edge in edges if edge.condition is None and not edge.freeform]
    parts = [_split(edge.label.strip() or edge.target) for edge in offered]
    taken = {key for key, _ in parts if key}
    found: list[Choice] = []
    for number, (edge, (key, text)) in enumerate(zip(offered, parts, strict=True), 1):
        key = key or _derived_key(text, number, taken)
        taken.add(key)
        found.append(Choice(key, text, edge.target))
    return tuple(found)


def match_choice(
    offered: Sequence[Choice], freeform: Edge | None, text: str
) -> Choice | Edge | None:
    """What an answer means: by key, label, target, else the text for the freeform edge, else None.

    A blank answer means nothing.
    """
    wanted = text.strip().lower()
    if not wanted:
        return None
    label = normalise_label(text)
    for choice in offered:
        if choice.key.lower() == wanted:
            return choice
    for choice in offered:
        if normalise_label(choice.label) in {label, wanted}:
            return choice
    for choice in offered:
        if choice.target.lower() == wanted:
            return choice
    return freeform


def _derived_key(text: str, number: int, taken: set[str]) -> str:
    letters = (letter.upper() for letter in text if letter.isalnum())
    free = (letter for letter in letters if letter not in taken)
    return next(free, str(number))


def _split(text: str) -> tuple[str, str]:
    """An upper-case accelerator, empty if there is none, and the text after it."""
    text = text.strip()
    match = _ACCELERATOR.match(text)
    if match is None:
        return "", text
    return (match[1] or match[2]).strip().upper(), text[match.end() :]
