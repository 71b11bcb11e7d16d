"""Rules about nodes, edges and the graph as a whole; those about a value are in ``values``.

Source: git-fabro-workflow(7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from git_fabro.workflow import fanout, graph
from git_fabro.workflow.condition import (
    STATUSES,
    Condition,
    normalise_status,
    outcome_clauses,
)
from git_fabro.workflow.diagnostic import Findings, quoted
from git_fabro.workflow.draft import Draft, DraftEdge
from git_fabro.workflow.gate import choices_of, match_choice
from git_fabro.workflow.graph import Edge, FanOut, Graph, Node, NodeId
from git_fabro.workflow.loops import loops

_RETRY_KEYS = ("retry_target", "fallback_retry_target")


@dataclass(frozen=True, slots=True)
class View:
    """What the rules look at.

    ``drafts`` are the edges of the graph as mentioned, in the same order. ``whole`` is false where
    an edge names a node that is not declared: then nobody knows what leads where.
    """

    graph: Graph
    draft: Draft
    drafts: Sequence[DraftEdge]
    incoming: Mapping[NodeId, Sequence[Edge]]
    whole: bool
    talkers: frozenset[str]  # kinds whose outcome may be a word of their own
    findings: Findings

    def at(self, node: NodeId, key: str | None = None) -> int:
        """The offset of a node's id, or of an attribute's value where it has one."""
        drafted = self.draft.nodes[node]
        if key is not None and key in drafted.meant:
            return drafted.meant[key].offset
        return drafted.name.offset

    def target_at(self, edge: Edge) -> int:
        return self.drafts[edge.index].target.offset


def check(view: View, *, digraph: int) -> dict[NodeId, FanOut]:
    """Notes all that is wrong with a graph; gives its fan-outs as far as they can be made out.

    Args:
        view: What to look at.
        digraph: The offset of the word, for rules about the graph as a whole.
    """
    _check_ends(view, digraph)
    for node in view.graph.nodes.values():
        for rule in _NODE_RULES:
            rule(view, node)
        if node.kind in _KIND_RULES:
            _KIND_RULES[node.kind](view, node)
    _check_edges(view)
    _check_graph_targets(view)
    if not view.whole:
        return {}
    _check_reachability(view)
    _check_loops(view)
    return _check_fan_outs(view)


# The ends.


def _check_ends(view: View, digraph: int) -> None:
    kinds = [node.kind for node in view.graph.nodes.values()]
    for rule, kind in (("start_node", graph.START), ("terminal_node", graph.EXIT)):
        number = kinds.count(kind)
        if number != 1:
            message = f"the graph has {number} {kind} nodes, exactly one is needed"
            view.findings.error(rule, digraph, message)
    for edge, drafted in zip(view.graph.edges, view.drafts, strict=True):
        if view.graph.nodes[edge.target].kind == graph.START:
            message = "the start node must not have incoming edges"
            view.findings.error("start_no_incoming", drafted.target.offset, message)
        if view.graph.nodes[edge.source].kind == graph.EXIT:
            message = "the exit node must not have outgoing edges"
            view.findings.error("exit_no_outgoing", drafted.source.offset, message)


# Single nodes.


def _check_ways_out(view: View, node: Node) -> None:
    edges = view.graph.outgoing(node.id)
    if node.kind == graph.EXIT or not (edges or view.whole):
        return
    if not edges:
        message = f"node {quoted(node.id)} has no outgoing edge and is not the exit"
        more = "; a run that gets there fails"
        view.findings.warning("dead_end", view.at(node.id), message + more)
    elif node.kind != graph.PARALLEL and view.whole:
        conditions = [edge.condition for edge in edges if edge.condition is not None]
        if len(conditions) == len(edges) and not _exhaustive(conditions):
            message = f"node {quoted(node.id)} has no unconditional edge"
            more = "; the run fails if no condition is true"
            view.findings.warning("all_conditional_edges", view.at(node.id), message + more)


def _exhaustive(conditions: Sequence[Condition]) -> bool:
    """Whether one of the conditions is ``k=v``, and another ``k!=v``."""
    single = [
        condition.alternatives[0][0]
        for condition in conditions
        if len(condition.alternatives) == 1 and len(condition.alternatives[0]) == 1
    ]
    found = {
        (clause.key, normalise_status(clause.value), (clause.operator == "=") != clause.negated)
        for clause in single
        if clause.operator in {"=", "!="}
    }
    return any((key, value, not equal) in found for key, value, equal in found)


def _check_retries(view: View, node: Node) -> None:
    for key in _RETRY_KEYS:
        target = node.text(key)
        if target and target not in view.graph.nodes:
            message = f"retry target {quoted(target)} does not exist"
            view.findings.warning("retry_target_exists", view.at(node.id, key), message)
    targets = [node.text(key) or view.graph.text(key) for key in _RETRY_KEYS]
    if node.flag("goal_gate") and not any(targets):
        message = f"goal gate {quoted(node.id)} has no retry target"
        view.findings.warning("goal_gate_has_retry", view.at(node.id), message)
    number = node.number("max_retries")
    if node.text("retry_policy") == "none" and number:
        message = f"retry_policy=none beside max_retries={number}, the number counts"
        view.findings.warning("retry_conflict", view.at(node.id, "retry_policy"), message)


def _check_selection(view: View, node: Node) -> None:
    conditional = any(edge.condition is not None for edge in view.graph.outgoing(node.id))
    if node.text("selection") == "random" and conditional:
        message = "selection=random cannot be combined with conditional edges"
        view.findings.error("random_with_conditions", view.at(node.id, "selection"), message)


def _check_thread(view: View, node: Node) -> None:
    if not node.text("thread_id"):
        return
    modes = {edge.fidelity for edge in view.incoming.get(node.id, ())}
    own = node.text("fidelity") or view.graph.text("default_fidelity")
    if "full" not in modes and own != "full":
        message = "thread_id has no effect without fidelity=full"
        view.findings.warning("thread_without_full", view.at(node.id, "thread_id"), message)


_NODE_RULES: tuple[Callable[[View, Node], None], ...] = (
    _check_ways_out,
    _check_retries,
    _check_selection,
    _check_thread,
)


# Nodes of one kind.


def _check_prompt(view: View, node: Node) -> None:
    if not node.text("prompt").strip() and not node.text("label").strip():
        message = f"agent {quoted(node.id)} has neither prompt nor label"
        view.findings.warning("prompt_missing", view.at(node.id), message)


def _check_command(view: View, node: Node) -> None:
    spellings = view.draft.nodes[node.id].commands
    if len(spellings) > 1:
        first, second = spellings[:2]
        message = f"command {quoted(node.id)} has {first} and {second}"
        view.findings.error("command_twice", view.at(node.id), message)
    elif not node.text("script").strip():
        message = f"command {quoted(node.id)} has no script"
        view.findings.error("command_missing", view.at(node.id), message)


def _check_wait(view: View, node: Node) -> None:
    if "duration" not in node.attributes:
        message = f"wait {quoted(node.id)} needs a duration"
        view.findings.error("wait_duration", view.at(node.id), message)


def _check_manager(view: View, node: Node) -> None:
    message = "manager loops are not supported yet; run will refuse"
    view.findings.warning("manager_unsupported", view.at(node.id), message)


def _check_gate(view: View, node: Node) -> None:
    edges = view.graph.outgoing(node.id)
    offered = choices_of(edges)
    freeform = [edge for edge in edges if edge.freeform]
    if not offered and not freeform and view.whole:
        message = f"human gate {quoted(node.id)} offers no choice"
        view.findings.error("human_no_choice", view.at(node.id), message)
    default = node.text("human.default_choice")
    if default and match_choice(offered, None, default) is None:
        message = f"default {quoted(default)} is not a choice of {quoted(node.id)}"
        place = view.at(node.id, "human.default_choice")
        view.findings.error("human_default_choice", place, message)
    for edge in freeform[1:]:
        message = f"more than one freeform edge at {quoted(node.id)}"
        view.findings.error("freeform_edge_count", view.target_at(edge), message)
    for edge in edges:
        if edge.label and edge.condition is not None:
            message = f"the labelled edge {quoted(edge.label)} has a condition and is not offered"
            view.findings.warning("human_choice_condition", view.target_at(edge), message)
    _check_keys(view, edges)


def _check_keys(view: View, edges: Sequence[Edge]) -> None:
    shown = [edge for edge in edges if edge.condition is None and not edge.freeform]
    first: dict[str, str] = {}
    for edge, choice in zip(shown, choices_of(edges), strict=True):
        if choice.key in first:
            names = f"{quoted(first[choice.key])} and {quoted(choice.label)}"
            message = f"choices {names} share the key {quoted(choice.key)}"
            view.findings.warning("human_key_clash", view.target_at(edge), message)
        first.setdefault(choice.key, choice.label)


_KIND_RULES: Mapping[str, Callable[[View, Node], None]] = {
    graph.AGENT: _check_prompt,
    graph.PROMPT: _check_prompt,
    graph.COMMAND: _check_command,
    graph.WAIT: _check_wait,
    graph.MANAGER: _check_manager,
    graph.HUMAN: _check_gate,
}


# Edges.


def _check_edges(view: View) -> None:
    seen: set[tuple[NodeId, NodeId, Condition | None, str]] = set()
    speaking = _speakers(view)
    for edge in view.graph.edges:
        key = (edge.source, edge.target, edge.condition, edge.label)
        if key in seen:
            ends = f"{quoted(edge.source)} -> {quoted(edge.target)}"
            message = f"second edge {ends} with the same condition"
            view.findings.warning("duplicate_edge", view.target_at(edge), message)
        seen.add(key)
        if edge.loop_restart and view.graph.nodes[edge.target].kind == graph.EXIT:
            message = "loop_restart cannot lead to the exit node"
            view.findings.error("restart_target", view.target_at(edge), message)
        _check_edge_thread(view, edge)
        if edge.condition is not None and edge.source not in speaking and view.whole:
            _check_words(view, edge, edge.condition)


def _check_edge_thread(view: View, edge: Edge) -> None:
    target = view.graph.nodes[edge.target]
    mode = edge.fidelity or target.text("fidelity") or view.graph.text("default_fidelity")
    if edge.thread_id and mode != "full":
        place = view.drafts[edge.index].meant["thread_id"].offset
        message = "thread_id has no effect without fidelity=full"
        view.findings.warning("thread_without_full", place, message)


def _check_words(view: View, edge: Edge, condition: Condition) -> None:
    for clause in outcome_clauses(condition):
        if normalise_status(clause.value) not in STATUSES:
            message = f"{quoted(clause.value)} is no status, only a custom word of an agent"
            place = view.drafts[edge.index].meant["condition"].offset
            view.findings.warning("outcome_word", place, message + " can match")


def _speakers(view: View) -> set[NodeId]:
    """The nodes whose edges may see a custom word: agents, and the conditionals behind them."""
    nodes = view.graph.nodes
    found = {node.id for node in nodes.values() if node.kind in view.talkers}
    waiting = list(found)
    while waiting:
        for edge in view.graph.outgoing(waiting.pop()):
            if nodes[edge.target].kind == graph.CONDITIONAL and edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return found


# The whole graph.


def _check_graph_targets(view: View) -> None:
    for key in _RETRY_KEYS:
        meant = view.draft.attributes.get(key)
        if meant is not None and meant.value and meant.value not in view.graph.nodes:
            message = f"retry target {quoted(str(meant.value))} does not exist"
            view.findings.warning("retry_target_exists", meant.offset, message)


def _check_reachability(view: View) -> None:
    if not view.graph.start:
        return
    reached = {view.graph.start}
    waiting = [view.graph.start]
    while waiting:
        for name in _follows(view.graph, waiting.pop()):
            if name in view.graph.nodes and name not in reached:
                reached.add(name)
                waiting.append(name)
    for node in view.graph.nodes:
        if node not in reached:
            message = f"node {quoted(node)} cannot be reached from start by edges or retry targets"
            view.findings.warning("reachability", view.at(node), message)


def _follows(graph_: Graph, node: NodeId) -> Iterable[NodeId]:
    yield from (edge.target for edge in graph_.outgoing(node))
    for key in _RETRY_KEYS:
        yield NodeId(graph_.nodes[node].text(key))
        yield NodeId(graph_.text(key))


def _check_loops(view: View) -> None:
    if view.graph.number("max_node_visits", 0) > 0:
        return
    for loop in loops(view.graph):
        path = " -> ".join((*loop, loop[0]))
        message = f"the loop {quoted(path)} has no visit limit"
        view.findings.info("unbounded_loop", view.at(loop[0]), message)


def _check_fan_outs(view: View) -> dict[NodeId, FanOut]:
    joins = fanout.find_joins(view.graph)
    found: dict[NodeId, FanOut] = {}
    for parallel in (name for name in view.graph.nodes if name in joins.of):
        join = joins.of[parallel]
        if join is None:
            message = f"the branches of {quoted(parallel)} do not meet"
            view.findings.error("parallel_join", view.at(parallel), message)
            continue
        if view.graph.nodes[join].kind != graph.FAN_IN:
            message = f"the branches of {quoted(parallel)} meet at {quoted(join)}"
            more = ", which merges all of them"
            view.findings.info("parallel_without_fan_in", view.at(parallel), message + more)
        found[parallel] = fanout.fan_out(view.graph, parallel, join)
        _check_region(view, found[parallel], joins)
    return found


def _check_region(view: View, found: FanOut, joins: fanout.Joins) -> None:
    for wrong in fanout.trespasses(view.graph, found, joins, view.incoming):
        if wrong.edge is not None:
            message = f"an edge crosses the border of {quoted(found.node)}"
            view.findings.error("parallel_region", view.target_at(wrong.edge), message)
        elif wrong.node is not None:
            message = f"node {quoted(wrong.node)} belongs to two branches of {quoted(found.node)}"
            view.findings.error("parallel_region", view.at(wrong.node), message)
    for nodes in found.branches.values():
        for node in nodes:
            kind = view.graph.nodes[node].kind
            if kind in {graph.START, graph.EXIT, graph.MANAGER}:
                message = f"a {kind} node cannot be inside a fan-out"
                view.findings.error("parallel_interior_kind", view.at(node), message)
