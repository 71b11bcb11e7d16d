"""The workflow of one of Fabro's runs, as DOT: run.json holds a graph as JSON, or there is a file.

In run.json prompts are in place, where ``graph.fabro`` may name files that no commit holds.
"""

from __future__ import annotations

import re

from git_fabro.workflow.state import Json

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


def dot_of(graph: Json) -> bytes | None:
    """A graph of run.json as DOT; None where it is none, or has nothing in it.

    Nodes and edges keep the order that they are stored in; an attribute whose type is not known
    is left out.
    """
    if not isinstance(graph, dict):
        return None
    nodes, edges = graph.get("nodes"), graph.get("edges")
    if not isinstance(nodes, dict) or not nodes or not isinstance(edges, list):
        return None
    name = graph.get("name")
    lines = [f"digraph {_quoted(name if isinstance(name, str) and name else 'workflow')} {{"]
    lines += [f"    {key}={value}" for key, value in _attributes(graph)]
    lines += [f"    {_quoted(node)}{_list(value)}" for node, value in nodes.items()]
    for edge in edges:
        if isinstance(edge, dict):
            ends = _quoted(str(edge.get("from"))), _quoted(str(edge.get("to")))
            lines.append(f"    {' -> '.join(ends)}{_list(edge)}")
    return "\n".join([*lines, "}", ""]).encode()


def _list(value: Json) -> str:
    pairs = _attributes(value)
    return f" [{', '.join(f'{key}={text}' for key, text in pairs)}]" if pairs else ""


def _attributes(value: Json) -> list[tuple[str, str]]:
    """``{"attrs": {"label": {"String": "x"}}}`` as ``[("label", '"x"')]``; classes too."""
    found = value.get("attrs") if isinstance(value, dict) else None
    classes = value.get("classes") if isinstance(value, dict) else None
    pairs = []
    if isinstance(classes, list) and classes:
        pairs.append(("class", _quoted(" ".join(str(one) for one in classes))))
    for key, typed in found.items() if isinstance(found, dict) else ():
        inner = next(iter(typed.values())) if isinstance(typed, dict) and len(typed) == 1 else None
        text = _value(inner)
        if text is not None and _BARE.match(key):
            pairs.append((key, text))
    return pairs


def _value(value: Json) -> str | None:
    if isinstance(value, dict):
        return _duration(value.get("secs"), value.get("nanos"))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return _quoted(value) if isinstance(value, str) else None


def _duration(secs: Json, nanos: Json) -> str | None:
    if type(secs) is not int or type(nanos) is not int:
        return None
    return f"{secs}s" if not nanos else f"{secs * 1000 + nanos // 1_000_000}ms"


def _quoted(text: str) -> str:
    """A string of the dialect (git-fabro-workflow(7)); a newline stands as it is."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
