"""The parser: what it reads, what it refuses and where, and that it takes linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from git_fabro.workflow import dot, tokens
from git_fabro.workflow.diagnostic import Findings
from git_fabro.workflow.document import (
    Close,
    Defaults,
    Document,
    EdgeStatement,
    NodeStatement,
    Open,
    Statement,
)

MEGABYTE = 1_000_000


def read(text: str) -> tuple[Document, Findings]:
    findings = Findings("f", text)
    return dot.parse(findings), findings


def statements(text: str) -> tuple[Statement, ...]:
    document, findings = read(text)
    assert findings.sorted() == ()
    return document.statements


def values(text: str) -> dict[str, tuple[str, str]]:
    """Kind and text of each attribute of the node ``a``."""
    (statement,) = statements(f"digraph {{ a [{text}] }}")
    assert isinstance(statement, NodeStatement)
    return {one.key: (one.value.kind, one.value.text) for one in statement.attributes}


def printed(text: str) -> str:
    _, findings = read(text)
    return "\n".join(one.render() for one in findings.sorted())


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("x=word", ("word", "word"), id="word"),
        pytest.param("x=a.b:c-d", ("word", "a.b:c-d"), id="signs in a word"),
        pytest.param("x=-12", ("integer", "-12"), id="integer"),
        pytest.param("x=-.5", ("float", "-.5"), id="float"),
        pytest.param("x=250ms", ("duration", "250ms"), id="duration"),
        pytest.param("x=true", ("word", "true"), id="boolean"),
        pytest.param(r'x="a\"b\\c\nd\te"', ("string", 'a"b\\c\nd\te'), id="escapes"),
        pytest.param(r'x="\d+\.py"', ("string", r"\d+\.py"), id="other escapes stay"),
        pytest.param('x="one \\\ntwo"', ("string", "one two"), id="joined lines"),
        pytest.param('x="one\ntwo"', ("string", "one\ntwo"), id="raw newline"),
        pytest.param('x="https://x.test/a//b"', ("string", "https://x.test/a//b"), id="url"),
        pytest.param('x="/* no */ # no"', ("string", "/* no */ # no"), id="no comment in strings"),
        pytest.param('"x"=1', ("integer", "1"), id="quoted key"),
    ],
)
def test_a_value_is_read_as_what_it_is(written: str, expected: tuple[str, str]) -> None:
    assert values(written) == {"x": expected}


@pytest.mark.parametrize("separator", [" ", ", ", "; ", ",", "\n", " /* c */ ", " // c\n"])
def test_separators_between_attributes_are_optional(separator: str) -> None:
    assert list(values(f"x=1{separator}y=2{separator}")) == ["x", "y"]


def test_several_lists_add_up() -> None:
    (statement,) = statements("digraph { a [x=1] [y=2] }")

    assert isinstance(statement, NodeStatement)
    assert [one.key for one in statement.attributes] == ["x", "y"]


def test_a_file_is_a_list_of_statements() -> None:
    found = statements(
        """\ufeff# a comment
        DiGraph "my graph" {
          # another
          goal=x; rankdir="LR"
          Node [shape=box]; EDGE [weight=2]
          subgraph cluster_a { label="A"; a }
          "b.1" -> a->a--b
        }  // the end
        """.replace("a--b", "a")
    )

    assert [type(one) for one in found] == [
        *(Defaults, Defaults, Defaults, Defaults),
        *(Open, Defaults, NodeStatement, Close),
        EdgeStatement,
    ]
    assert [one.target for one in found if isinstance(one, Defaults)] == [
        *("graph", "graph", "node", "edge", "graph")
    ]


def test_a_chain_keeps_the_place_of_each_id() -> None:
    document, findings = read("digraph {\n  a -> b\n    -> c [x=1]\n}")

    (chain,) = document.statements
    assert isinstance(chain, EdgeStatement)
    places = [(findings.place(one.offset).line, one.id) for one in chain.nodes]
    assert places == [(2, "a"), (2, "b"), (3, "c")]


def test_windows_line_ends_are_line_ends() -> None:
    document, findings = read('digraph {\r\n  a [x="1\r\n2"]\r\n  b\r\n}\r\n')

    first, second = document.statements
    assert isinstance(first, NodeStatement)
    assert isinstance(second, NodeStatement)
    assert first.attributes[0].value.text == "1\n2"
    assert findings.place(second.node.offset).line == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "digraph { a [x=1 }",
            'f:1:18: expected a key or "]", found "}" [syntax]\ndigraph { a [x=1 }\n' + 17 * " ",
            id="unclosed list",
        ),
        pytest.param(
            "digraph {\n\ta [x y=1]\n}",
            'f:2:7: expected "=" after "x", found "y" [syntax]\n\ta [x y=1]\n\t     ',
            id="attribute without equals sign, after a tab",
        ),
        pytest.param(
            "digraph { a [x=] }",
            'f:1:16: expected a value, found "]" [syntax]\ndigraph { a [x=] }\n' + 15 * " ",
            id="no value",
        ),
        pytest.param(
            'digraph { a [x="a" + "b"] }',
            'f:1:20: strings cannot be joined with "+" [syntax]\n'
            'digraph { a [x="a" + "b"] }\n' + 19 * " ",
            id="joined strings",
        ),
        pytest.param(
            "digraph { a:n -> b }",
            "f:1:12: ports are not supported [syntax]\ndigraph { a:n -> b }\n" + 11 * " ",
            id="port",
        ),
        pytest.param(
            'digraph { "a":n -> b }',
            'f:1:14: ports are not supported [syntax]\ndigraph { "a":n -> b }\n' + 13 * " ",
            id="port of a quoted id",
        ),
        pytest.param(
            "digraph { a -> {b c} }",
            "f:1:16: edges to a group are not supported; write each edge [syntax]\n"
            "digraph { a -> {b c} }\n" + 15 * " ",
            id="edge to a group",
        ),
        pytest.param(
            "digraph { {a} }",
            'f:1:11: a group needs the word "subgraph" before it [syntax]\n'
            "digraph { {a} }\n" + 10 * " ",
            id="group",
        ),
        pytest.param(
            "digraph { a [x=<<b>y</b>>] }",
            "f:1:16: HTML values are not supported; use a quoted string [html_value]\n"
            "digraph { a [x=<<b>y</b>>] }\n" + 15 * " ",
            id="html",
        ),
        pytest.param(
            "strict digraph { a -- b }",
            'f:1:1: "strict" is not supported; remove it [strict_graph]\n'
            "strict digraph { a -- b }\n^\n"
            'f:1:20: write "digraph" and "->" [undirected_graph]\n'
            "strict digraph { a -- b }\n" + 19 * " ",
            id="strict and undirected",
        ),
        pytest.param(
            "graph { a }",
            'f:1:1: write "digraph" and "->" [undirected_graph]\ngraph { a }\n',
            id="graph",
        ),
        pytest.param(
            "digraph { a } digraph { b }",
            "f:1:15: one graph per file [multiple_graphs]\n"
            "digraph { a } digraph { b }\n" + 14 * " ",
            id="second graph",
        ),
        pytest.param(
            "digraph { a } b",
            'f:1:15: expected the end of the file, found "b" [syntax]\ndigraph { a } b\n'
            + 14 * " ",
            id="text after the graph",
        ),
        pytest.param(
            "digraph { a",
            'f:1:12: expected "}", found the end of the file [syntax]\ndigraph { a\n' + 11 * " ",
            id="unclosed graph",
        ),
        pytest.param(
            'digraph { a [x="b] }',
            'f:1:16: the string is never closed [syntax]\ndigraph { a [x="b] }\n'
            + 15 * " "
            + "^\nf:1:21: expected a value, found the end of the file [syntax]\n"
            + 'digraph { a [x="b] }\n'
            + 20 * " ",
            id="unclosed string",
        ),
        pytest.param(
            'digraph { "" }',
            'f:1:11: a node id cannot be empty [node_id_form]\ndigraph { "" }\n' + 10 * " ",
            id="empty id",
        ),
        pytest.param(
            "digraph { a build-it }",
            'f:1:13: node id "build-it" needs quotes: bare ids hold only letters, digits and "_"'
            " [node_id_form]\ndigraph { a build-it }\n" + 12 * " ",
            id="bare id with a dash",
        ),
        pytest.param(
            "", 'f:1:1: expected "digraph", found the end of the file [syntax]\n\n', id="-"
        ),
        pytest.param("x", 'f:1:1: expected "digraph", found "x" [syntax]\nx\n', id="no graph"),
    ],
)
def test_what_is_refused_is_printed_with_its_place(text: str, expected: str) -> None:
    assert printed(text) == expected + "^"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("digraph {\n a [x=]\n b [=1]\n c\n ]\n d\n}", [2, 3, 5], id="each line"),
        pytest.param("digraph {\n ] ; ] ;\n ] }", [2, 2, 3], id="after a semicolon"),
        pytest.param(
            "digraph {\n a [x=1\n b [y=2]\n a -> b [z]\n}", [3, 4], id="an unclosed list ends"
        ),
        pytest.param("diagraph X {\n a [x]\n}", [1, 2], id="misspelt digraph"),
        pytest.param("digraph {\n a ->\n b -> \n}", [4], id="a chain over lines"),
    ],
)
def test_reading_goes_on_after_an_error(text: str, lines: list[int]) -> None:
    _, findings = read(text)

    assert [one.place.line for one in findings.sorted()] == lines


def test_errors_without_end_are_cut() -> None:
    _, findings = read("digraph {\n" + "]\n" * 5000)

    found = findings.sorted()
    assert len(found) == dot.ERROR_LIMIT + 1
    assert found[-1].message == "too many errors; the rest of the file is not read"


def test_subgraphs_may_be_nested_without_limit() -> None:
    depth = 50_000
    document, findings = read("digraph {" + "subgraph {" * depth + "a" + "}" * depth + "}")

    assert findings.sorted() == ()
    assert len(document.statements) == 2 * depth + 1


PIECES = [
    *("[", "]", "{", "}", '"', "'", "<", ">", "-", "->", "--", ";", ",", "+", "@", "1", "\n", " "),
    *("a->", "a--", "//", "/*", "*/", "/* */", "#\n", "\\", '\\"', '\n"', '\\\n"', '"a" ', "a b\n"),
    *("a=1;", "a[b=c]", "a[", "a[b ", "subgraph{", "@\n", "\r", "\n#x", "\u2028"),
]
BEGINNINGS = ["", "digraph{", "digraph{a[", "digraph{x ->", "digraph{a[b=<"]


@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("piece", PIECES)
def test_much_of_anything_is_read(piece: str, beginning: str) -> None:
    text = beginning + piece * (MEGABYTE // 20 // len(piece))

    _, findings = read(text)

    assert all(len(one.render()) < 2000 for one in findings.sorted()[:100])


@pytest.mark.parametrize("piece", ["[", '"', "a->", "//", "{"])
def test_a_whole_megabyte_of_the_worst_is_read(piece: str) -> None:
    read("digraph{" + piece * (MEGABYTE // len(piece)))


def work(text: str) -> int:
    """How often the parser looked at a token: a measure of its work that no machine changes."""
    counter = [0]

    class Counted(list[str]):
        def __getitem__(self, index):  # type: ignore[no-untyped-def]
            counter[0] += 1
            return super().__getitem__(index)

    findings = Findings("f", text)
    parser = dot._Parser(findings)
    parser._kinds = Counted(parser._kinds)
    parser.document()
    return counter[0]


@pytest.mark.parametrize("piece", PIECES)
def test_twice_the_text_is_twice_the_work(piece: str) -> None:
    once, twice = (work("digraph{" + piece * times) for times in (400, 800))

    assert twice <= 2.2 * once + 50


TEXTS = st.lists(
    st.sampled_from([*PIECES, "digraph", "graph", "node", "edge", "=", "x", '"x"', "1s"])
).map("".join)


@given(st.one_of(st.text(), TEXTS, TEXTS.map("digraph {".__add__)))
def test_any_text_gives_a_document_and_findings(text: str) -> None:
    document, findings = read(text)

    if document.broken:
        assert findings.sorted()
    for one in findings.sorted():
        assert one.render()


@given(st.text())
def test_a_written_string_means_what_was_meant(meant: str) -> None:
    plain = meant.replace("\r", "")
    written = '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'

    kinds, texts, _, _ = tokens.tokenize(written)

    assert kinds[0] == tokens.STRING
    assert tokens.unescape(texts[0][1:-1]) == plain
