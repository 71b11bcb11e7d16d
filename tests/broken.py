"""Records that are broken in one way each, made with plain git on top of a real run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from git_fabro.checkpoint import codec, layout, message
from git_fabro.checkpoint.model import RunId
from git_fabro.workflow.records import Record, RunNotice
from git_fabro.workflow.state import RunState
from tests.conftest import GitRepo

TOKEN = "ghp_" + "a1B2" * 9
#: A name that git takes for a ref, and a terminal for an order to write backwards.
REVERSED = "01JKXYZ\u202e0000000000000000"
ABSENT = "de" * 20


@dataclass(frozen=True, slots=True)
class Scene:
    """A repository with a run that has ended, and one more to take from."""

    repo: GitRepo
    run: str
    other: str

    @property
    def run_ref(self) -> str:
        return layout.run_ref(RunId(self.run))

    @property
    def meta_ref(self) -> str:
        return layout.meta_ref(RunId(self.run))

    def tip(self, ref: str) -> str:
        return self.repo.git("rev-parse", ref)

    def tree(self, base: str, files: Mapping[str, bytes | None]) -> str:
        """The tree of a commit with some files changed, or gone."""
        index = self.repo.path / ".git" / "broken-index"
        environment = {**os.environ, "GIT_INDEX_FILE": str(index)}

        def git(*args: str) -> str:
            done = subprocess.run(
                ["git", *args], cwd=self.repo.path, env=environment, capture_output=True, check=True
            )
            return done.stdout.decode().strip()

        git("read-tree", base)
        for path, data in files.items():
            if data is None:
                git("rm", "-q", "--cached", path)
                continue
            blob = self.repo.git("hash-object", "-w", "--stdin", stdin=data)
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        made = git("write-tree")
        index.unlink()
        return made

    def commit(self, tree: str, text: str, *parents: str) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        return self.repo.git("commit-tree", tree, *named, stdin=text.encode())

    def checkpoint(self, meta: str, *, node: str = "build", tree: str | None = None) -> str:
        """A run commit on top of the branch that names a meta commit."""
        text = message.checkpoint_message(
            message.CheckpointTrailers(
                run=self.run,
                node=node,
                status="success",
                completed=4,
                checkpoint=meta,
                visit=1,
                ordinal=3,
                branch=None,
            )
        )
        tip = self.tip(self.run_ref)
        return self.commit(tree or self.tip(f"{tip}^{{tree}}"), text, tip)

    def state(self) -> RunState:
        data = self.repo.git_bytes("cat-file", "blob", f"{self.meta_ref}:checkpoint.json")
        return codec.state_from_json(codec.parse_json(data, "checkpoint.json"))

    def meta(self, files: Mapping[str, bytes | None], *, seq: int | None = None) -> str:
        """A meta commit on top of the branch: a notice more, and these files instead of its own."""
        after = self.state().seq + 1
        state = replace(self.state(), seq=after)
        whole: dict[str, bytes | None] = {
            layout.RECORDS: notice(after),
            layout.CHECKPOINT_JSON: codec.StateWriter().document(state),
            **files,
        }
        tree = self.tree(self.meta_ref, whole)
        return self.meta_on(tree, seq=after if seq is None else seq)

    def meta_on(self, tree: str, *, seq: int) -> str:
        text = message.meta_message("records", run=self.run, seq=seq, status=self.state().status)
        return self.commit(tree, text, self.tip(self.meta_ref))

    def raw_tree(self, *entries: tuple[str, bytes, str]) -> str:
        """A tree with entries as they are given: mode, name, object."""
        data = b"".join(
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries
        )
        return self.repo.git(
            "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=data
        )

    def endless(self, base: str) -> str:
        """The tree of a commit and, below ``zz``, 10^25 paths that are 26 objects."""
        tree = self.raw_tree(("100644", b"f", self.blob(b"x")))
        for _ in range(25):
            tree = self.raw_tree(*(("40000", b"d%d" % number, tree) for number in range(10)))
        own = self.repo.git("ls-tree", base)
        return self.repo.git("mktree", stdin=f"{own}\n040000 tree {tree}\tzz\n".encode())

    def endless_run(self) -> str:
        """The tip of the run branch with such a tree."""
        text = self.repo.git("log", "-1", "--format=%B", self.run_ref)
        return self.commit(self.endless(self.run_ref), text, self.tip(f"{self.run_ref}^"))

    def blob(self, data: bytes) -> str:
        return self.repo.git("hash-object", "-w", "--stdin", stdin=data)


def notice(*numbers: int) -> bytes:
    """Records that change nothing but how many there are."""
    event = RunNotice(level="info", code="test", message="said")
    records = (Record(seq=number, at="2099-01-01T00:00:00.000Z", event=event) for number in numbers)
    return b"".join(codec.record_line(record) for record in records)


@dataclass(frozen=True, slots=True)
class Bad:
    """One way to break a record: refs to new values ("" deletes), the rule and what it says.

    ``is_local`` is whether a repository can hold it, so that fsck finds it there.
    """

    name: str
    make: Callable[[Scene], dict[str, str]]
    rule: str
    says: str
    is_local: bool = True


def _forged(scene: Scene) -> dict[str, str]:
    return {scene.run_ref: scene.checkpoint("1" * 40)}


def _of_another(scene: Scene) -> dict[str, str]:
    theirs = scene.repo.git("log", "-1", "--grep=checkpoint build", "--format=%H", scene.other)
    return {scene.run_ref: scene.checkpoint(theirs)}


def _rewritten(scene: Scene) -> dict[str, str]:
    tip = scene.tip(scene.meta_ref)
    text = scene.repo.git("log", "-1", "--format=%B", tip).strip() + "\n"
    rewritten = text.replace("finalize run", "finalize it")
    return {
        scene.meta_ref: scene.commit(scene.tip(f"{tip}^{{tree}}"), rewritten, scene.tip(f"{tip}~1"))
    }


def _gap(scene: Scene) -> dict[str, str]:
    after = scene.state().seq + 2
    return {scene.meta_ref: scene.meta({layout.RECORDS: notice(after)}, seq=after)}


def _no_fold(scene: Scene) -> dict[str, str]:
    line = replace(scene.state().line, completed_nodes=("start", "plan"))
    state = replace(scene.state(), seq=scene.state().seq + 1, line=line)
    return {
        scene.meta_ref: scene.meta({layout.CHECKPOINT_JSON: codec.StateWriter().document(state)})
    }


def _dot_git(scene: Scene) -> dict[str, str]:
    hidden = scene.raw_tree(("100755", b"config", scene.blob(b"[core]\n")))
    kept = scene.repo.git("ls-tree", scene.run_ref).splitlines()
    entries = [("40000", b".git", hidden)]
    for row in kept:
        head, _, name = row.partition("\t")
        mode, _, oid = head.split()
        entries.append((mode.lstrip("0"), name.encode(), oid))
    tree = scene.raw_tree(*entries)
    return {scene.run_ref: scene.commit(tree, "by hand\n", scene.tip(scene.run_ref))}


def _reversed(scene: Scene) -> dict[str, str]:
    return {layout.RUN_PREFIX + REVERSED: scene.tip(scene.run_ref)}


def _large(scene: Scene) -> dict[str, str]:
    data = b'{"schema":1,"a":[' + b"1," * (10 * 1024 * 1024) + b"1]}\n"
    return {scene.meta_ref: scene.meta({layout.CHECKPOINT_JSON: data})}


def _secret(scene: Scene) -> dict[str, str]:
    tree = scene.tree(scene.run_ref, {"deploy/token": f"token: {TOKEN}\n".encode()})
    return {scene.run_ref: scene.commit(tree, "by hand\n", scene.tip(scene.run_ref))}


def _rewound(scene: Scene) -> dict[str, str]:
    run = scene.tip(f"{scene.run_ref}~1")
    named = scene.repo.git("log", "-1", "--format=%(trailers:key=Fabro-Checkpoint,valueonly)", run)
    return {scene.run_ref: run, scene.meta_ref: named.strip()}


def _deleted(scene: Scene) -> dict[str, str]:
    return {scene.meta_ref: "", scene.run_ref: ""}


def _note_astray(scene: Scene) -> dict[str, str]:
    text = f"of nothing\n\nFabro-Run: {scene.run}\n"
    rows = scene.repo.git("ls-tree", layout.NOTES_REF).splitlines()
    rows.append(f"100644 blob {scene.blob(text.encode())}\t{ABSENT}")
    tree = scene.repo.git("mktree", stdin=("\n".join(rows) + "\n").encode())
    return {layout.NOTES_REF: scene.commit(tree, "notes\n", scene.tip(layout.NOTES_REF))}


TWELVE = (
    Bad("forged trailer", _forged, "link", "which is not there"),
    Bad("trailer of another run", _of_another, "link", "is not on the chain of this run"),
    Bad("rewritten meta chain", _rewritten, "append-only", "leaves commits behind", is_local=False),
    Bad("records with a gap", _gap, "records", "follows"),
    Bad("state unequal to fold", _no_fold, "fold", "completed_nodes is not what the records"),
    Bad("tree entry .git", _dot_git, "tree", ".git: a name of git's own folder"),
    Bad(
        "control character in a name",
        _reversed,
        "ref-name",
        "no printable character",
        is_local=False,
    ),
    Bad("JSON of 20 MB", _large, "size", "more than 16777216"),
    Bad("secret in a blob", _secret, "secret", "deploy/token: holds a secret"),
    Bad("rewind", _rewound, "rewind", "has not the option fabro.rewind", is_local=False),
    Bad("deletion", _deleted, "delete", "has not the option fabro.prune", is_local=False),
    Bad("note on a missing object", _note_astray, "note", "an object that is not there"),
)


def refspecs(updates: Mapping[str, str]) -> Sequence[str]:
    return [f"+{new}:{ref}" if new else f":{ref}" for ref, new in updates.items()]
