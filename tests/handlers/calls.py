"""Calls for tests of handlers: one attempt at one node, in a folder of the test's own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from git_fabro.checkpoint.secrets import Mask
from git_fabro.handlers.call import Call, Notice, Stop
from git_fabro.workflow.graph import COMMAND, Edge, Graph, Node, NodeId
from git_fabro.workflow.settings import Settings
from git_fabro.workflow.state import Position


@dataclass
class Groups:
    """Remembers which groups were announced, and which are still there."""

    seen: list[int] = field(default_factory=list)
    open: set[int] = field(default_factory=set)

    def add(self, pid: int) -> None:
        self.seen.append(pid)
        self.open.add(pid)

    def remove(self, pid: int) -> None:
        self.open.remove(pid)


@dataclass
class Notices:
    """Collects notices, by code."""

    codes: list[str] = field(default_factory=list)

    def __call__(self, notice: Notice) -> None:
        self.codes.append(notice.code)


def a_node(id: str = "work", kind: str = COMMAND, **attributes: Any) -> Node:
    return Node(id=NodeId(id), kind=kind, attributes=attributes)


def a_graph(*nodes: Node, edges: tuple[Edge, ...] = (), **attributes: Any) -> Graph:
    start, exit = a_node("start", "start"), a_node("exit", "exit")
    return Graph(
        name="g",
        attributes=attributes,
        nodes={node.id: node for node in (start, *nodes, exit)},
        edges=edges,
        start=start.id,
        exit=exit.id,
    )


def a_call(folder: Path, text: str = "", node: Node | None = None, **changes: Any) -> Call:
    """A call in ``folder/work``, which logs below ``folder/logs``."""
    node = node or a_node()
    (folder / "work").mkdir(exist_ok=True)
    given: dict[str, Any] = {
        "graph": a_graph(node),
        "node": node,
        "position": Position(node=node.id, visit=1),
        "context": {},
        "text": text,
        "settings": a_settings(),
        "environment": {"PATH": os.environ["PATH"]},
        "directory": folder / "work",
        "logs": folder / "logs",
        "mask": Mask.of(["hunter22"]),
        "stop": Stop(),
        "groups": Groups(),
        "notice": Notices(),
    }
    return Call(**(given | changes))


def a_settings(preset: str = "", command: Any = (), **more: Any) -> Settings:
    return Settings(agent_preset=preset, agent_command=command, **more)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rfind(")") + 2] not in "ZX"


def until(condition: Callable[[], bool]) -> None:
    """Returns once the condition holds."""
    while not condition():
        threading.Event().wait(0.005)
