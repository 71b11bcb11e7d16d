"""Branches as the Rust program Fabro left them, in all generations, made with plain git.

Source: git-fabro-format(5), "Fabro's branches".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conftest import GitRepo

RUN = "01KP8XFY02RXHCR69H9FQ02X64"
FOOTER = "⚒️ Generated with [Fabro](https://fabro.sh)\n"
WHO = "Fabro <noreply@fabro.sh>"
#: When the first commit was made; each later one is a second younger.
WHEN = 1_773_522_250
LINKED, UNNAMED, DANGLING, NO_COMMIT, NO_META = "linked", "unnamed", "dangling", "", "no meta"
#: What a trailer names whose metadata was never pushed.
ABSENT = "37593d6a48f3" + "0" * 28
GENERATIONS = ("G1", "G2 config", "G2 settings", "G2b", "G3", "G4a", "G4b", "G4c")
GOAL = "ship it"
GRAPH = 'digraph Ship { graph [goal="ship it"]; start [shape=Mdiamond]; exit [shape=Msquare] }\n'


@dataclass(frozen=True, slots=True)
class Visit:
    """One checkpoint: how it ended and which of its two commits there are."""

    node: str
    status: str = "success"
    link: str = LINKED
    number: int = 1
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Workflow:
    """The workflow of a run: as DOT, as run.json has it, and which node follows which."""

    dot: str = GRAPH
    drawn: Mapping[str, Any] = field(
        default_factory=lambda: {
            "name": "Ship",
            "nodes": {},
            "edges": [],
            "attrs": {"goal": {"String": GOAL}},
        }
    )
    following: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Branch:
    """A branch that grows by one commit at a time.

    With ``whole`` a commit has the files that it is given and no others.
    """

    repo: GitRepo
    ref: str
    commits: list[str] = field(default_factory=list)
    whole: bool = True

    def commit(self, message: str, files: Mapping[str, str] | None, parent: str = "") -> str:
        """A commit; files None: the tree of its parent."""
        mark = self.commits[-1] if self.commits else parent
        data = message.encode()
        when = WHEN + len(self.commits)
        rows = [f"commit {self.ref}\ncommitter {WHO} {when} -0400\ndata {len(data)}\n".encode()]
        rows.append(data + b"\n")
        rows.append(f"from {mark}\n".encode() if mark else b"")
        if files is not None:
            rows.append(b"deleteall\n" if self.whole else b"")
            for path, text in files.items():
                content = text.encode()
                rows.append(f'M 100644 inline "{path}"\ndata {len(content)}\n'.encode())
                rows.append(content + b"\n")
        self.repo.git("fast-import", "--quiet", "--force", stdin=b"".join(rows))
        self.commits.append(self.repo.git("rev-parse", self.ref))
        return self.commits[-1]


@dataclass(frozen=True, slots=True)
class Written:
    """What was made: of each visit the run commit and the meta commit, None for none."""

    run: str
    pairs: tuple[tuple[str | None, str | None], ...]
    base: str


def checkpoint_message(
    run: str, visit: Visit, completed: int, meta: str | None, prefix: str = "Fabro"
) -> str:
    """The message of a run commit."""
    rows = [f"{prefix}-Run: {run}", f"{prefix}-Completed: {completed}"]
    rows += [f"{prefix}-Checkpoint: {meta}"] if meta else []
    subject = f"{prefix.lower()}({run}): {visit.node} ({visit.status})"
    return "\n".join([subject, "", *rows, "", FOOTER])


def write(
    repo: GitRepo,
    visits: Sequence[Visit],
    *,
    generation: str = "G1",
    run: str = RUN,
    ends: bool = True,
    graph: str = GRAPH,
    workflow: Workflow | None = None,
    run_prefix: str = "refs/heads/fabro/run/",
) -> Written:
    """A run of Fabro's: its branches, commit by commit."""
    base, graph_of = repo.git("rev-parse", "HEAD"), workflow or Workflow(graph)
    meta = Branch(repo, f"refs/heads/fabro/meta/{run}")
    work = Branch(repo, f"{run_prefix}{run}", whole=False)
    pairs: list[tuple[str | None, str | None]] = []
    done: list[Visit] = []
    if generation == "G4a":
        meta.commit("initialize branch", {})
    if any(visit.link != NO_META for visit in visits):
        meta.commit(f"init run\n\n{FOOTER}", _files(generation, run, [], graph_of))
    for visit in visits:
        done.append(visit)
        named = _meta(meta, generation, run, done, graph_of)
        pairs.append((_commit(work, base, run, done, named), named))
    if ends and meta.commits:
        status = done[-1].status if done else "fail"
        final = _files(generation, run, done, graph_of, conclusion=status)
        meta.commit(f"finalize run\n\n{FOOTER}", final)
    return Written(run, tuple(pairs), base)


def _meta(
    meta: Branch, generation: str, run: str, done: list[Visit], graph: Workflow
) -> str | None:
    if done[-1].link in (UNNAMED, DANGLING, NO_META):
        return None
    blank = "" if generation.startswith("G4") else "\n"
    files = _files(generation, run, done, graph)
    return meta.commit(f"checkpoint\n{blank}{FOOTER}", files)


def _commit(work: Branch, base: str, run: str, done: list[Visit], named: str | None) -> str | None:
    visit = done[-1]
    if visit.link == NO_COMMIT:
        return None
    named = ABSENT if visit.link == DANGLING else named
    files = None
    if visit.changes:
        files = {f"work/{visit.node}.txt": f"{visit.node} {visit.number}\n"}
    message = checkpoint_message(run, visit, len(done) + 1, named)
    return work.commit(message, files, parent=base)


def state(
    run: str, done: Sequence[Visit], *, with_durations: bool, following: str = "exit"
) -> dict[str, Any]:
    """checkpoint.json after these visits."""
    last = done[-1]
    outcomes: dict[str, Any] = {"start": {"status": "success"}}
    for visit in done:
        outcomes[visit.node] = {"status": visit.status, "notes": f"did {visit.node}"}
        outcomes[visit.node] |= {"duration_ms": 1234} if with_durations else {"usage": None}
        if visit.status.startswith("fail"):
            failure = {"message": "it broke", "failure_class": "deterministic"}
            outcomes[visit.node]["failure"] = failure
    return {
        "timestamp": "2026-03-14T21:04:16.188835Z",
        "current_node": last.node,
        "completed_nodes": ["start", *(visit.node for visit in done)],
        "node_visits": {"start": 1, **{visit.node: visit.number for visit in done}},
        "next_node_id": following,
        "node_outcomes": outcomes,
        "node_retries": {},
        "context_values": {
            "graph.goal": GOAL,
            "internal.run_id": run,
            "current_node": last.node,
            f"response.{last.node}": f"did {last.node}",
        },
    }


def _files(
    generation: str,
    run: str,
    done: Sequence[Visit],
    workflow: Workflow,
    *,
    conclusion: str | None = None,
) -> dict[str, str]:
    """The files of one meta commit."""
    with_durations, now = generation == "G1", None
    if done:
        following = workflow.following.get(done[-1].node, "exit")
        now = state(run, done, with_durations=with_durations, following=following)
    graph, drawn = workflow.dot, workflow.drawn
    started = {
        "run_id": run,
        "start_time": "2026-03-14T21:04:10.856614Z",
        "run_branch": f"fabro/run/{run}",
        "base_sha": "e662" + "0" * 36,
    }
    made: dict[str, Any] = {
        "run_id": run,
        "graph": drawn,
        "workflow_slug": "ship",
        "base_branch": "main",
    }
    found: dict[str, Any] = {}
    if generation == "G1":
        manifest = {**started, "workflow_name": "Ship", "goal": GOAL, "base_branch": "main"}
        found = {"manifest.json": {**manifest, "workflow_slug": "ship"}, "graph.fabro": graph}
    elif generation.startswith("G2 "):
        made["created_at"] = started["start_time"]
        found = {"run.json": {**made, generation[3:]: {}}, "start.json": started}
    elif generation == "G2b":
        found = {"start.json": started}
    elif generation == "G3":
        found = {"run.json": {**made, "settings": {}}}
    else:
        return _last_files(generation, run, done, now, started, drawn, conclusion) | {
            "graph.fabro": graph
        }
    found |= {"sandbox.json": {"provider": "local", "working_directory": "/w"}}
    if now is not None:
        found["checkpoint.json"] = now
    for visit in done:
        suffix = "" if visit.number == 1 else f"-visit_{visit.number}"
        folder = f"nodes/{visit.node}{suffix}"
        found[f"{folder}/response.md"] = f"did {visit.node} {visit.number}\n"
    return _texts(found)


def _last_files(
    generation: str,
    run: str,
    done: Sequence[Visit],
    now: dict[str, Any] | None,
    started: dict[str, str],
    drawn: Mapping[str, Any],
    conclusion: str | None,
) -> dict[str, str]:
    spec: dict[str, Any] = {"run_id": run, "graph": drawn, "workflow_slug": "ship"}
    spec |= {"base_branch": "main"} if generation == "G4a" else {"git": {"branch": "main"}}
    made = {
        "spec": spec,
        "start": started,
        "status": {"kind": "running"},
        "checkpoint": now,
        "checkpoints": [],
        "conclusion": None if conclusion is None else {"status": conclusion},
        "stages" if generation == "G4c" else "nodes": {},
    }
    found: dict[str, Any] = {"run.json": made}
    for rank, visit in enumerate(done, start=2):
        prefix = f"{rank:03}-" if generation == "G4c" else ""
        folder = f"stages/{prefix}{visit.node}@{visit.number}"
        found[f"{folder}/response.md"] = f"did {visit.node} {visit.number}\n"
    return _texts(found)


def _texts(files: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else json.dumps(value, indent=2)
        for name, value in files.items()
    }
