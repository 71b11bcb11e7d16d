"""Statements to nodes and edges: scopes, defaults, classes, merged statements. Kinds come later.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from git_fabro.workflow.attributes import first_name
from git_fabro.workflow.diagnostic import Findings, quoted, suggestion
from git_fabro.workflow.document import (
    Attribute,
    Defaults,
    Document,
    EdgeStatement,
    Name,
    NodeStatement,
    Open,
)
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.values import Meant, Reader

#: So many names are tried for "did you mean", so that a file of nothing but errors stays cheap.
_SUGGESTIONS = 100
#: Of nested subgraphs the innermost ones give a node its classes; of defaults so many are kept.
_DEEPEST = 100
_MOST_DEFAULTS = 200


@dataclass(slots=True)
class DraftNode:
    """A declared node: its attributes merged, without errors or not."""

    name: Name
    meant: dict[str, Meant]
    scopes: list[int]
    commands: list[str] = field(default_factory=list)  # the spellings of ``script`` in it
    again: int | None = None  # the offset of a second statement
    classes: tuple[str, ...] = ()
    subgraph_class: str | None = None


@dataclass(frozen=True, slots=True)
class DraftEdge:
    """An arrow between two mentions, declared or not."""

    source: Name
    target: Name
    meant: Mapping[str, Meant]


@dataclass(slots=True)
class Draft:
    """A file's graph before it is checked."""

    attributes: dict[str, Meant] = field(default_factory=dict)
    nodes: dict[NodeId, DraftNode] = field(default_factory=dict)
    edges: list[DraftEdge] = field(default_factory=list)


@dataclass(slots=True)
class _Scope:
    """The graph or a subgraph; the defaults are never written to, but replaced."""

    parent: int | None
    node: dict[str, Meant]
    edge: dict[str, Meant]
    label: str = ""


def draw(document: Document, reader: Reader) -> Draft:
    """The draft that a document's statements make; errors go to the reader's findings."""
    drawer = _Drawer(reader)
    for statement in document.statements:
        drawer.take(statement)
    drawer.finish()
    return drawer.draft


class _Drawer:
    def __init__(self, reader: Reader) -> None:
        self.draft = Draft()
        self._reader = reader
        self._scopes = [_Scope(None, {}, {})]
        self._open = 0

    def take(self, statement: object) -> None:
        if isinstance(statement, Open):
            outer = self._scopes[self._open]
            self._scopes.append(_Scope(self._open, outer.node, outer.edge))
            self._open = len(self._scopes) - 1
        elif isinstance(statement, Defaults):
            self._take_defaults(statement)
        elif isinstance(statement, NodeStatement):
            self._take_node(statement)
        elif isinstance(statement, EdgeStatement):
            self._take_edges(statement)
        else:
            self._open = self._scopes[self._open].parent or 0

    def _take_defaults(self, statement: Defaults) -> None:
        scope = self._scopes[self._open]
        if statement.target == "node":
            scope.node = _merged(scope.node, self._reader.read("node", statement.attributes))
        elif statement.target == "edge":
            scope.edge = _merged(scope.edge, self._reader.read("edge", statement.attributes))
        elif self._open == 0:
            self._take_graph(statement.attributes)
        else:
            for attribute in statement.attributes:
                if attribute.key == "label":
                    scope.label = attribute.value.text

    def _take_graph(self, attributes: tuple[Attribute, ...]) -> None:
        for attribute in attributes:
            key = first_name("graph", attribute.key)
            if key in self.draft.attributes:
                message = f"{quoted(attribute.key)} is set twice, the last one counts"
                self._reader.findings.warning("duplicate_attribute", attribute.offset, message)
            self.draft.attributes.update(self._reader.read("graph", (attribute,)))

    def _take_node(self, statement: NodeStatement) -> None:
        own = self._reader.read("node", statement.attributes)
        name = NodeId(statement.node.id)
        node = self.draft.nodes.get(name)
        if node is None:
            defaults = self._scopes[self._open].node
            node = DraftNode(statement.node, {**defaults, **own}, [])
            self.draft.nodes[name] = node
        else:
            node.meant.update(own)
            node.again = statement.node.offset if node.again is None else node.again
        node.scopes.append(self._open)
        for attribute in statement.attributes:
            known = attribute.key in node.commands
            if first_name("node", attribute.key) == "script" and not known:
                node.commands.append(attribute.key)

    def _take_edges(self, statement: EdgeStatement) -> None:
        own = self._reader.read("edge", statement.attributes)
        meant = {**self._scopes[self._open].edge, **own}
        for source, target in zip(statement.nodes, statement.nodes[1:], strict=False):
            self.draft.edges.append(DraftEdge(source, target, meant))

    def finish(self) -> None:
        """Gives the nodes their classes: a subgraph's label may stand after its nodes."""
        chains: list[tuple[str, ...]] = []
        for scope in self._scopes:
            outer = () if scope.parent is None else chains[scope.parent]
            own = class_of(scope.label)
            chains.append((own, *outer[: _DEEPEST - 1]) if own else outer)
        for node in self.draft.nodes.values():
            subgraphs = [name for scope in node.scopes for name in chains[scope]]
            own_classes = str(node.meant["class"].value) if "class" in node.meant else ""
            listed = (*own_classes.replace(",", " ").split(), *subgraphs)
            node.classes = tuple(dict.fromkeys(listed))
            node.subgraph_class = subgraphs[0] if subgraphs else None


def class_of(label: str) -> str:
    """The class that a subgraph's label gives: ``"Hard work"`` gives ``hard-work``."""
    dashed = label.lower().replace(" ", "-")
    return "".join(letter for letter in dashed if letter in _CLASS_LETTERS)


_CLASS_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def _merged(defaults: dict[str, Meant], own: dict[str, Meant]) -> dict[str, Meant]:
    merged = {**defaults, **own}
    return merged if len(merged) <= _MOST_DEFAULTS else dict(list(merged.items())[:_MOST_DEFAULTS])


def check_ids(draft: Draft, findings: Findings) -> None:
    """The rules about ids, and about nodes that are declared twice."""
    folded: dict[str, NodeId] = {}
    for name, node in draft.nodes.items():
        problem = id_problem(name)
        if problem:
            findings.error("node_id_form", node.name.offset, f"node id {quoted(name)} {problem}")
        other = folded.setdefault(name.lower(), name)
        if other != name:
            message = f"node ids {quoted(other)} and {quoted(name)} differ only in case"
            findings.error("node_id_case", node.name.offset, message)
        if node.again is not None:
            line = findings.place(node.again).line
            message = f"node {quoted(name)} is declared again at line {line}"
            findings.warning("duplicate_node", node.name.offset, message)


def check_mentions(draft: Draft, findings: Findings) -> bool:
    """Whether every node of an edge is declared; where not, there is an error for each mention.

    A middle node of a chain is one mention, as the target of the edge before it.
    """
    reported: set[int] = set()
    tried: dict[str, str] = {}
    for edge in draft.edges:
        for role, name in (("source", edge.source), ("target", edge.target)):
            if name.id in draft.nodes or name.offset in reported:
                continue
            reported.add(name.offset)
            if name.id not in tried and len(tried) < _SUGGESTIONS:
                tried[name.id] = suggestion(name.id, draft.nodes)
            message = f"edge {role} {quoted(name.id)} is not declared{tried.get(name.id, '')}"
            findings.error("edge_target_exists", name.offset, message)
    return not reported


_ID_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def id_problem(name: str) -> str:
    """What is wrong with a node's id; empty if it can be part of ref names and paths."""
    if not name:
        return ""  # the parser has refused it
    if not _ID_LETTERS.issuperset(name):
        return 'may only use letters, digits, "_", "." and "-"'
    if len(name) > 100:
        return "is longer than 100 characters"
    if name[0] in ".-" or ".." in name or name.endswith("."):
        return 'must not begin with "." or "-", end with ".", or contain ".."'
    if name.lower().endswith(".lock"):
        return 'must not end with ".lock"'
    _, visit, number = name.rpartition("-visit_")
    if visit and number.isascii() and number.isdigit():
        return 'must not end with "-visit_" and a number'
    return ""
