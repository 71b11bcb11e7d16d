"""What reaches a terminal is harmless, aligned, and coloured only where that is wanted."""

from __future__ import annotations

import json

import pytest

from git_fabro.cli import render


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 🌍\ttab", "plain ünï 🌍\ttab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb\x07\x7f\x9b", "a\\x0db\\x07\\x7f\\x9b"),
        ("\u202eevil\u202c\u2066x\u2069", "\\u202eevil\\u202c\\u2066x\\u2069"),
        ("\u200f\u061c\ufeff", "\\u200f\\u061c\\ufeff"),
        ("\u2028\x85", "\\u2028\\x85"),
        ("\ud800", "\\ud800"),
        ("two\nlines", "two\nlines"),
    ],
)
def test_text_from_outside_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert render.safe(text) == shown


def test_what_steers_a_terminal_never_counts_as_printable() -> None:
    harmful = [
        *(code for code in range(0x20) if chr(code) not in "\t\n"),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF),
        *range(0xD800, 0xE000),
    ]

    assert [code for code in harmful if render.safe(f"a{chr(code)}b") == f"a{chr(code)}b"] == []


@pytest.mark.parametrize("count", [1, 32, 33, 200])
def test_rows_that_come_one_by_one_are_all_printed_in_order(
    capsys: pytest.CaptureFixture[str], count: int
) -> None:
    rows = ((f"@{number}", "x") for number in range(count))

    printed = render.streamed(rows, head=("N", "X"), colour=None)

    lines = capsys.readouterr().out.splitlines()
    assert printed == count
    assert [line.split() for line in lines] == [["N", "X"], *([f"@{n}", "x"] for n in range(count))]


def test_a_line_is_one_line() -> None:
    assert render.line("a\nb\tc") == "a b c"


def test_json_stays_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"b": "\x7f\u202e\x1bé", "a": [1, 1.0, None, True]}

    render.document(value)
    render.json_line(value)

    document, _, line = capsys.readouterr().out.partition("\n}\n")
    assert json.loads(document + "\n}") == json.loads(line) == value
    assert line == '{"a":[1,1.0,null,true],"b":"\\u007f\\u202e\\u001bé"}\n'


def test_a_table_is_aligned_and_its_statuses_coloured(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", "fail", "x"), ("long\n", "success", "")]

    render.table(rows, head=("NAME", "STATUS", "WHY"))
    render.table(rows, colour=1)
    render.table([])

    assert capsys.readouterr().out == (
        "NAME   STATUS   WHY\n"
        "a      fail     x\n"
        "long   success\n"
        "a      \x1b[31mfail   \x1b[m  x\n"
        "long   \x1b[32msuccess\x1b[m\n"
    )


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0, "0ms"), (999, "999ms"), (1000, "1.0s"), (59_949, "59.9s"), (192_000, "3m12s")],
)
def test_a_length_of_time_is_for_people(milliseconds: int, shown: str) -> None:
    assert render.duration(milliseconds) == shown


def test_hours_have_minutes() -> None:
    assert render.duration(7_500_000) == "2h05m"


@pytest.mark.parametrize(
    ("option", "setting", "no_color", "wanted"),
    [
        (None, None, "", False),
        (None, "always", "", True),
        (None, "always", "1", False),
        ("always", None, "1", True),
        ("never", "always", "", False),
        ("auto", "always", "", False),
        (None, "auto", "", False),
        (None, "true", "", False),
        (None, "false", "", False),
    ],
)
def test_colour_follows_option_environment_and_setting(
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    setting: str | None,
    no_color: str,
    wanted: bool,
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)

    assert render.wants_colour(option, setting) is wanted


def test_the_nearest_name_is_found() -> None:
    assert render.near("lst", ["list", "show"]) == "list"
    assert render.near("xyzzy", ["list", "show"]) is None
