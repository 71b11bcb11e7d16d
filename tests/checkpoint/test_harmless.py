"""Text of nodes, branches and remotes on its way to a terminal."""

from __future__ import annotations

import pytest

from git_fabro.checkpoint import harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain ü 漢", "plain ü 漢", id="plain"),
        pytest.param("\x1b[31mred", "\\x1b[31mred", id="escape"),
        pytest.param("a\u202eb", "a\\u202eb", id="direction"),
        pytest.param("a\nb\tc", "a b c", id="lines"),
        pytest.param("\udcff", "\\udcff", id="surrogate"),
    ],
)
def test_a_line_moves_no_cursor(text: str, shown: str) -> None:
    assert harmless.line(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fatal: https://me:secret@host/x: no", "fatal: https://host/x: no"),
        ("ssh://git@host/x", "ssh://host/x"),
        ("git@host:x and me@example.com", "git@host:x and me@example.com"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_a_url_tells_no_password(text: str, shown: str) -> None:
    assert harmless.without_password(text) == shown
