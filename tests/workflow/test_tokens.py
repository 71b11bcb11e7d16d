"""Words and marks: so many of them are read, and the rest is named."""

from __future__ import annotations

from git_fabro.workflow import dot
from git_fabro.workflow.diagnostic import Findings
from git_fabro.workflow.tokens import MOST_WORDS, tokenize


def test_a_file_of_too_many_words_is_named_and_read_no_further() -> None:
    findings = Findings("w.fabro", "digraph {" + "a=1;" * 250_000 + "}")

    dot.parse(findings)

    said = [one.message for one in findings.sorted() if one.severity == "error"]
    assert said == [
        "more than 500000 words; the rest is not read",
        "expected a value, found the end of the file",
    ]


def test_as_many_words_as_may_be_are_all_read() -> None:
    tokens = tokenize("a;" * (MOST_WORDS // 2))

    assert tokens.unclosed is None
    assert len(tokens.kinds) == MOST_WORDS + 2
