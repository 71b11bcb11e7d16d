"""The model stylesheet: which rule wins, and what does not parse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.errors import RequestError
from git_fabro.workflow.stylesheet import StylesheetError, parse, properties_of

SHEET = """
    #review { provider: other }   /* a second pair of eyes */
    *      { model: small;  }
    .hard  { llm_model: large; reasoning_effort: high; }
    box    { model: middle; backend: "b; c" }
    .late  { model: last }
    #v1.2  { max_tokens: 100 }
    * { speed: fast }
"""


@pytest.mark.parametrize(
    ("node", "shape", "classes", "expected"),
    [
        ("a", "tab", (), {"model": "small", "speed": "fast"}),
        ("a", "box", (), {"model": "middle", "backend": "b; c", "speed": "fast"}),
        ("a", "tab", ("hard",), {"model": "large", "reasoning_effort": "high", "speed": "fast"}),
        (
            "a",
            "tab",
            ("late", "hard"),
            {"model": "last", "reasoning_effort": "high", "speed": "fast"},
        ),
        ("review", "tab", (), {"model": "small", "provider": "other", "speed": "fast"}),
        ("v1.2", "tab", (), {"model": "small", "max_tokens": "100", "speed": "fast"}),
    ],
)
def test_the_more_particular_rule_wins_and_then_the_later(
    node: str, shape: str, classes: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert properties_of(parse(SHEET), node, shape=shape, classes=classes) == expected


def test_unknown_properties_are_named() -> None:
    sheet = parse("* { colour: red; model: a; colour: blue; size: 1 }")

    assert sheet.unknown == ("colour", "size")
    assert properties_of(sheet, "a", shape="box", classes=()) == {"model": "a"}


@pytest.mark.parametrize("text", ["", "  ", "/* nothing */", "* {}", "* { model: a; }"])
def test_what_parses(text: str) -> None:
    assert parse(text).unknown == ()


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("{ model: a }", 0, 'expected a selector, found "{"'),
        ("* model: a", 2, 'expected "{", found "model"'),
        ("* { model a }", 10, 'expected ":", found "a"'),
        ("* { model: }", 11, 'expected a value, found "}"'),
        ("* { model: a", 12, 'expected ";" or "}", found the end'),
        ("* { model: a; .b { } }", 14, 'expected a property or "}", found ".b"'),
        ("a, b { model: a }", 1, 'expected "{", found ","'),
        ('* { model: "a }', 11, 'expected a value, found """'),
        ("* { /* }", 4, 'expected a property or "}", found "/"'),
    ],
)
def test_what_does_not_parse_is_an_error_with_its_place(
    text: str, offset: int, message: str
) -> None:
    with pytest.raises(StylesheetError) as caught:
        parse(text)

    assert (caught.value.offset, caught.value.message) == (offset, message)


@pytest.mark.parametrize("piece", ["*", "* {", "{", "/*", "a:b;", "* { a: b }", '"', "/", ".a"])
def test_a_long_text_is_read_in_linear_time(piece: str) -> None:
    text = piece * (500_000 // len(piece))

    for whole in (text, "* {" + text, "* { model: " + text):
        try:
            parse(whole)
        except StylesheetError:
            continue


@given(st.one_of(st.text(), st.text('*.#a{}:;/" \n')))
def test_any_text_is_a_stylesheet_or_an_error(text: str) -> None:
    try:
        sheet = parse(text)
    except RequestError:
        return

    assert isinstance(properties_of(sheet, "a", shape="box", classes=("a",)), dict)
