"""What an attempt is given: its text, its environment, its limits. Reads state, changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from git_fabro.doors import WorkTree
from git_fabro.handlers import preamble
from git_fabro.handlers.call import Call, Groups, Notice, Stop
from git_fabro.handlers.environment import node_environment
from git_fabro.store import RunLog
from git_fabro.workflow.graph import AGENT, COMMAND, FAN_IN, PROMPT, Edge, Graph, Node
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Line, Position

_COMMAND_TIMEOUT_S = 600.0
_ASKS_AN_AGENT = frozenset({AGENT, PROMPT, FAN_IN})


@dataclass(slots=True, kw_only=True)
class Workshop:
    """Makes the calls of one run's nodes.

    ``caller`` is the environment of whoever started the driver, ``given`` what the settings add.
    ``fresh`` is True until the first agent node after a resume has run: that one gets a summary in
    place of a conversation.
    """

    graph: Graph
    settings: Settings
    log: RunLog
    caller: Mapping[str, str]
    given: Mapping[str, str]
    groups: Groups
    fresh: bool = False
    _told: set[str] = field(default_factory=set)

    def thread_of(self, node: Node, line: Line) -> tuple[str, str]:
        """Fidelity and thread of the node's next visit; empty for kinds without an agent."""
        if node.kind not in _ASKS_AN_AGENT:
            return "", ""
        edge = self._incoming(line)
        fidelity = preamble.resolve_fidelity(self.graph, node, edge)
        thread = preamble.resolve_thread(self.graph, node, edge, line.current_node)
        return fidelity, thread

    def _incoming(self, line: Line) -> Edge | None:
        if line.next_edge is None or not 0 <= line.next_edge < len(self.graph.edges):
            return None
        return self.graph.edges[line.next_edge]

    def call(
        self,
        node: Node,
        position: Position,
        line: Line,
        place: WorkTree,
        *,
        stop: Stop,
        notice: Callable[[Notice], None],
        fidelity: str,
        thread: str,
        deadline: float | None,
    ) -> Call:
        """One attempt, ready to be run."""
        fidelity = self._lowered(node, fidelity, notice)
        return Call(
            graph=self.graph,
            node=node,
            position=position,
            context={**line.context_values, "internal.work_dir": str(place.path)},
            text=self._text(node, line, fidelity),
            settings=self.settings,
            environment=self._environment(node, position),
            directory=place.path,
            logs=self.log.directory.logs(str(position)),
            mask=self.log.mask,
            stop=stop,
            groups=self.groups,
            notice=notice,
            timeout_s=self._timeout_s(node),
            deadline=deadline,
            stall_timeout_s=self._stall_s(),
            thread=thread if fidelity == preamble.FULL else "",
            incoming=self._incoming(line),
            tracked_status_json=self._tracks_status_json(place),
        )

    def _lowered(self, node: Node, fidelity: str, notice: Callable[[Notice], None]) -> str:
        """The fidelity that can be had: a conversation needs a thread, and does not survive us."""
        if node.kind not in _ASKS_AN_AGENT or fidelity != preamble.FULL:
            return fidelity
        fresh, self.fresh = self.fresh, False
        if fresh:
            notice(Notice("fidelity_lowered", "first agent after a resume: summary:high"))
            return preamble.SUMMARY_HIGH
        if not self._continues_threads():
            notice(Notice("fidelity_lowered", "the agent's command has no {thread}: summary:high"))
            return preamble.SUMMARY_HIGH
        return fidelity

    def _continues_threads(self) -> bool:
        return preamble.has_thread(self.settings)

    def _text(self, node: Node, line: Line, fidelity: str) -> str:
        if node.kind == COMMAND:
            return node.text("script")
        if node.kind not in _ASKS_AN_AGENT:
            return ""
        text = node.text("prompt") or node.label
        before = preamble.build(
            fidelity,
            graph=self.graph,
            run=self.log.run,
            line=line,
            resolve=self.log.blobs.resolve,
            artifact=self.log.blobs.name_of,
        )
        return self.log.mask.text(f"{before}\n\n{text}" if before else text)

    def _environment(self, node: Node, position: Position) -> dict[str, str]:
        branch = position.branch.rpartition("/")[2] if position.branch else ""
        fabro = {
            "FABRO_RUN_ID": self.log.run,
            "FABRO_NODE_ID": node.id,
            "FABRO_KIND": node.kind,
            "FABRO_VISIT": str(position.visit),
            "FABRO_ATTEMPT": str(position.attempt),
            "FABRO_GOAL": self.graph.goal,
            "FABRO_BRANCH": branch,
            "FABRO_ARTIFACTS": str(self.log.directory.artifacts),
        }
        return node_environment(self.caller, self.given, self.settings.variables, fabro)

    def base_environment(self) -> dict[str, str]:
        """The environment of what runs for the whole run: preparation and hooks."""
        fabro = {"FABRO_RUN_ID": self.log.run, "FABRO_GOAL": self.graph.goal}
        return node_environment(self.caller, self.given, self.settings.variables, fabro)

    def _timeout_s(self, node: Node) -> float | None:
        own = node.seconds("timeout")
        if own is not None:
            return own or None
        if node.kind == COMMAND:
            return _COMMAND_TIMEOUT_S
        return self.settings.agent_timeout_s if node.kind in (AGENT, PROMPT) else None

    def _stall_s(self) -> float:
        value = self.graph.attributes.get("stall_timeout", 0)
        return float(value) if isinstance(value, (int, float)) else 0.0

    def _tracks_status_json(self, place: WorkTree) -> bool:
        doors = self.log.doors
        if doors is None:
            return (place.path / "status.json").exists()
        tree = doors.objects.tree_of(place.tip.oid)
        return doors.objects.entry_at(tree, "status.json") is not None
