"""From a workflow's text to a graph that may run, or to all that is wrong with it.

The same source gives the same graph, always: a run that is resumed walks a graph made anew from
what was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from git_fabro.workflow import dot, draft, graph, kinds, lint
from git_fabro.workflow.attributes import first_name
from git_fabro.workflow.diagnostic import Diagnostic, Findings, has_errors, quoted
from git_fabro.workflow.document import Attribute, Close, Defaults, Document, NodeStatement, Open
from git_fabro.workflow.graph import Edge, Graph, Node, NodeId, Place
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.template import Names, in_prose
from git_fabro.workflow.tokens import STRING
from git_fabro.workflow.values import Reader, included_path, read_stylesheet

#: Kinds that are told of models.
_MODELLED = frozenset({graph.AGENT, graph.PROMPT, graph.FAN_IN})


@dataclass(frozen=True, slots=True)
class Include:
    """A file that a workflow includes: its path as written after the ``@``, and where."""

    path: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """All that a graph depends on.

    ``file`` is the name for messages; ``includes`` holds the texts of included files by their paths
    as written, None for one that cannot be read; ``kinds`` are those registered besides ours.
    """

    text: str
    file: str
    settings: Settings = field(default_factory=Settings)
    includes: Mapping[str, str | None] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Admission:
    """A graph, or None where one of the diagnostics is an error."""

    graph: Graph | None
    diagnostics: tuple[Diagnostic, ...]


def includes(text: str, file: str) -> tuple[Include, ...]:
    """The files that prompts and the goal name by ``@path``, in file order, each mention."""
    findings = Findings(file, text)
    found: list[Include] = []
    for element, attribute in _attributes(dot.parse(findings)):
        key = first_name("node" if element == "node" else "graph", attribute.key)
        path = included_path(attribute.value.text) if attribute.value.kind == STRING else None
        if path is not None and (element, key) in {("node", "prompt"), ("graph", "goal")}:
            found.append(Include(path, findings.place(attribute.value.offset)))
    return tuple(found)


def admit(source: Source) -> Admission:
    """Reads, checks and completes a workflow. Never raises."""
    findings = Findings(source.file, source.text)
    document = dot.parse(findings)
    names = Names(_goal(document, source, findings), source.settings.variables)
    drawn = draft.draw(document, Reader(findings, names, source.includes))
    sheet = read_stylesheet(drawn.attributes.get("model_stylesheet"), findings)
    draft.check_ids(drawn, findings)
    if document.broken:
        return Admission(None, findings.sorted())
    whole = draft.check_mentions(drawn, findings)
    edges = [one for one in drawn.edges if _is_declared(one, drawn)]
    found = kinds.decide_kinds(drawn, source.kinds, findings)
    plain = kinds.build(document.name, drawn, edges, found, findings)
    view = lint.View(
        graph=plain,
        draft=drawn,
        drafts=edges,
        incoming=_incoming(plain),
        whole=whole,
        talkers=frozenset({graph.AGENT, graph.PROMPT}) | source.kinds,
        findings=findings,
    )
    fan_outs = lint.check(view, digraph=document.offset)
    diagnostics = findings.sorted()
    if has_errors(diagnostics):
        return Admission(None, diagnostics)
    models = kinds.Models(sheet, _chosen(source.settings), _defaults(plain))
    return Admission(
        replace(
            plain,
            attributes={**plain.attributes, **({"goal": names.goal} if names.goal else {})},
            nodes=_with_models(plain, models, _MODELLED | source.kinds),
            fan_outs=fan_outs,
        ),
        diagnostics,
    )


def _attributes(document: Document) -> list[tuple[str, Attribute]]:
    """The attributes of nodes, and of the graph itself, not of subgraphs."""
    found: list[tuple[str, Attribute]] = []
    depth = 0
    for statement in document.statements:
        if isinstance(statement, Open):
            depth += 1
        elif isinstance(statement, Close):
            depth -= 1
        elif isinstance(statement, NodeStatement):
            found += [("node", attribute) for attribute in statement.attributes]
        elif isinstance(statement, Defaults) and (statement.target != "graph" or depth == 0):
            found += [(statement.target, attribute) for attribute in statement.attributes]
    return found


def _goal(document: Document, source: Source, findings: Findings) -> str:
    """The goal with its names replaced: the settings' wins over the file's.

    What is wrong with the file's is found when its attributes are read. A goal from outside of it
    has no place in it; of that, names that are not known stay as they are.
    """
    goal = source.settings.goal
    if goal is None:
        written = [
            attribute.value.text
            for element, attribute in _attributes(document)
            if element == "graph" and attribute.key == "goal"
        ]
        goal = written[-1] if written else ""
    path = included_path(goal)
    if path is not None:
        if source.settings.goal is not None and source.includes.get(path) is None:
            message = f"prompt file {quoted(path)} cannot be read"
            findings.error("prompt_file", document.offset, message)
        goal = source.includes.get(path) or ""
    elif goal.startswith("@@"):
        goal = goal[1:]
    return in_prose(goal, Names(None, source.settings.variables)).text


def _is_declared(edge: draft.DraftEdge, drawn: draft.Draft) -> bool:
    return edge.source.id in drawn.nodes and edge.target.id in drawn.nodes


def _incoming(plain: Graph) -> dict[NodeId, list[Edge]]:
    found: dict[NodeId, list[Edge]] = {}
    for edge in plain.edges:
        found.setdefault(edge.target, []).append(edge)
    return found


def _chosen(settings: Settings) -> dict[str, str]:
    chosen = {"model": settings.model, "provider": settings.provider}
    return {key: value for key, value in chosen.items() if value}


def _defaults(plain: Graph) -> dict[str, str]:
    default = {"model": plain.text("default_model"), "provider": plain.text("default_provider")}
    return {key: value for key, value in default.items() if value}


def _with_models(
    plain: Graph, models: kinds.Models, modelled: frozenset[str]
) -> dict[NodeId, Node]:
    return {
        name: replace(node, attributes=kinds.with_models(node, models))
        if node.kind in modelled
        else node
        for name, node in plain.nodes.items()
    }
