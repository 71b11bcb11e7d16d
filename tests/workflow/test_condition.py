"""Conditions: the grammar, the comparisons, and what is refused when a graph is loaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.errors import RequestError
from git_fabro.workflow.condition import (
    MATCH_LIMIT,
    ConditionError,
    evaluate,
    names_outcome_words,
    parse,
)

CONTEXT: dict[str, object] = {
    "outcome": "fail",
    "preferred_label": "Ship it",
    "score": 81,
    "text": "9.50",
    "zero": 0,
    "half": 0.5,
    "whole": 7.0,
    "yes": True,
    "no": False,
    "none": None,
    "empty": "",
    "list": ["a", 7, True],
    "object": {"k": [1, "ü"]},
    "context.literal": "outer",
    "literal": "inner",
    "command.output": "3 passed\n1 FAILED in t.py",
    "parallel.fan_in.best_outcome": "success",
    "review.status": "succeeded",
    "a && b": "x",
}


def holds(text: str) -> bool:
    return evaluate(parse(text), CONTEXT.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("outcome=fail", True),
        ("outcome=failed", True),
        ("outcome = FAIL", False),
        ("outcome!=success", True),
        ("preferred_label=Ship it", True),
        ("preferred_label=ship it", False),
        ("context.score=81", True),
        ("score=81.0", False),
        ("whole=7", True),
        ("half=0.5", True),
        ("yes=true", True),
        ("no=false", True),
        ('none=""', True),
        ('missing=""', True),
        ("missing!=x", True),
        ('object="{\\"k\\":[1,\\"ü\\"]}"', True),
        ('list=["a",7,true]', True),
        ("context.literal=outer", True),
        ("literal=inner", True),
        ("context.missing=x", False),
        ("parallel.fan_in.best_outcome=succeeded", True),
        ("context.review.status=success", True),
        ("score > 9", True),
        ("score>81", False),
        ("score>=81", True),
        ("text < 10", True),
        ("text <= 9.5", True),
        ("half > -1", True),
        ("preferred_label > 1", False),
        ("preferred_label < 1", False),
        ("yes > 0", False),
        ("score > many", False),
        ("list contains 7", True),
        ("list contains true", True),
        ("list contains b", False),
        ("preferred_label contains hip", True),
        ("context.object contains ü", True),
        ("tool.output contains FAILED", True),
        ("context.tool.output matches ^1 F", False),
        ("tool.output matches (?m)^1 F", True),
        (r"tool.output matches \d+ passed", True),
        ('tool.output matches "passed|x && y"', True),
        ("score", True),
        ("zero", False),
        ("no", False),
        ("empty", False),
        ("missing", False),
        ("list", True),
        ("!zero", True),
        ("! ! score", True),
        ("!outcome=fail", False),
        ("outcome=success || score>9", True),
        ("outcome=fail && score>9", True),
        ("outcome=success && score>9 || yes", True),
        ("yes || outcome=success && no", True),
        ("!yes || !no && !zero", True),
        ('preferred_label="Ship it"&&yes', True),
        ("contains=1", False),
        ("text contains 9 & 5", False),
        ("", True),
        ("  ", True),
    ],
)
def test_a_condition_holds_or_not(text: str, expected: bool) -> None:
    assert holds(text) is expected


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        (
            "(a=1)",
            0,
            'parentheses are not supported; "&&" binds tighter than "||", "!" tighter than both',
        ),
        (
            "a=1 && (b",
            7,
            'parentheses are not supported; "&&" binds tighter than "||", "!" tighter than both',
        ),
        ("a=1 &&", 6, "expected a key, found the end"),
        ("|| a", 0, 'expected a key, found "||"'),
        ("a=1 || && b", 7, 'expected a key, found "&&"'),
        ("!", 1, "expected a key, found the end"),
        ("a ~ b", 2, 'unknown operator "~"'),
        ("a b", 2, 'unknown operator "b"'),
        ("outcome==fail", 7, 'unknown operator "=="'),
        ("a =~ b", 2, 'unknown operator "=~"'),
        ("a <> b", 2, 'unknown operator "<>"'),
        ("a=", 2, 'expected a value after "=", found the end; the empty text is ""'),
        ("a= && b", 3, 'expected a value after "=", found "&&"; the empty text is ""'),
        (
            "a contains",
            10,
            'expected a value after "contains", found the end; the empty text is ""',
        ),
        ('a="b', 2, "the quoted value is not closed"),
        ('a="b" c', 6, 'expected "&&" or "||", found "c"'),
        (
            "a matches [",
            0,
            "regular expression does not compile: unterminated character set at position 0",
        ),
        (
            "a matches (x+)+y",
            0,
            "regular expression repeats a group that holds a repetition, which may never end",
        ),
        (
            "a matches ((a|b)*c){3,}",
            0,
            "regular expression repeats a group that holds a repetition, which may never end",
        ),
    ],
)
def test_what_does_not_parse_is_an_error_with_its_place(
    text: str, offset: int, message: str
) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(text)

    assert (caught.value.offset, caught.value.message) == (offset, message)


@pytest.mark.parametrize(
    "pattern", [r"(foo|bar)+", r"\(a+\)+", r"[(+]+", r"(?:ab)?c*", r"^\s*x{3}$", r"(\d+)\.(\d+)"]
)
def test_repetitions_that_end_are_accepted(pattern: str) -> None:
    assert parse(f"a matches {pattern}").alternatives


def test_an_expression_without_end_is_too_long() -> None:
    with pytest.raises(ConditionError, match="longer than 1000 characters"):
        parse("a matches " + "x" * 1001)


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        pytest.param("needle" + "." * 4 * MATCH_LIMIT, True, id="at the beginning"),
        pytest.param("." * 4 * MATCH_LIMIT + "needle", True, id="at the end"),
        pytest.param("." * 2 * MATCH_LIMIT + "needle" + "." * 2 * MATCH_LIMIT, False, id="between"),
    ],
)
def test_a_long_text_is_searched_at_its_ends(subject: str, expected: bool) -> None:
    assert evaluate(parse("t matches needle"), {"t": subject}.get) is expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("outcome=port", {"port"}),
        ("context.outcome != port || !outcome=ship", {"port", "ship"}),
        ("outcome=failed && outcome=retry", set()),
        ("best_outcome=port && outcome contains x", set()),
        ("", set()),
    ],
)
def test_custom_words_are_those_that_the_outcome_is_compared_with(
    text: str, words: set[str]
) -> None:
    assert names_outcome_words(parse(text)) == words


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, -(10**400), 1e308, ""])
def test_numbers_of_any_size_are_compared(value: object) -> None:
    for text in ("v > 1", "v=1", "v contains 1", "v matches 1", "v"):
        assert evaluate(parse(text), {"v": value}.get) in {True, False}


@pytest.mark.parametrize("piece", ["!", "&", "|", '"', "a&&", "a||", "(", "a=", " ", "\\", "a=b "])
def test_a_long_text_is_read_in_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))

    for whole in (text, f"a{text}", f"a={text}", f'a="{text}'):
        try:
            parse(whole)
        except ConditionError:
            continue


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
WORDS = st.lists(
    st.sampled_from(
        [
            *(
                "a",
                "outcome",
                "=",
                "!=",
                "!",
                "<",
                ">=",
                " contains ",
                " matches ",
                "&&",
                "||",
                '"',
            ),
            *("(", "+", "*", "[", "\\", " ", "1", "context.", "{2,}", ")", "?", "|"),
        ]
    )
).map("".join)


@given(st.one_of(st.text(), WORDS), JSON)
def test_any_text_is_a_condition_or_an_error(text: str, value: object) -> None:
    try:
        condition = parse(text)
    except RequestError:
        return

    assert evaluate(condition, lambda _: value) in {True, False}
