"""How findings are sorted and printed, and which name is near."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.workflow.diagnostic import Findings, nearest, quoted


def test_findings_are_sorted_by_place_and_the_same_one_is_told_once() -> None:
    findings = Findings("f", "one\ntwo\n\tthree")
    findings.info("c", 9, "third")
    findings.warning("b", 4, "second")
    findings.error("a", 4, "first")
    findings.error("a", 4, "first")

    assert [one.render() for one in findings.sorted()] == [
        "f:2:1: first [a]\ntwo\n^",
        "f:2:1: warning: second [b]\ntwo\n^",
        "f:3:2: info: third [c]\n\tthree\n\t^",
    ]


def test_of_a_long_line_the_part_around_the_caret_is_printed() -> None:
    findings = Findings("f", "x" * 500_000 + "y" + "z" * 500_000)
    findings.error("a", 500_000, "here")

    _, line, caret = findings.sorted()[0].render().split("\n")
    assert line == "x" * 120 + "y" + "z" * 119
    assert line[len(caret) - 1] == "y"


def test_nothing_that_a_terminal_would_obey_is_printed() -> None:
    findings = Findings("f", "a\x1b[31mb\u202e")
    findings.error("a", 7, "no \x1b[0m")

    assert findings.sorted()[0].render() == "f:1:8: no �[0m [a]\na�[31mb�\n       ^"


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("biuld", ["plan", "build", "test"], "build"),
        ("delpoy", ["deploy", "delay"], "deploy"),
        ("Deploy", ["deploy"], "deploy"),
        ("ab", ["cd", "b"], "b"),
        ("a", ["b"], None),
        ("build", ["plan", "build"], None),
        ("", ["a"], None),
    ],
)
def test_the_nearest_name_takes_two_edits_at_most(
    name: str, known: list[str], expected: str | None
) -> None:
    assert nearest(name, known) == expected


@given(st.text())
def test_a_quoted_text_is_one_short_line(text: str) -> None:
    shown = quoted(text)

    assert len(shown) <= 62
    assert "\n" not in shown
