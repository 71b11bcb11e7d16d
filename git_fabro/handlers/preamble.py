"""What an agent is told of the run before its prompt, and which conversation it continues.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from git_fabro.checkpoint import codec
from git_fabro.handlers import presets
from git_fabro.workflow.graph import COMMAND, Edge, Graph, Node, NodeId
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Json, Line, Outcome

FULL, TRUNCATE, COMPACT = "full", "truncate", "compact"
SUMMARY_LOW, SUMMARY_MEDIUM, SUMMARY_HIGH = "summary:low", "summary:medium", "summary:high"
MODES = frozenset({FULL, TRUNCATE, COMPACT, SUMMARY_LOW, SUMMARY_MEDIUM, SUMMARY_HIGH})

#: Characters: 600, 1500 and 3000 tokens of four.
LIMITS = {SUMMARY_LOW: 2400, SUMMARY_MEDIUM: 6000, SUMMARY_HIGH: 12000}

_HIDDEN = ("internal.", "current", "graph.", "thread.", "response.")
_OUTPUT_LINES, _FILES, _RESPONSE_CHARACTERS = 20, 20, 200
#: Of one value of the context; the whole may be 100 KiB.
_VALUE_CHARACTERS = 500

Resolve = Callable[[Json], Json]
Artifact = Callable[[Json], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is known of a completed visit. ``outcome`` is None if a later visit has replaced it."""

    visit: str
    kind: str
    outcome: Outcome | None = None
    script: str = ""
    output: str = ""
    stderr: str = ""
    response: str = ""


def resolve_fidelity(graph: Graph, node: Node, edge: Edge | None) -> str:
    """How much a node is told: its incoming edge, the node, the graph, else ``compact``."""
    wanted = (
        edge.fidelity if edge is not None else "",
        node.text("fidelity"),
        graph.text("default_fidelity"),
    )
    return next((mode for mode in wanted if mode in MODES), COMPACT)


def resolve_thread(graph: Graph, node: Node, edge: Edge | None, previous: NodeId | None) -> str:
    """The conversation: node, edge, graph, nearest subgraph's class, the node before."""
    wanted = (
        node.text("thread_id"),
        edge.thread_id if edge is not None else "",
        graph.text("default_thread"),
        node.subgraph_class,
        previous,
    )
    return next((thread for thread in wanted if thread), node.id)


def has_thread(settings: Settings) -> bool:
    """Whether the agent's command can continue a conversation."""
    return presets.is_configured(settings) and presets.program_of(settings).uses("thread")


def build(
    mode: str, *, graph: Graph, run: str, line: Line, resolve: Resolve, artifact: Artifact
) -> str:
    """The preamble of a node, "" where there is none.

    Args:
        mode: A fidelity; ``full`` has no preamble, as the conversation itself goes on.
        graph: For kinds and scripts.
        run: The run's id.
        line: Where the node stands; what it has completed, and its context.
        resolve: Gives an offloaded value.
        artifact: Gives the file name of an offloaded value, None for any other.
    """
    goal = _goal(graph, line)
    if mode == FULL:
        return ""
    if mode == TRUNCATE:
        return f"Goal: {goal}\nRun: {run}"
    visits = told(graph, line, resolve)
    shown = _context(line.context_values, resolve, artifact)
    if mode in LIMITS:
        return _summary(mode, goal, visits, shown)
    parts = [f"Goal: {goal}"]
    if visits:
        parts.append("\n".join(("Completed:", *(_compact(visit) for visit in visits))))
    if shown:
        parts.append("\n".join(("Context:", *shown)))
    return "\n\n".join(parts)


def _goal(graph: Graph, line: Line) -> str:
    goal = line.context_values.get("graph.goal")
    return goal if isinstance(goal, str) and goal else graph.goal


def told(graph: Graph, line: Line, resolve: Resolve) -> tuple[Told, ...]:
    """The completed visits of a line, oldest first; of a node's visits only the last is known."""
    numbers = dict(line.node_visits)
    open_node, _, _ = line.open_visit.rpartition("@")
    if open_node in numbers:
        numbers[open_node] -= 1
    left = Counter(line.completed_nodes)
    found = []
    for name in line.completed_nodes:
        left[name] -= 1
        visit = f"{name}@{numbers.get(name, 1) - left[name]}"
        node = graph.nodes.get(NodeId(name))
        if node is None:
            continue
        outcome = None if left[name] else line.node_outcomes.get(name)
        found.append(_told(visit, node, outcome, resolve))
    return tuple(found)


def _told(visit: str, node: Node, outcome: Outcome | None, resolve: Resolve) -> Told:
    if outcome is None:
        return Told(visit=visit, kind=node.kind)

    def said(key: str) -> str:
        value = resolve(outcome.context_updates.get(key))
        return value.strip() if isinstance(value, str) else ""

    return Told(
        visit=visit,
        kind=node.kind,
        outcome=outcome,
        script=node.text("script").strip() if node.kind == COMMAND else "",
        output=said("command.output"),
        stderr=said("command.stderr"),
        response=said(f"response.{node.id}"),
    )


def _compact(visit: Told) -> str:
    return "\n".join(
        (
            _headline(visit),
            *_reason(visit),
            *_block("script", visit.script.splitlines()),
            *_block("output", visit.output.splitlines()[-_OUTPUT_LINES:]),
            *_block("stderr", visit.stderr.splitlines()[-_OUTPUT_LINES:]),
            *_block("response", _cut(visit.response, _RESPONSE_CHARACTERS).splitlines()),
            *_files(visit),
        )
    )


def _headline(visit: Told) -> str:
    status = visit.outcome.text if visit.outcome is not None else "visited again since"
    return f"- {visit.visit} ({visit.kind}): {status}"


def _reason(visit: Told) -> Iterator[str]:
    if visit.outcome is not None and visit.outcome.failure is not None:
        yield f"  reason: {_one_line(visit.outcome.failure.message)}"


def _files(visit: Told) -> Iterator[str]:
    files = visit.outcome.files_touched if visit.outcome is not None else ()
    if files:
        more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
        yield f"  files: {', '.join(files[:_FILES])}{more}"


def _block(name: str, lines: Sequence[str]) -> Iterator[str]:
    if len(lines) == 1:
        yield f"  {name}: {lines[0]}"
    elif lines:
        yield f"  {name}:"
        yield from (f"    {line}" for line in lines)


def _context(context: Mapping[str, Json], resolve: Resolve, artifact: Artifact) -> list[str]:
    """One line for each key that an agent may know."""
    return [
        f"- {_one_line(key)}: {_shown(value, resolve, artifact)}"
        for key, value in sorted(context.items())
        if not key.startswith(_HIDDEN)
    ]


def _shown(value: Json, resolve: Resolve, artifact: Artifact) -> str:
    name = artifact(value)
    if name is not None:
        size_bytes = len(codec.canonical(resolve(value)))
        return f"{size_bytes} bytes in $FABRO_ARTIFACTS/{name}"
    return _cut(json.dumps(value, ensure_ascii=False), _VALUE_CHARACTERS)


def _summary(mode: str, goal: str, visits: Sequence[Told], shown: Sequence[str]) -> str:
    """Goal, context and as many visits, newest first, as fit; what is left out is counted."""
    limit = LIMITS[mode]
    parts = [f"Goal: {_cut(goal, limit // 4)}"]
    if mode != SUMMARY_LOW and shown:
        parts.append(_within("Context:", [_cut(line, limit // 8) for line in shown], limit // 4))
    room = limit - sum(len(part) + 2 for part in parts)
    if visits:
        texts = [_cut(_summed(mode, visit), room // 2) for visit in visits]
        parts.insert(1, _newest("Completed:", texts, room))
    return "\n\n".join(parts)


def _summed(mode: str, visit: Told) -> str:
    lines = [_headline(visit)]
    if mode != SUMMARY_LOW:
        lines += _reason(visit)
    if mode == SUMMARY_HIGH:
        lines += _block("response", visit.response.splitlines())
        lines += _block("output", visit.output.splitlines()[-_OUTPUT_LINES:])
        lines += _block("stderr", visit.stderr.splitlines()[-_OUTPUT_LINES:])
    return "\n".join(lines)


def _within(title: str, lines: Sequence[str], limit: int) -> str:
    """The first lines that fit, and how many do not."""
    kept, size = [title], len(title) + len(_left_out(len(lines))) + 1
    for line in lines:
        size += len(line) + 1
        if size > limit:
            kept.append(_left_out(len(lines) - len(kept) + 1))
            break
        kept.append(line)
    return "\n".join(kept)


def _newest(title: str, texts: Sequence[str], limit: int) -> str:
    """The last texts that fit, and before them how many do not."""
    kept: list[str] = []
    size = len(title) + len(_left_out(len(texts))) + 1
    for text in reversed(texts):
        size += len(text) + 1
        if size > limit:
            return "\n".join((title, _left_out(len(texts) - len(kept)), *reversed(kept)))
        kept.append(text)
    return "\n".join((title, *reversed(kept)))


def _left_out(count: int) -> str:
    return f"- ({count} more left out)"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def _one_line(text: str) -> str:
    return " ".join(text.split())
