"""Workflows in the shorthand of the dialect's parity matrix, run for real and told from records.

``a=bad; fix=ok : a >outcome=fail? fix; a >9 exit; fix >> exit`` declares two commands and their
edges; ``start``, ``exit`` and the edge to the first node are added.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from git_fabro import homes, reading
from git_fabro.checkpoint import codec, layout
from git_fabro.checkpoint.model import RunId
from git_fabro.doors import Doors
from git_fabro.gates import Reply
from git_fabro.jobs import answer
from git_fabro.jobs.run import begin, resume
from git_fabro.jobs.run.crew import Terms
from git_fabro.rundir import RunDirectory
from git_fabro.workflow import engine
from git_fabro.workflow.records import (
    NodeFinished,
    NodeStarted,
    ParallelStarted,
    Record,
    RunFinished,
)
from git_fabro.workflow.state import RunState
from tests.conftest import GitRepo

#: An agent that prints the file of its node and attempt, or that of the highest attempt.
AGENT = """\
cat > /dev/null
file="ANSWERS/$FABRO_NODE_ID.$FABRO_ATTEMPT"
test -e "$file" || file="ANSWERS/$FABRO_NODE_ID.2"
test -e "$file" || file="ANSWERS/$FABRO_NODE_ID.1"
cat "$file"
"""
_SCRIPTS = {
    "ok": "exit 0",
    "bad": "exit 1",
    "visit": 'test "$FABRO_VISIT" -ge {}',
    "try": 'test "$FABRO_ATTEMPT" -ge {}',
    "put": 'echo "$FABRO_NODE_ID" > {}',
}
_SHAPES = {"cond": "diamond", "human": "hexagon", "split": "component", "join": "tripleoctagon"}
_NODE = re.compile(r'(?P<id>"?[\w.-]+"?)=(?P<what>\w+)(?:\((?P<of>.*)\))?(?P<more>(?: \w+=\w+)*)')
_EDGE = re.compile(r'(\S+) >(?:>|(?P<when>.+)\?|"(?P<label>.*)"|(?P<weight>[0-9]+)) (\S+)')


def source_of(shorthand: str) -> tuple[str, dict[str, list[str]]]:
    """The workflow that a shorthand stands for, and what its agents say, by node."""
    head, rest = "", shorthand
    if shorthand.startswith("["):
        head, _, rest = shorthand[1:].partition("] ")
    declared, _, drawn = rest.partition(" : ")
    lines = ["# a line that says nothing", f'graph [goal="see https://x.test/a//b" {head}]']
    lines += ["start [shape=Mdiamond]", "exit [shape=Msquare]"]
    said: dict[str, list[str]] = {}
    first = ""
    for part in declared.split("; "):
        match = _NODE.fullmatch(part)
        assert match is not None, part
        first = first or match["id"]
        if match["what"] == "says":
            said[match["id"].strip('"')] = _values(match["of"])
        lines.append(f"{match['id']} [{_what(match['what'], match['of'])}{match['more']}]")
    lines.append(f"start -> {first}")
    lines += [_edge(part) for part in drawn.split("; ")]
    return "digraph Row {\n" + "\n".join(lines) + "\n}\n", said


def _what(word: str, argument: str | None) -> str:
    if word in _SHAPES:
        return f"shape={_SHAPES[word]}"
    if word == "says":
        return 'shape=box prompt="say it"'
    script = _SCRIPTS[word].format(argument).replace('"', '\\"')
    return f'shape=parallelogram script="{script}"'


def _edge(text: str) -> str:
    match = _EDGE.fullmatch(text)
    assert match is not None, text
    attributes = {"condition": match["when"], "label": match["label"], "weight": match["weight"]}
    listed = " ".join(f'{key}="{value}"' for key, value in attributes.items() if value)
    return f"{match[1]} -> {match[5]} [{listed}]"


def _values(text: str) -> list[str]:
    """The JSON texts in ``{..}, {..}``."""
    found, at = [], 0
    while at < len(text):
        _, end = json.JSONDecoder().raw_decode(text, at)
        found.append(text[at:end])
        at = end + len(", ")
    return found


@dataclass(slots=True)
class Stage:
    """A folder with a workflow, the run that was begun there, and what is known of it."""

    repo: GitRepo
    git: bool = True
    run: RunId = RunId("")
    records: list[Record] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def doors(self) -> Doors | None:
        return Doors.open(self.repo.path) if self.git else None

    def opened(self) -> Doors:
        return Doors.open(self.repo.path)

    def directory(self) -> RunDirectory:
        doors = self.doors()
        repository = doors.repository if doors else None
        return RunDirectory.of(homes.home(repository, self.repo.path, self.environment), self.run)

    def begin(self, *, checkpoints: bool = True, terms: Terms | None = None) -> RunState:
        request = begin.Request(
            workflow="w.fabro",
            folder=self.repo.path,
            environment=self.environment,
            checkpoints=checkpoints,
            terms=terms or Terms(),
        )
        plan = begin.prepare(request, self.doors())
        self.git = self.git and checkpoints and plan.doors is not None
        return begin.run(plan, on_record=self.records.append, began=self._began)

    def _began(self, run: RunId) -> None:
        self.run = run

    def resume(self, terms: Terms | None = None) -> RunState:
        request = resume.Request(
            run=self.run,
            folder=self.repo.path,
            environment=self.environment,
            terms=terms or Terms(),
        )
        return resume.resume(
            request, self.doors(), on_record=self.records.append, began=lambda run: None
        )

    def place(self) -> answer.Place:
        return answer.Place(
            doors=self.opened(),
            run=self.run,
            folder=self.repo.path,
            environment=self.environment,
        )

    def answer(self, gate: str, text: str, *, refused: bool = False) -> str:
        return answer.answer(self.place(), gate, Reply(text=text, refused=refused))

    def asks(self, gate: str) -> bool:
        """Whether a question is open, as another process sees it."""
        return bool(self.run) and gate in answer.open_questions(self.place())

    def in_background(self, terms: Terms | None = None) -> Background:
        return Background(self, terms)

    def all_records(self) -> list[Record]:
        """Every record of the run, from Git and the journal."""
        if not self.git:
            return self.records
        seen = reading.view(self.opened(), self.run, self.directory())
        sealed = reading.records(self.opened(), seen.course.meta)
        return [*sealed, *(entry.record for entry in seen.counted)]

    def seen_state(self) -> RunState:
        """The state as another process sees it."""
        return reading.view(self.opened(), self.run, self.directory()).state

    def events(self, kind: type) -> list[Record]:
        return [record for record in self.all_records() if isinstance(record.event, kind)]

    def finished(self, visit: str) -> NodeFinished:
        """What is on record of a visit's end."""
        ends = [r for r in self.events(NodeFinished) if str(r.position) == visit]
        assert len(ends) == 1, visit
        assert isinstance(ends[0].event, NodeFinished)
        return ends[0].event

    def path(self) -> str:
        """The nodes entered in order: ``start a*3 s{a c / b} exit``."""
        return path_of(self.all_records())

    def reason(self) -> str:
        ends = [record.event for record in self.events(RunFinished)]
        return ends[-1].reason if ends and isinstance(ends[-1], RunFinished) else ""

    def branch_ref(self, branch: str) -> str:
        return f"refs/fabro/parallel/{self.run}/{branch}"

    def show(self, revision: str) -> str:
        """A file of a commit: ``show("fabro/run/RUN:f")``."""
        return self.repo.git("show", revision.replace("RUN", self.run))


class Background:
    """A run that is driven in a thread of its own, while the test does something to it."""

    def __init__(self, stage: Stage, terms: Terms | None) -> None:
        self._stage = stage
        self._ended: list[RunState | BaseException] = []
        self._thread = threading.Thread(target=self._drive, args=(terms,))
        self._thread.start()

    def _drive(self, terms: Terms | None) -> None:
        try:
            self._ended.append(self._stage.begin(terms=terms))
        except BaseException as exc:  # noqa: BLE001 - raised again where the test waits for it
            self._ended.append(exc)

    def until(self, seen: Callable[[Record], bool]) -> None:
        """Returns once a record is there, or fails if the run ends without it."""
        self.until_holds(lambda: any(seen(record) for record in list(self._stage.records)))

    def until_holds(self, holds: Callable[[], bool]) -> None:
        while not holds():
            assert self._thread.is_alive() or holds(), "the run has ended"
            self._thread.join(0.005)

    def end(self) -> RunState:
        self._thread.join()
        ended = self._ended[0]
        if isinstance(ended, BaseException):
            raise ended
        return ended


def started(node: str) -> Callable[[Record], bool]:
    """Whether a record is the start of a node."""
    return lambda record: (
        isinstance(record.event, NodeStarted)
        and record.position is not None
        and record.position.node == node
    )


def stage(
    folder: Path,
    shorthand: str = "",
    *,
    source: str = "",
    settings: str = "",
    git: bool = True,
) -> Stage:
    """A repository, or a plain folder, with a workflow given in shorthand or as it is."""
    path = folder / "stage"
    path.mkdir()
    said: dict[str, list[str]] = {}
    if shorthand:
        source, said = source_of(shorthand)
    answers = folder / "answers"
    answers.mkdir()
    for node, texts in said.items():
        for number, text in enumerate(texts, 1):
            (answers / f"{node}.{number}").write_text(text)
    (folder / "agent").write_text(AGENT.replace("ANSWERS", str(answers)))
    agent = f'[agent]\ncommand = ["sh", "{folder / "agent"}"]\n'
    repo = GitRepo(path)
    repo.write({"w.fabro": source, "run.toml": settings + agent})
    if git:
        repo.git("init", "-q", "-b", "main")
        repo.commit({"README": "hello\n"})
    return Stage(repo, git=git)


def path_of(records: Sequence[Record]) -> str:
    """The nodes of each line in the order in which they were entered, branches in file order."""
    lines: dict[str | None, dict[str, tuple[str, int]]] = {}
    plans: dict[str, list[str]] = {}
    for record in records:
        position, event = record.position, record.event
        if position is None:
            continue
        if isinstance(event, NodeStarted):
            lines.setdefault(position.branch, {})[str(position)] = position.node, position.attempt
        elif isinstance(event, ParallelStarted):
            plans[str(position)] = [plan.id for plan in event.branches if not plan.skipped]

    def told(branch: str | None) -> str:
        words = []
        for visit, (node, attempts) in lines.get(branch, {}).items():
            word = node if attempts == 1 else f"{node}*{attempts}"
            if visit in plans:
                inner = " / ".join(told(f"{visit}/{name}") for name in plans[visit])
                word += f"{{{inner}}}"
            words.append(word)
        return " ".join(words)

    return told(None)


def check(stage: Stage) -> None:
    """What holds of every run: the fold, the objects, the links and trailers of its commits."""
    _check_fold(stage)
    _check_commits(stage, None, f"fabro/run/{stage.run}", "main")
    for record in stage.events(ParallelStarted):
        assert isinstance(record.event, ParallelStarted)
        for plan in record.event.branches:
            branch = f"{record.position}/{plan.id}"
            ref = stage.branch_ref(branch)
            if stage.repo.git("for-each-ref", ref):
                _check_commits(stage, branch, ref, str(record.event.base_sha))
    stage.repo.fsck()


def _check_fold(stage: Stage) -> None:
    """The fold of all records equals the stored state, byte for byte, at every meta commit."""
    doors = stage.opened()
    tip = reading.tips_of(doors, stage.run).meta_tip
    assert tip is not None
    state = RunState()
    for meta in reading.chain(doors, tip):
        state = engine.replay(reading.records_at(doors, meta), state)
        stored = doors.objects.blob_at(meta, layout.CHECKPOINT_JSON)
        assert codec.document(codec.state_to_json(state)) == stored


def _check_commits(stage: Stage, branch: str | None, ref: str, base: str) -> None:
    """Each finished node has its commit, whose trailers git itself reads as they must be."""
    repo, run = stage.repo, stage.run
    wanted = _expected_trailers(stage, branch)
    commits = repo.git("rev-list", "--first-parent", "--reverse", ref, f"^{base}").split()
    chain = repo.git("rev-list", "--first-parent", f"fabro/meta/{run}").split()[::-1]
    found, links = [], []
    for commit in commits:
        message = repo.git_bytes("log", "-1", "--format=%B", commit)
        parsed = repo.git("interpret-trailers", "--parse", stdin=message).splitlines()
        trailers = dict(line.split(": ", 1) for line in parsed)
        links.append(chain.index(trailers.pop(layout.TRAILER_CHECKPOINT)))
        found.append((message.decode().split("\n")[0], trailers))
    assert found == wanted
    assert links == sorted(set(links))


def _expected_trailers(stage: Stage, branch: str | None) -> list[tuple[str, dict[str, str]]]:
    """Subject and trailers of a line's commits, as its records say."""
    wanted, completed = [], 0
    for record in stage.events(NodeFinished):
        position, event = record.position, record.event
        assert position is not None
        assert isinstance(event, NodeFinished)
        if position.branch != branch or event.handler == "exit":
            continue
        restarted = event.next is not None and event.next.loop_restart
        completed = 0 if restarted else completed + 1
        if event.handler == "start":
            continue
        trailers = {
            layout.TRAILER_RUN: stage.run,
            layout.TRAILER_COMPLETED: str(completed),
            layout.TRAILER_VISIT: str(position.visit),
        }
        if branch is None:
            trailers[layout.TRAILER_ORDINAL] = str(len(wanted) + 1)
        else:
            trailers[layout.TRAILER_BRANCH] = branch
        subject = f"fabro({stage.run}): {position.node} ({event.outcome.status})"
        wanted.append((subject, trailers))
    return wanted
