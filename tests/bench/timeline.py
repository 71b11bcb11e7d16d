"""What looking at a long history costs beside git, in processes of their own and in this one.

One run of 10,000 checkpoints, packed as a driver packs it: ``log`` whole, its first row, its last
twenty rows; ``rewind`` and ``fork`` there beside the same of 100 checkpoints; 700 runs: ``list``,
with and without what an earlier ``list`` has kept. Both sides pay for their start; ours is a Python
program's. *In process* is the same command called in this process, where all is imported.
"""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import git_fabro
from git_fabro import lease
from git_fabro.checkpoint import codec, layout, message, note
from git_fabro.checkpoint.message import CheckpointTrailers
from git_fabro.checkpoint.model import Commit, Identity, Oid, RunId, TreeEntry
from git_fabro.cli import start
from git_fabro.doors import fresh_ulid
from git_fabro.git import notes, packing
from git_fabro.git.discover import open_repository
from git_fabro.workflow.graph import NodeId
from git_fabro.workflow.records import Next, NodeFinished, Record
from git_fabro.workflow.state import SUCCESS, Outcome, Position
from tests.bench.pairs import Row, compare, timed
from tests.scratch import NODES, Scratch, begin

_WHO = Identity("A. Tester", "tester@example.com")
_WHEN = 1_704_067_200
#: How many checkpoints a run of the list has, and how many runs there are.
_RUNS = 700
_FEW, _FEWER = 1_000, 100
#: What is typed: the program as it is installed.
_PROGRAM = (str(Path(sys.executable).with_name("git-fabro")),)
#: How far back is gone, at every length.
_TARGET = "@-10"


class Long(NamedTuple):
    """A repository with one run of many checkpoints."""

    folder: Path
    run: RunId
    checkpoints: int


def measure(pairs: int, checkpoints: int = 10_000) -> list[Row]:
    """Ratios and milliseconds."""
    # Bytecode is there, as after an installation, whatever PYTHONDONTWRITEBYTECODE says here.
    compileall.compile_dir(Path(git_fabro.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ |= _environment(home)
        made = [
            Long(home / str(n), build(home / str(n), n), n) for n in (checkpoints, _FEW, _FEWER)
        ]
        return [
            *_log(made[0], made[1], pairs),
            *_moves(made[0], made[2], pairs),
            *_list(home, pairs),
        ]


def _log(whole: Long, other: Long, pairs: int) -> list[Row]:
    long, run, checkpoints = whole
    tip = layout.run_ref(run)
    peer = ("git", "log", "--format=%H %s %(trailers)", tip)
    dulwich = (sys.executable, "-c", "import dulwich.objects")
    return [
        compare(
            f"timeline/log of {checkpoints}, whole",
            _process(long, *_PROGRAM, "log", run),
            _process(long, *peer),
            peer="git log --format='%H %s %(trailers)'",
            pairs=pairs,
        ),
        compare(
            f"timeline/log of {checkpoints}, whole, --oneline",
            _process(long, *_PROGRAM, "log", "--oneline", run),
            _process(long, *peer),
            peer="git log --format='%H %s %(trailers)'",
            pairs=pairs,
        ),
        compare(
            f"timeline/log of {checkpoints}, whole, in process",
            _inside(long, "log", run),
            _process(long, *peer),
            peer="git log --format='%H %s %(trailers)'",
            pairs=pairs,
        ),
        _first_row(long, (*_PROGRAM, "log", run), dulwich, pairs),
        compare(
            f"timeline/log -n 20 of {checkpoints}",
            _process(long, *_PROGRAM, "log", "-n", "20", run),
            _process(other.folder, *_PROGRAM, "log", "-n", "20", other.run),
            peer=f"the same of {other.checkpoints}",
            pairs=pairs,
        ),
    ]


def _moves(long: Long, short: Long, pairs: int) -> list[Row]:
    refs = [_refs(one) for one in (long, short)]

    def as_before() -> None:
        for one, lines in zip((long, short), refs, strict=True):
            _git(one.folder, "update-ref", "--stdin", stdin=lines)

    return [
        compare(
            f"timeline/{command} of {long.checkpoints} to {_TARGET}",
            _process(long.folder, *_PROGRAM, command, long.run, _TARGET),
            _process(short.folder, *_PROGRAM, command, short.run, _TARGET),
            peer=f"the same of {short.checkpoints}",
            pairs=pairs,
            before=as_before,
        )
        for command in ("rewind", "fork")
    ]


def _refs(one: Long) -> bytes:
    """What puts both branches of a run back to where they stand now."""
    names = (layout.run_ref(one.run), layout.meta_ref(one.run))
    return "".join(f"update {ref} {_git(one.folder, 'rev-parse', ref)}" for ref in names).encode()


def _first_row(folder: Path, ours: tuple[str, ...], peer: tuple[str, ...], pairs: int) -> Row:
    return compare(
        "timeline/first row",
        lambda: _until_first_row(folder, ours),
        _process(folder, *peer),
        peer="python -c 'import dulwich.objects'",
        pairs=pairs,
    )


def _until_first_row(folder: Path, argv: tuple[str, ...]) -> None:
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    # The headings come with it.
    process.stdout.readline()
    process.stdout.readline()
    process.kill()
    process.stdout.close()
    process.wait()


def _list(home: Path, pairs: int) -> list[Row]:
    folder = home / "many"
    build_many(folder, _RUNS)
    cache = home / "cache"
    ours = _process(folder, *_PROGRAM, "list", "-a")
    ours()

    def forget() -> None:
        subprocess.run(["rm", "-rf", str(cache)], check=True)

    peer = "git for-each-ref and git cat-file --batch of the tips"
    return [
        compare(f"timeline/list of {_RUNS}", ours, lambda: _tips(folder), peer=peer, pairs=pairs),
        compare(
            f"timeline/list of {_RUNS}, never read",
            ours,
            lambda: _tips(folder),
            peer=peer,
            pairs=pairs,
            before=forget,
        ),
        compare(
            f"timeline/list of {_RUNS}, in process",
            _inside(folder, "list", "-a"),
            lambda: _tips(folder),
            peer=peer,
            pairs=pairs,
        ),
        {
            "name": "timeline/python -c pass",
            "value": timed(_process(folder, sys.executable, "-c", "pass")),
            "unit": "ms",
        },
    ]


def _tips(folder: Path) -> None:
    listed = subprocess.run(
        ["git", "for-each-ref", "--format=%(objectname)", "refs/heads/fabro/"],
        cwd=folder,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(
        ["git", "cat-file", "--batch"], cwd=folder, input=listed, capture_output=True, check=True
    )


def _process(folder: Path, *argv: str) -> Callable[[], object]:
    def work() -> None:
        done = subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"{argv}: {done.stderr.decode()}")

    return work


def _inside(folder: Path, *argv: str) -> Callable[[], object]:
    """A command called here; it has been called before it is measured."""

    def work() -> None:
        before, out = Path.cwd(), os.dup(1)
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
        try:
            status = start.main(list(argv))
            sys.stdout.flush()
        finally:
            os.dup2(out, 1)
            os.close(out)
            os.chdir(before)
        if status:
            raise SystemExit(f"{argv}: exit status {status}")

    work()
    return work


def build(path: Path, checkpoints: int) -> RunId:
    """A repository with one run of so many checkpoints, notes and all, packed."""
    scratch = _begin(path)
    objects, run = scratch.doors.objects, scratch.log.run
    assert scratch.log.meta_tip is not None
    meta, tip = scratch.log.meta_tip, scratch.tip.oid
    files = objects.read_tree(objects.tree_of(meta))
    trees = [objects.tree_of(tip), _other_tree(path)]
    texts: dict[Oid, str | None] = {}
    for number in range(1, checkpoints + 1):
        record = _record(number)
        assert record.position is not None
        data = codec.record_line(record)
        entries = files | {b"records.jsonl": TreeEntry(0o100644, objects.write_new_blob(data))}
        subject = f"checkpoint {record.position} (success)"
        text = message.meta_message(subject, run=run, seq=number + 2, status="running")
        meta = objects.write_commit(_commit(objects.write_new_tree(entries), meta, text, number))
        text = message.checkpoint_message(_trailers(run, record.position, number, meta))
        # An eighth of the nodes change something.
        tree = trees[(number // 8) % 2]
        tip = objects.write_commit(_commit(tree, tip, text, number))
        texts |= {Oid(name): one for name, one in note.notes_of(run, record, tip, meta).items()}
    notes.write_notes(objects, scratch.doors.refs, texts, by=_WHO, when=_WHEN)
    nobody = lease.commit_for(objects, None, scratch.log.lease, by=_WHO, when=_WHEN)
    scratch.close()
    _git(path, "update-ref", layout.lease_ref(run), nobody)
    _git(path, "update-ref", layout.run_ref(run), tip)
    _git(path, "update-ref", layout.meta_ref(run), meta)
    packing.pack_loose(open_repository(path), layout.refs_of(run), base=None)
    return run


def build_many(path: Path, runs: int) -> None:
    """A repository with so many runs that have ended, one checkpoint each, packed."""
    scratch = _begin(path)
    scratch.visit()
    log, objects = scratch.log, scratch.doors.objects
    assert log.meta_tip is not None
    assert log.run_tip is not None
    files = objects.read_tree(objects.tree_of(log.meta_tip))
    base = objects.parents(log.run_tip)[0]
    made = json.loads(objects.blob_at(log.meta_tip, layout.RUN_JSON) or b"")
    state = json.loads(objects.blob_at(log.meta_tip, layout.CHECKPOINT_JSON) or b"")
    state["status"] = "success"
    position = Position(node=NODES[0], visit=1)
    refs = []
    for number in range(runs):
        run = RunId(fresh_ulid())
        found = {layout.RUN_JSON: made | {"run_id": run}, layout.CHECKPOINT_JSON: state}
        entries = files | {
            name.encode(): TreeEntry(0o100644, objects.write_blob(codec.document(value)))
            for name, value in found.items()
        }
        text = message.meta_message("checkpoint plan@1 (success)", run=run, seq=9, status="success")
        meta = objects.write_commit(_commit(objects.write_tree(entries), None, text, number))
        text = message.checkpoint_message(_trailers(run, position, 1, meta))
        tip = objects.write_commit(_commit(objects.tree_of(base), base, text, number))
        refs += [f"create {layout.run_ref(run)} {tip}", f"create {layout.meta_ref(run)} {meta}"]
    scratch.close()
    # It is being driven, for all that its refs say.
    refs += [f"delete {ref}" for ref in layout.refs_of(log.run)[:2]]
    _git(path, "update-ref", "--stdin", stdin="\n".join([*refs, ""]).encode())
    _git(path, "pack-refs", "--all")
    _git(path, "repack", "-adq")
    _git(path, "prune-packed", "-q")


def _begin(path: Path) -> Scratch:
    path.mkdir()
    _git(path, "init", "-q", "-b", "main")
    (path / "file").write_text("content\n")
    _git(path, "add", "-A")
    _git(path, "commit", "-q", "-m", "base")
    return begin(path, path.parent / f"{path.name}-runs")


def _other_tree(path: Path) -> Oid:
    (path / "file").write_text("other content\n")
    _git(path, "add", "-A")
    return Oid(_git(path, "write-tree").strip())


def _record(number: int) -> Record:
    node = NODES[number % len(NODES)]
    event = NodeFinished(
        handler="command",
        outcome=Outcome(status=SUCCESS, context_updates={"command.output": f"line {number}\n"}),
        duration_ms=number,
        next=Next(node=NodeId(NODES[(number + 1) % len(NODES)]), edge=0),
        reason="weight",
    )
    position = Position(node=node, visit=number // len(NODES) + 1, attempt=1)
    return Record(seq=number + 2, at="2024-01-01T00:00:00.000Z", event=event, position=position)


def _trailers(run: RunId, position: Position, number: int, meta: Oid) -> CheckpointTrailers:
    return CheckpointTrailers(
        run=run,
        node=position.node,
        status=SUCCESS,
        completed=number + 1,
        checkpoint=meta,
        visit=position.visit,
        ordinal=number,
        branch=None,
    )


def _commit(tree: Oid, parent: Oid | None, text: str, number: int) -> Commit:
    return Commit(
        tree=tree,
        parents=() if parent is None else (parent,),
        author=_WHO,
        committer=_WHO,
        when=_WHEN + number,
        message=text,
    )


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_STATE_HOME": str(home / "state"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": _WHO.name,
        "GIT_AUTHOR_EMAIL": _WHO.email,
        "GIT_COMMITTER_NAME": _WHO.name,
        "GIT_COMMITTER_EMAIL": _WHO.email,
    }


def _git(path: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", *args], cwd=path, input=stdin, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"git {args}: {done.stderr.decode()}")
    return os.fsdecode(done.stdout)
