"""Names in texts: what is replaced where, and what is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.workflow.template import Names, Replaced, Unknown, in_prose, in_script, in_text

NAMES = Names("ship $team {{ goal }}", {"team": "night", "rows": "5", "my-key.x": "dashed"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing", "nothing"),
        ("{{ goal }}", "ship $team {{ goal }}"),
        ("{{goal}}!", "ship $team {{ goal }}!"),
        ("{{ inputs.rows }} by {{ vars.team }}", "5 by night"),
        ("{{ inputs.team }} {{ vars.my-key.x }}", "night dashed"),
        ('{{ "{{" }} goal }}', "{{ goal }}"),
        ('{{"{%"}} {{ "}}" }} {{ "%}" }}', "{% }} %}"),
        ("a } b }} { c", "a } b }} { c"),
    ],
)
def test_names_in_braces_are_replaced_everywhere(text: str, expected: str) -> None:
    assert in_text(text, NAMES) == Replaced(expected)
    assert in_prose(text, NAMES) == Replaced(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Goal: $goal.", Replaced("Goal: ship $team {{ goal }}.")),
        ("$team, $rows", Replaced("night, 5")),
        ("$5 and ${team} and $", Replaced("$5 and ${team} and $")),
        ("$teams $HOME", Replaced("$teams $HOME", (Unknown("$teams", 0), Unknown("$HOME", 7)))),
    ],
)
def test_dollar_names_are_replaced_in_prose(text: str, expected: Replaced) -> None:
    assert in_prose(text, NAMES) == expected
    assert in_text(text, NAMES) == Replaced(text)
    assert in_script(text, NAMES) == Replaced(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("echo {{ goal }}", Replaced("echo ship $team {{ goal }}")),
        ("echo '{{ inputs.rows }}'", Replaced("echo '5'")),
        ("date +{%Y} {{ .Names }} {{ goals }}", Replaced("date +{%Y} {{ .Names }} {{ goals }}")),
        ('{{ "{{" }}', Replaced('{{ "{{" }}')),
        ("{{ inputs.x }}", Replaced("{{ inputs.x }}", (), (Unknown("inputs.x", 0),))),
    ],
)
def test_of_a_script_only_names_of_ours_are_replaced(text: str, expected: Replaced) -> None:
    assert in_script(text, NAMES) == expected


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("a {{ inputs.nobody }}", [Unknown("inputs.nobody", 2)]),
        ("{{ x }} {{ y }}", [Unknown("x", 0), Unknown("y", 8)]),
        ("{{ goal | upper }}", [Unknown("goal | upper", 0)]),
        ("{{ }}", [Unknown("", 0)]),
        ("a {{ goal", [Unknown("goal", 2)]),
        ("{% if x %}b{% endif %}", [Unknown("{% if x %}", 0), Unknown("{% endif %}", 11)]),
    ],
)
def test_unknown_names_in_braces_are_found_with_their_place(
    text: str, unknown: list[Unknown]
) -> None:
    assert in_text(text, NAMES) == Replaced(text, (), tuple(unknown))


def test_the_goal_does_not_name_itself() -> None:
    assert in_prose("{{ goal }} $goal", Names(None, {})) == Replaced(
        "{{ goal }} $goal", (Unknown("$goal", 11),), (Unknown("goal", 0),)
    )


@pytest.mark.parametrize(
    "piece", ["{{", "{%", "$", "{{ goal }}", "{", "}}", "$a ", '{{ "', " {{ goal"]
)
def test_a_long_text_is_read_in_linear_time(piece: str) -> None:
    text = piece * (500_000 // len(piece))

    for replace in (in_text, in_prose, in_script):
        replace(text, NAMES)


@given(st.one_of(st.text(), st.text('{}%$goal "\n')))
def test_any_text_is_replaced_and_nothing_is_lost_without_names(text: str) -> None:
    for replace in (in_text, in_prose, in_script):
        replace(text, NAMES)
        if '"' not in text:
            assert replace(text, Names()).text == text
