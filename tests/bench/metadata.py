"""What a metadata commit costs, from the 10th to the 10,000th checkpoint of one run.

A *metadata commit* is ``MetaTree.set_trace`` and ``RunLog.commit_meta``: the blobs of the traces,
of the state and of the records, the three trees, the commit. A *save* is all that follows a
snapshot: the record in the journal (synced), traces read back, metadata commit, run commit, the
transaction of three refs, a record of it; notes every two seconds. The nodes are commands that
print a line each. Processor time stands beside the wall's.

On ext4 each new file costs 0.3 ms instead of 0.01 for about a minute after a packing has removed
twelve thousand, which then is most of the figure; with TMPDIR on a tmpfs it is our own work alone.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from git_fabro.checkpoint.model import Oid
from git_fabro.metatree import MetaTree
from git_fabro.store import RunLog
from tests.bench.pairs import Row, timed
from tests.scratch import NODES, Scratch, begin, traces

#: Checkpoints of one side in a pair; those before the first pair.
_BLOCK, _WARM = 20, 50
_HEAD, _TAIL = slice(9, 1009), slice(-1000, None)


@dataclass(slots=True)
class Watch:
    """Milliseconds of each metadata commit, by the wall and by the processor."""

    walls: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @contextmanager
    def adding(self) -> Iterator[None]:
        wall, processor = time.perf_counter(), time.thread_time()
        yield
        self.walls[-1] += (time.perf_counter() - wall) * 1000
        self.processor[-1] += (time.thread_time() - processor) * 1000

    def begin(self) -> None:
        self.walls.append(0.0)
        self.processor.append(0.0)


_WATCH = Watch()


class TimedTree(MetaTree):
    def set_trace(self, node: str, files: Mapping[str, bytes]) -> None:
        _WATCH.begin()
        with _WATCH.adding():
            super().set_trace(node, files)


class TimedLog(RunLog):
    __slots__ = ()

    def commit_meta(
        self, subject: str, *, commit: Oid | None = None, ordinal: int | None = None
    ) -> Oid:
        with _WATCH.adding():
            return RunLog.commit_meta(self, subject, commit=commit, ordinal=ordinal)


def measure(pairs: int, checkpoints: int = 10_000) -> list[Row]:
    """Milliseconds of both, growth, objects, bytes; and beside git doing the same."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ |= _environment(home)
        return [
            *_growth(home, checkpoints),
            *_objects(home),
            _beside_git(home, pairs),
        ]


def _growth(home: Path, checkpoints: int) -> list[Row]:
    run = _timed_run(home / "growth")
    saves: list[float] = []
    loose_kib = 0
    for number in range(1, checkpoints + 1):
        visit = run.start()
        saves.append(timed(lambda visit=visit: run.save(visit)))
        if number == min(999, checkpoints):
            loose_kib = _counts(home / "growth")["size"]
    walls, processor = _WATCH.walls[-checkpoints:], _WATCH.processor[-checkpoints:]
    run.log.pack()
    _git(home / "growth", "fsck", "--strict", "--no-dangling", "--no-progress")
    packed = _counts(home / "growth")
    run.close()
    size = f"metadata@{checkpoints}"
    return [
        *_times(f"{size}/commit", walls),
        *_times(f"{size}/commit, processor", processor),
        *_times(f"{size}/save", saves),
        _fact(f"{size}/loose", loose_kib * 1024 / min(999, checkpoints), "bytes a checkpoint"),
        _fact(f"{size}/packed", packed["size-pack"] * 1024 / checkpoints, "bytes a checkpoint"),
        _fact(f"{size}/packs", packed["packs"], "packs"),
        _fact(f"{size}/left loose", packed["count"], "objects"),
    ]


def _times(name: str, spent: list[float]) -> list[Row]:
    head, tail = statistics.median(spent[_HEAD]), statistics.median(spent[_TAIL])
    return [
        _fact(f"{name}, median", statistics.median(spent), "ms"),
        _fact(f"{name}, 10 to 1,009", head, "ms"),
        _fact(f"{name}, last 1,000", tail, "ms"),
        _fact(f"{name}, last to first", tail / head, "times"),
    ]


def _objects(home: Path) -> list[Row]:
    """What one checkpoint adds to the loose objects, by what its node does."""
    path = home / "objects"
    run = _timed_run(path)
    trees = [_tree(path, number) for number in range(2)]
    # The first checkpoint pays for what all share: the empty file, a good status.
    run.visit(output="")
    added: dict[str, list[list[str]]] = {}
    for number in range(1, 6 * len(NODES)):
        age = "first visit" if number < len(NODES) else "later visit"
        does = ("quiet", "prints", "prints and changes")[number % 3]
        output, tree = ("" if does == "quiet" else None), trees[number % 2]
        before = _loose(path)
        run.visit(output=output, tree=tree if does == "prints and changes" else None)
        added.setdefault(f"{does}, {age}", []).append(_kinds(path, run, before))
    run.close()
    most = {name: max(one, key=len) for name, one in sorted(added.items())}
    return [
        _fact(f"metadata/{name}", len(one), "loose objects at most") | {"which": sorted(one)}
        for name, one in most.items()
    ]


def _kinds(path: Path, run: Scratch, before: set[str]) -> list[str]:
    """The paths, in the metadata tree, of the objects that are new; the meta commit is ``.``."""
    meta = run.log.meta_tip
    assert meta is not None
    added = _loose(path) - before
    listed = _git(path, "ls-tree", "-rt", "--format=%(objectname) %(path)", meta)
    names = dict(row.split(" ", 1) for row in listed.splitlines())
    names[_git(path, "rev-parse", f"{meta}^{{tree}}").strip()] = "/"
    names[meta] = "."
    return [names[oid] for oid in added if oid in names]


def _beside_git(home: Path, pairs: int) -> Row:
    """The same tree and commit by a ``git fast-import`` for each; the trees must be equal."""
    run, theirs = _timed_run(home / "ours"), _repository(home / "theirs")
    _import(theirs, run, first=True)
    measured: list[tuple[float, float]] = []
    for _ in range(_WARM):
        run.visit()
        _import(theirs, run)
    for _ in range(max(pairs, 1)):
        ours, other = [], []
        for _ in range(_BLOCK):
            run.visit()
            ours.append(_WATCH.walls[-1])
            other.append(_import(theirs, run))
        measured.append((statistics.median(ours), statistics.median(other)))
    run.close()
    ratios = [one / other for one, other in measured]
    return {
        "name": f"metadata beside git, blocks of {_BLOCK}",
        "ratio": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "ours_ms": statistics.median(one for one, _ in measured),
        "peer_ms": statistics.median(other for _, other in measured),
        "peer": "git fast-import, one for each commit, its ref included",
        "pairs": len(measured),
    }


def _import(theirs: Path, run: Scratch, *, first: bool = False) -> float:
    """Gives git what our last metadata commit changed; milliseconds of the process alone."""
    assert run.log.meta_tip is not None
    objects, meta = run.doors.objects, run.log.meta_tip
    node = NODES[(run.count - 1) % len(NODES)]
    names = ["checkpoint.json", "records.jsonl"]
    if first:
        names += ["run.json", "start.json", "graph.fabro"]
    else:
        names += [f"nodes/{node}/{name}" for name in traces(node, "", 0)]
    rows = [b"feature done", b"commit refs/heads/meta", b"committer A <a@example.com> 1 +0000"]
    rows += [b"data 4", b"work"] + ([] if first else [b"from refs/heads/meta^0"])
    for name in names:
        data = objects.blob_at(meta, name)
        assert data is not None
        rows += [f"M 100644 inline {name}".encode(), b"data %d" % len(data), data]
    stream = b"\n".join([*rows, b"done", b""])
    spent = timed(lambda: _git(theirs, "fast-import", "--quiet", "--done", stdin=stream))
    tree = _git(theirs, "rev-parse", "refs/heads/meta^{tree}").strip()
    assert tree == objects.tree_of(meta), "git made another tree"
    return spent


def _timed_run(path: Path) -> Scratch:
    run = begin(_repository(path), path.parent / "runs")
    run.log.__class__ = TimedLog
    assert run.log.meta_tree is not None
    run.log.meta_tree.__class__ = TimedTree
    return run


def _repository(path: Path) -> Path:
    path.mkdir()
    _git(path, "init", "-q", "-b", "main")
    # Packing in the background would be measured, or not, as it happens to fall.
    _git(path, "config", "gc.autoDetach", "false")
    (path / "file").write_text("content\n")
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "base")
    return path


def _tree(path: Path, number: int) -> Oid:
    (path / "file").write_text(f"content {number}\n")
    _git(path, "add", "-A")
    return Oid(_git(path, "write-tree").strip())


def _loose(path: Path) -> set[str]:
    files = (path / ".git/objects").glob("??/*")
    return {file.parent.name + file.name for file in files}


def _counts(path: Path) -> dict[str, int]:
    rows = (row.partition(": ") for row in _git(path, "count-objects", "-v").splitlines())
    return {name: int(value) for name, _, value in rows}


def _fact(name: str, value: float, unit: str) -> Row:
    return {"name": name, "value": value, "unit": unit}


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A. Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.com",
        "GIT_COMMITTER_NAME": "A. Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.com",
    }


def _git(path: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", *args], cwd=path, input=stdin, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"git {args}: {done.stderr.decode()}")
    return os.fsdecode(done.stdout)
