"""The hooks of a run: commands of the settings that hear of its events, and may decide some."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from git_fabro.checkpoint import codec
from git_fabro.errors import RecordError
from git_fabro.jobs.run.places import Places
from git_fabro.store import RunLog
from git_fabro.workflow import engine, fold
from git_fabro.workflow.engine import Done
from git_fabro.workflow.graph import Graph, Node, NodeId
from git_fabro.workflow.records import Next, NodeFinished
from git_fabro.workflow.settings import HookSetting
from git_fabro.workflow.state import (
    SKIPPED,
    STRUCTURAL,
    Json,
    Line,
    Outcome,
    Position,
    failed,
)

_NO_HOOK_OF_OURS = 128


@dataclass(frozen=True, slots=True)
class Verdict:
    """What blocking hooks decided: nothing, an outcome in place of the node's, or another way."""

    outcome: Outcome | None = None
    blocks: bool = False
    edge_to: str = ""

    @property
    def decided(self) -> bool:
        return self.outcome is not None


@dataclass(frozen=True, slots=True)
class RunHooks:
    """Runs the hooks of one run, in its main work tree."""

    hooks: Sequence[HookSetting]
    log: RunLog
    places: Places
    environment: Mapping[str, str]

    def about(self, node: Node, position: Position) -> dict[str, Json]:
        """What an event says of a visit."""
        return {
            "node": node.id,
            "kind": node.kind,
            "visit": position.visit,
            "attempt": position.attempt,
            "branch": position.branch,
        }

    def tell(self, event: str, about: Mapping[str, Json]) -> None:
        """Runs the hooks of an event that cannot decide anything: what it is about has happened."""
        verdict = self.ask(event, about)
        if verdict.outcome is not None and verdict.outcome.failure is not None:
            self.log.notice("hook", f"{verdict.outcome.failure.message}; it is too late to block")

    def ask(self, event: str, about: Mapping[str, Json]) -> Verdict:
        """Runs the hooks of an event in order, until a blocking one decides."""
        for hook in self.hooks:
            if hook.event != event or not _matches(hook, about):
                continue
            verdict = self._run(hook, event, about)
            if verdict.decided or verdict.edge_to:
                return verdict
        return Verdict()

    def _run(self, hook: HookSetting, event: str, about: Mapping[str, Json]) -> Verdict:
        body: dict[str, Json] = {"event": event, "run_id": self.log.run, **about}
        text = codec.canonical(body)
        environment = {
            **self.environment,
            "FABRO_EVENT": text.decode(),
            "FABRO_RUN_ID": self.log.run,
        }
        status, output = _call(hook, self.places.of(None).path, environment, text)
        if not hook.blocking:
            if status != 0:
                self.log.notice("hook", f"hook {hook.name} of {event} ended with status {status}")
            return Verdict()
        return _verdict(hook, event, status, self.log.mask.data(output))

    def redirect(self, graph: Graph, line: Line, done: Done, decided: NodeFinished) -> NodeFinished:
        """The record with the way out that a hook of ``edge_selected`` chose, if one did."""
        if decided.next is None or not any(hook.event == "edge_selected" for hook in self.hooks):
            return decided
        about: dict[str, Json] = {
            "node": done.position.node,
            "kind": decided.handler,
            "source": done.position.node,
            "target": decided.next.node,
            "reason": decided.reason,
        }
        verdict = self.ask("edge_selected", about)
        if verdict.blocks and verdict.outcome is not None:
            failure = verdict.outcome.failure
            outcome = replace(decided.outcome, status="fail", word="", failure=failure)
            return replace(decided, outcome=outcome, next=None, reason=STRUCTURAL)
        target = NodeId(verdict.edge_to)
        if target not in graph.nodes:
            return decided
        after = fold.finish(line, done.position, decided)
        if engine.over_limit(graph, after, target):
            return replace(decided, next=None, reason=engine.VISIT_LIMIT)
        return replace(decided, next=Next(node=target), reason="hook")


def _matches(hook: HookSetting, about: Mapping[str, Json]) -> bool:
    if not hook.matcher:
        return True
    names = (about.get(key) for key in ("node", "kind", "source", "target"))
    return any(isinstance(name, str) and re.search(hook.matcher, name) for name in names)


def _call(
    hook: HookSetting, directory: Path, environment: Mapping[str, str], body: bytes
) -> tuple[int, bytes]:
    """Exit status and standard output; a hook that does not end in time is killed."""
    with subprocess.Popen(
        ["sh", "-c", hook.command],
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(body, timeout=hook.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return _NO_HOOK_OF_OURS, b""
    return process.returncode, output


def _verdict(hook: HookSetting, event: str, status: int, output: bytes) -> Verdict:
    if status != 0:
        return _blocked(hook, event, f"ended with status {status}")
    try:
        said = codec.parse_json(output, "hook", is_ours=False) if output.strip() else {}
    except RecordError:
        return Verdict()
    decision = said.get("decision", "proceed") if isinstance(said, dict) else "proceed"
    reason = str(said.get("reason", "")) if isinstance(said, dict) else ""
    if decision == "block":
        return _blocked(hook, event, reason or "blocked")
    if decision == "skip":
        return Verdict(Outcome(status=SKIPPED, notes=reason))
    if decision == "override":
        return Verdict(edge_to=str(said.get("edge_to", "")))
    return Verdict()


def _blocked(hook: HookSetting, event: str, why: str) -> Verdict:
    outcome = failed(f"hook {hook.name} of {event}: {why}", failure_class=STRUCTURAL)
    return Verdict(outcome, blocks=True)
