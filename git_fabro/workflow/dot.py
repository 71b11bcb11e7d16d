"""DOT tokens to statements, each with its offsets; what they mean is read in ``draft``.

All errors of a file are reported: after one the reader goes on at the next statement. Nested
subgraphs are a flat list of openings and closings, so that no depth of them exhausts the stack.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

from git_fabro.workflow.diagnostic import Findings, quoted
from git_fabro.workflow.document import (
    Attribute,
    Close,
    Defaults,
    Document,
    EdgeStatement,
    Name,
    NodeStatement,
    Open,
    Statement,
    Value,
)
from git_fabro.workflow.tokens import BAD, END, MOST_WORDS, STRING, VALUES, WORD, tokenize, unescape

#: After so many syntax errors the rest of a file is not read.
ERROR_LIMIT = 1_000

_KEYWORDS = frozenset({"digraph", "graph", "node", "edge", "subgraph", "strict"})
_NAMES = frozenset({WORD, STRING})
_ARROWS = frozenset({"->", "--"})
_SEPARATORS = frozenset({",", ";"})
_STOPS = frozenset({END, "}"})


def parse(findings: Findings) -> Document:
    """The statements of the findings' text; errors are added to them. Never raises."""
    return _Parser(findings).document()


class _SyntaxProblem(Exception):  # noqa: N818 - a jump to the recovery, not an error of git-fabro
    """The current statement cannot be read on."""


class _TooManyProblems(Exception):  # noqa: N818 - a jump to the end
    """The error limit is reached."""


class _Parser:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._kinds, self._texts, self._offsets, unclosed = tokenize(findings.text)
        self._at = 0
        self._errors = 0
        self._in_list = False
        self._statements: list[Statement] = []
        self._unclosed = unclosed is not None
        if unclosed is not None and len(self._kinds) >= MOST_WORDS:
            findings.error(
                "syntax", unclosed, f"more than {MOST_WORDS} words; the rest is not read"
            )
        elif unclosed is not None:
            what = "string" if findings.text[unclosed] == '"' else "comment"
            findings.error("syntax", unclosed, f"the {what} is never closed")

    def document(self) -> Document:
        name, offset = "", 0
        try:
            self._refuse_strict()
            offset = self._offsets[self._at]
            if self._graph_word():
                name = self._title()
                self._body()
        except _TooManyProblems:
            self._findings.error(
                "syntax",
                self._offsets[self._at],
                "too many errors; the rest of the file is not read",
            )
        except _SyntaxProblem:
            pass  # the head cannot be read, and has been reported
        broken = self._unclosed or self._errors > 0
        return Document(name, offset, tuple(self._statements), broken)

    # The head.

    def _refuse_strict(self) -> None:
        if self._is_keyword("strict"):
            self._report("strict_graph", '"strict" is not supported; remove it')
            self._at += 1

    def _graph_word(self) -> bool:
        """Over ``digraph``; False where no graph can be made out."""
        if self._is_keyword("graph"):
            self._report("undirected_graph", 'write "digraph" and "->"')
        elif not self._is_keyword("digraph"):
            self._unexpected('"digraph"')
            # A misspelt word is read over if a graph's brace stands where it should.
            misspelt = self._kinds[self._at] == WORD
            if not misspelt or "{" not in self._kinds[self._at + 1 : self._at + 3]:
                return False
        self._at += 1
        return True

    def _title(self) -> str:
        """Over the graph's name, if it has one, and its brace."""
        name = ""
        if self._kinds[self._at] in _NAMES:
            name = self._text()
            self._at += 1
        self._expect("{")
        return name

    # Statements.

    def _body(self) -> None:
        depth = 1
        while depth:
            kind = self._kinds[self._at]
            if kind == ";":
                self._at += 1
            elif kind == "}":
                self._statements.append(Close(self._offsets[self._at]))
                self._at += 1
                depth -= 1
            elif kind == END:
                # What is never closed has swallowed the brace, and has been reported.
                if not self._unclosed:
                    self._unexpected('"}"')
                return
            else:
                begin = self._at
                try:
                    depth += self._statement(kind)
                except _SyntaxProblem:
                    self._recover(begin)
        self._statements.pop()  # the graph's own brace closes no subgraph
        self._tail()

    def _tail(self) -> None:
        if self._is_keyword("digraph", "graph", "strict"):
            self._report("multiple_graphs", "one graph per file")
        elif self._kinds[self._at] != END:
            self._unexpected("the end of the file")

    def _statement(self, kind: str) -> int:
        """Reads one statement; 1 if it opened a subgraph, else 0."""
        if kind == WORD:
            if self._texts[self._at].lower() in _KEYWORDS:
                return self._keyword_statement()
        elif kind == "{":
            return self._group('a group needs the word "subgraph" before it')
        elif kind != STRING:
            self._refuse_statement()
        if self._kinds[self._at + 1] == "=":
            self._graph_attribute()
            return 0
        first = self._name()
        following = self._kinds[self._at]
        if following not in _ARROWS:
            attributes = self._attribute_lists() if following == "[" else ()
            self._statements.append(NodeStatement(*first, attributes))
            return 0
        nodes = [first]
        while self._kinds[self._at] in _ARROWS:
            if self._kinds[self._at] == "--":
                self._report("undirected_graph", 'write "digraph" and "->"')
            self._at += 1
            if self._kinds[self._at] == "{" or self._is_keyword("subgraph"):
                return self._group("edges to a group are not supported; write each edge")
            nodes.append(self._name())
        self._statements.append(EdgeStatement(tuple(nodes), self._attribute_lists()))
        return 0

    def _graph_attribute(self) -> None:
        key, offset = self._text(), self._offsets[self._at]
        self._at += 2
        value = self._value()
        if value is not None:
            self._statements.append(Defaults("graph", (Attribute(key, offset, *value),)))

    def _group(self, message: str) -> int:
        """Refuses a group, and reads what is in it as a subgraph."""
        self._report("syntax", message)
        if self._kinds[self._at] != "{":
            return 0  # the word "subgraph" begins the next statement
        self._statements.append(Open(self._offsets[self._at]))
        self._at += 1
        return 1

    def _keyword_statement(self) -> int:
        word, offset = self._texts[self._at].lower(), self._offsets[self._at]
        if word in {"digraph", "strict"}:
            self._refuse_statement()
        self._at += 1
        if word == "subgraph":
            self._title()
            self._statements.append(Open(offset))
            return 1
        if self._kinds[self._at] != "[":
            self._unexpected('"["')
            raise _SyntaxProblem
        self._statements.append(Defaults(word, self._attribute_lists()))
        return 0

    def _refuse_statement(self) -> None:
        self._unexpected("a statement")
        raise _SyntaxProblem

    def _name(self) -> Name:
        kind, text, offset = self._kinds[self._at], self._texts[self._at], self._offsets[self._at]
        if kind == STRING:
            text = unescape(text[1:-1])
            if not text:
                self._report("node_id_form", "a node id cannot be empty")
        elif kind != WORD or text.lower() in _KEYWORDS:
            self._unexpected("a node id")
            raise _SyntaxProblem
        elif not text.isidentifier():
            text = self._bare(text, offset)
        self._at += 1
        if kind == STRING and self._kinds[self._at] == BAD and self._texts[self._at] == ":":
            self._report("syntax", "ports are not supported")
            raise _SyntaxProblem
        return Name(text, offset)

    def _bare(self, text: str, offset: int) -> str:
        """The id that a word with signs in it is meant to be, after an error."""
        node, colon, _ = text.partition(":")
        if colon:
            self._report("syntax", "ports are not supported", offset + len(node))
            return node
        form = f'node id {quoted(text)} needs quotes: bare ids hold only letters, digits and "_"'
        self._findings.error("node_id_form", offset, form)
        return text

    # Attributes.

    def _attribute_lists(self) -> tuple[Attribute, ...]:
        attributes: list[Attribute] = []
        while self._kinds[self._at] == "[":
            self._at += 1
            self._in_list = True
            while self._kinds[self._at] != "]":
                if not self._attribute(attributes):
                    self._in_list = False
                    return tuple(attributes)
            self._in_list = False
            self._at += 1
        return tuple(attributes)

    def _attribute(self, attributes: list[Attribute]) -> bool:
        """Reads one attribute; False where the list turns out never to have been closed."""
        if self._kinds[self._at] not in _NAMES:
            self._unexpected('a key or "]"')
            raise _SyntaxProblem
        key, offset = self._text(), self._offsets[self._at]
        self._at += 1
        kind = self._kinds[self._at]
        if kind == "=":
            self._at += 1
            value = self._value()
            if value is not None:
                attributes.append(Attribute(key, offset, *value))
        else:
            self._unexpected(f'"=" after {quoted(key)}')
            if kind == "[" or kind in _ARROWS:
                self._at -= 1  # the key is the id that the next statement begins with
                return False
            if kind not in _NAMES and kind not in _SEPARATORS and kind != "]":
                raise _SyntaxProblem
        if self._kinds[self._at] in _SEPARATORS:
            self._at += 1
        return True

    def _value(self) -> Value | None:
        """The value after an equals sign; None for one that is refused and read over."""
        kind, offset = self._kinds[self._at], self._offsets[self._at]
        if kind == "<":
            self._report("html_value", "HTML values are not supported; use a quoted string")
            self._skip_html()
            return None
        if kind not in VALUES:
            self._unexpected("a value")
            raise _SyntaxProblem
        text = self._text()
        self._at += 1
        while self._kinds[self._at] == "+":
            self._report("syntax", 'strings cannot be joined with "+"')
            self._at += 1
            if self._kinds[self._at] == STRING:
                self._at += 1
        return Value(text, kind, offset)

    def _skip_html(self) -> None:
        """Over the value's balanced angle brackets; the head of an arrow closes one, too."""
        depth = 0
        while self._kinds[self._at] != END:
            kind = self._kinds[self._at]
            self._at += 1
            depth += (kind == "<") - (kind in {">", "->"})
            if depth == 0:
                return

    # Errors.

    def _recover(self, begin: int) -> None:
        """From a statement's begin to the next ``;``, line break outside of brackets, or ``}``."""
        depth = int(self._in_list)
        self._in_list = False
        kinds = self._kinds
        while (kind := kinds[self._at]) not in _STOPS:
            if depth == 0 and self._at > begin and self._on_new_line():
                return
            self._at += 1
            if kind == "[":
                depth += 1
            elif depth == 0:
                if kind == ";":
                    return
            elif kind == "]":
                depth -= 1

    def _on_new_line(self) -> bool:
        before = self._offsets[self._at - 1] + len(self._texts[self._at - 1])
        return self._findings.text.find("\n", before, self._offsets[self._at]) >= 0

    def _expect(self, mark: str) -> None:
        if self._kinds[self._at] != mark:
            self._unexpected(f'"{mark}"')
            raise _SyntaxProblem
        self._at += 1

    def _unexpected(self, wanted: str) -> None:
        found = "the end of the file" if self._kinds[self._at] == END else quoted(self._text())
        self._report("syntax", f"expected {wanted}, found {found}")

    def _report(self, rule: str, message: str, offset: int | None = None) -> None:
        where = self._offsets[self._at] if offset is None else offset
        self._findings.error(rule, where, message)
        self._errors += 1
        if self._errors >= ERROR_LIMIT:
            raise _TooManyProblems

    def _is_keyword(self, *words: str) -> bool:
        return self._kinds[self._at] == WORD and self._texts[self._at].lower() in words

    def _text(self) -> str:
        text = self._texts[self._at]
        return unescape(text[1:-1]) if self._kinds[self._at] == STRING else text
