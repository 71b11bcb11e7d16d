"""A workflow file as its statements, before anything is known about what they mean."""

from __future__ import annotations

from typing import NamedTuple

# The statements are flat named tuples: a megabyte holds half a million of them. A frozen dataclass
# takes three times as long to make, and each tuple in a tuple is one more to collect.


class Value(NamedTuple):
    """An attribute's value as it is meant; ``kind`` is its token's."""

    text: str
    kind: str
    offset: int


class Attribute(NamedTuple):
    """``key = value``."""

    key: str
    offset: int
    text: str
    kind: str
    value_offset: int

    @property
    def value(self) -> Value:
        return Value(self.text, self.kind, self.value_offset)


class Name(NamedTuple):
    """A node's id where it is mentioned."""

    id: str
    offset: int


class Defaults(NamedTuple):
    """``graph [..]``, ``node [..]``, ``edge [..]``, and ``key = value`` as one of ``graph``."""

    target: str
    attributes: tuple[Attribute, ...]


class NodeStatement(NamedTuple):
    id: str
    offset: int
    attributes: tuple[Attribute, ...]

    @property
    def node(self) -> Name:
        return Name(self.id, self.offset)


class EdgeStatement(NamedTuple):
    """``a -> b -> c [..]``: two or more ids."""

    nodes: tuple[Name, ...]
    attributes: tuple[Attribute, ...]


class Open(NamedTuple):
    """A subgraph begins."""

    offset: int


class Close(NamedTuple):
    """The innermost open subgraph ends."""

    offset: int


Statement = Defaults | NodeStatement | EdgeStatement | Open | Close


class Document(NamedTuple):
    """A file's statements; ``offset`` is that of ``digraph``.

    ``broken``: there were syntax errors, so that some statements may be missing.
    """

    name: str
    offset: int
    statements: tuple[Statement, ...]
    broken: bool
