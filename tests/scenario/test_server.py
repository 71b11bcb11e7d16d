"""A bare repository with our hook: what a push may do to the record of runs, with real git."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from git_fabro import hookfiles
from git_fabro.checkpoint import layout
from tests.broken import TWELVE, Bad, Scene, refspecs
from tests.conftest import GitRepo
from tests.scenario.test_places import fabro

TWO = """digraph Two { goal="ship it"
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan  [shape=parallelogram, script="echo planned > plan.txt"]
    build [shape=parallelogram, script="echo built > build.txt"]
    start -> plan -> build -> exit }
"""
FAN = """digraph Fan { start [shape=Mdiamond]; exit [shape=Msquare]
    split [shape=component]; join [shape=tripleoctagon]
    api [shape=parallelogram, script="echo a > a.txt"]
    ui [shape=parallelogram, script="echo u > u.txt"]
    start -> split; split -> api -> join; split -> ui -> join; join -> exit }
"""
ALL = ("refs/heads/*:refs/heads/*", "refs/fabro/parallel/*:refs/fabro/parallel/*")
NOTES = f"{layout.NOTES_REF}:{layout.NOTES_REF}"


@dataclass(frozen=True, slots=True)
class Server:
    """A bare repository that receives pushes through the hook."""

    bare: GitRepo

    @classmethod
    def make(cls, path: Path) -> Server:
        path.mkdir()
        bare = GitRepo(path)
        bare.git("init", "-q", "--bare", "-b", "main")
        bare.git("config", "receive.advertisePushOptions", "true")
        hook = path / "hooks" / "pre-receive"
        hook.write_text(hookfiles.shim("pre-receive"))
        hook.chmod(0o755)
        return cls(bare)

    def allow(self, *keys: str) -> None:
        for key in keys:
            self.bare.git("config", f"fabro.server.{key}", "true")

    def contents(self) -> tuple[str, list[str]]:
        """All refs, and all objects on the disk."""
        objects = self.bare.git("cat-file", "--batch-all-objects", "--batch-check", "--unordered")
        return self.bare.git("for-each-ref"), sorted(objects.splitlines())

    def push(self, repo: GitRepo, *specs: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
        """The status of ``git push``, and what the server said."""
        given = [word for option in options for word in ("-o", option)]
        done = subprocess.run(
            ["git", "push", "-q", *given, str(self.bare.path), *specs],
            cwd=repo.path,
            capture_output=True,
            text=True,
        )
        said = [
            row.removeprefix("remote: ").rstrip()
            for row in done.stderr.splitlines()
            if row.startswith("remote: ")
        ]
        return done.returncode, "\n".join(said)

    def takes(self, repo: GitRepo, *specs: str, options: tuple[str, ...] = ()) -> None:
        assert self.push(repo, *specs, options=options) == (0, "")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server.make(tmp_path / "server.git")


def run_in(repo: GitRepo, workflow: str, name: str = "two") -> str:
    """A run of a workflow, from its start to its end."""
    repo.commit({f"fabro/workflows/{name}/workflow.fabro": workflow})
    fabro(repo.path, "run", "-q", name)
    return newest(repo)


def newest(repo: GitRepo) -> str:
    return fabro(repo.path, "list", "-a", "-q").stdout.split("\n")[0]


@pytest.fixture
def scene(repo: GitRepo, server: Server, template: Path) -> Scene:
    """Two runs, and a server that has both."""
    made = template / "made"
    if not made.exists():
        run_in(repo, TWO)
        run_in(repo, TWO)
        server.takes(repo, *ALL, NOTES)
        shutil.copytree(repo.path.parent, made, ignore=shutil.ignore_patterns(".home"))
    for path in (repo.path, server.bare.path):
        shutil.rmtree(path)
        shutil.copytree(made / path.name, path)
    tips = repo.git("for-each-ref", "--format=%(refname)", layout.META_PREFIX).splitlines()
    other, run = (ref.removeprefix(layout.META_PREFIX) for ref in tips)
    return Scene(repo, run, layout.META_PREFIX + other)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves its repositories for the others, which begin with copies."""
    return tmp_path_factory.mktemp("template")


@pytest.mark.parametrize("bad", TWELVE, ids=lambda bad: bad.name)
def test_a_push_that_breaks_a_record_is_refused_and_leaves_nothing(
    scene: Scene, server: Server, bad: Bad
) -> None:
    updates = bad.make(scene)
    before = server.contents()

    began = time.perf_counter()
    status, said = server.push(scene.repo, *refspecs(updates))
    print(f"{bad.name}: refused in {time.perf_counter() - began:.2f} s")

    *refusals, hint = said.splitlines()
    told = next(row for row in refusals if row.endswith(f" [{bad.rule}]"))
    ref = next(iter(updates)).encode("ascii", "backslashreplace").decode()
    assert status == 1
    assert re.match(rf"fabro: refused {re.escape(ref)} [0-9a-f]{{12}}: ", told)
    assert bad.says in told
    assert all(row.startswith("fabro: refused ") for row in refusals)
    assert hint.startswith("hint: git ")
    assert said.isascii()
    assert server.contents() == before


def test_a_refusal_names_the_ref_the_commit_and_the_rule(scene: Scene, server: Server) -> None:
    forged = scene.checkpoint("1" * 40)

    said = server.push(scene.repo, f"{forged}:{scene.run_ref}")

    assert said == (
        1,
        f"""\
fabro: refused {scene.run_ref} {forged[:12]}: it names 111111111111, which is not there [link]
hint: git fabro fsck""",
    )


@pytest.mark.parametrize(
    ("first", "hint"),
    [
        ((), "git push REMOTE BRANCH, a branch of your own, and then git fabro sync"),
        (("main",), "git fabro sync"),
    ],
    ids=["an empty repository", "one with a branch"],
)
def test_a_run_branch_that_comes_alone_is_told_how_its_record_gets_there(
    scene: Scene, tmp_path: Path, first: tuple[str, ...], hint: str
) -> None:
    server = Server.make(tmp_path / "fresh.git")
    for branch in first:
        server.takes(scene.repo, branch)

    said = server.push(scene.repo, f"{scene.run_ref}:{scene.run_ref}")

    assert said[0] == 1
    assert said[1].endswith(f"the run has no metadata branch [link]\nhint: {hint}")


def test_one_bad_ref_refuses_the_whole_push(scene: Scene, server: Server) -> None:
    before = server.contents()
    scene.repo.commit({"more": "more\n"})

    status, _ = server.push(
        scene.repo, "main:refs/heads/more", f"{scene.checkpoint('1' * 40)}:{scene.run_ref}"
    )

    assert status == 1
    assert server.contents() == before


@pytest.mark.parametrize(
    ("options", "keys"),
    [((), ("allowRewind",)), (("fabro.rewind",), ()), (("fabro.prune",), ("allowRewind",))],
    ids=["not asked for", "not allowed", "another option"],
)
def test_a_rewind_takes_the_option_and_the_servers_word(
    scene: Scene, server: Server, options: tuple[str, ...], keys: tuple[str, ...]
) -> None:
    server.allow(*keys)
    fabro(scene.repo.path, "rewind", "-y", scene.run, "@1")
    back = (f"+{scene.meta_ref}", f"+{scene.run_ref}")

    status, said = server.push(scene.repo, *back, options=options)
    server.allow("allowRewind")
    server.takes(scene.repo, *back, options=("fabro.rewind",))

    assert status == 1
    assert [row.rpartition(" ")[2] for row in said.splitlines()[:2]] == [
        "[append-only]",
        "[rewind]",
    ]
    assert server.bare.git("rev-parse", scene.run_ref) == scene.tip(scene.run_ref)


def test_the_hint_of_a_refused_rewind_is_a_whole_command(scene: Scene, server: Server) -> None:
    fabro(scene.repo.path, "rewind", "-y", scene.run, "@1")
    tip = scene.repo.git("rev-parse", "--short=12", scene.run_ref)

    alone = server.push(scene.repo, f"+{scene.run_ref}")
    asked = server.push(scene.repo, f"+{scene.run_ref}", options=("fabro.rewind",))

    left = f"fabro: refused {scene.run_ref} {tip}: it leaves commits behind, "
    branches = f"fabro/run/{scene.run} fabro/meta/{scene.run}"
    assert alone == (
        1,
        f"""{left}and the push has not the option fabro.rewind [rewind]
hint: git push -f -o fabro.rewind REMOTE {branches}""",
    )
    assert asked == (
        1,
        f"""{left}which this server does not allow [rewind]
hint: git config fabro.server.allowRewind true, in the repository on the server""",
    )


def test_a_run_that_was_rewound_and_went_on_is_taken(scene: Scene, server: Server) -> None:
    server.allow("allowRewind")
    fabro(scene.repo.path, "rewind", "-y", scene.run, "@1")
    fabro(scene.repo.path, "resume", "-q", scene.run)

    server.takes(
        scene.repo, f"+{scene.meta_ref}", f"+{scene.run_ref}", NOTES, options=("fabro.rewind",)
    )


def test_an_option_gives_no_other_chain_a_pass(scene: Scene, server: Server) -> None:
    server.allow("allowRewind")

    status, said = server.push(
        scene.repo, f"+{scene.other}:{scene.meta_ref}", options=("fabro.rewind",)
    )

    assert status == 1
    assert "it is another chain than the one before [append-only]" in said
    assert said.endswith("\nhint: git fabro fsck")
    assert "[chain]" in said


def test_a_run_is_deleted_with_the_option_and_the_servers_word(
    scene: Scene, server: Server
) -> None:
    server.allow("allowDelete")
    gone = (f":{scene.meta_ref}", f":{scene.run_ref}")

    alone = server.push(scene.repo, gone[0], options=("fabro.prune",))
    server.takes(scene.repo, *gone, options=("fabro.prune",))

    assert alone[0] == 1
    assert "the run branch stays without its record [delete]" in alone[1]
    assert scene.run not in server.bare.git("for-each-ref")


def test_whole_runs_are_taken_a_fork_and_a_fan_out_too(scene: Scene, server: Server) -> None:
    repo = scene.repo
    fabro(repo.path, "fork", scene.run, "@1")
    fork = newest(repo)
    server.takes(repo, *ALL, NOTES)
    fabro(repo.path, "resume", "-q", fork)
    run_in(repo, FAN, "fan")

    server.takes(repo, *ALL, NOTES, "refs/fabro/lease/*:refs/fabro/lease/*")

    assert fabro(server.bare.path, "fsck", "--json").stdout.count('"findings": []') == 4


def test_a_fork_is_taken_where_its_source_is_not_known(scene: Scene, tmp_path: Path) -> None:
    fabro(scene.repo.path, "fork", scene.run, "@1")
    fork = newest(scene.repo)
    fabro(scene.repo.path, "resume", "-q", fork)
    empty = Server.make(tmp_path / "empty.git")

    empty.takes(scene.repo, layout.META_PREFIX + fork, layout.RUN_PREFIX + fork)


def test_a_record_may_arrive_before_its_run(scene: Scene, tmp_path: Path) -> None:
    empty = Server.make(tmp_path / "empty.git")

    alone = empty.push(scene.repo, scene.run_ref)
    empty.takes(scene.repo, scene.meta_ref)
    empty.takes(scene.repo, scene.run_ref)

    assert "the run has no metadata branch [link]" in alone[1]


def test_hidden_metadata_is_judged_where_it_is(repo: GitRepo, server: Server) -> None:
    repo.git("config", "fabro.metaNamespace", "hidden")
    run = run_in(repo, TWO)
    hidden, branch = layout.HIDDEN_META_PREFIX + run, layout.RUN_PREFIX + run

    alone = server.push(repo, branch)
    server.takes(repo, hidden, branch)
    moved = server.push(repo, f"+{hidden}~1:{hidden}")

    assert "the run has no metadata branch [link]" in alone[1]
    assert moved[1].splitlines()[0].endswith("[append-only]")


def test_a_branch_of_a_fan_out_is_judged_by_the_chain_of_its_run(
    scene: Scene, server: Server
) -> None:
    ref = f"refs/fabro/parallel/{scene.run}/split@1/api"
    text = f"fabro({scene.run}): api (success)\n\nFabro-Run: {scene.run}\nFabro-Completed: 1\n"
    text += f"Fabro-Checkpoint: {'1' * 40}\nFabro-Visit: 1\nFabro-Branch: split@1/api\n"
    forged = scene.commit(scene.tip(f"{scene.run_ref}^{{tree}}"), text, scene.tip("main"))

    status, said = server.push(scene.repo, f"{forged}:{ref}")

    assert status == 1
    assert said.splitlines()[0] == (
        f"fabro: refused {ref} {forged[:12]}: it names 111111111111, which is not there [link]"
    )


def test_a_program_that_is_gone_refuses_what_it_cannot_judge(scene: Scene, server: Server) -> None:
    hook = server.bare.path / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace("git_fabro.jobs.hooks.pre_receive", "gone"))
    scene.repo.git("update-ref", scene.meta_ref, scene.meta({}))

    status, _ = server.push(scene.repo, scene.meta_ref)

    assert status == 1


def test_a_configuration_that_is_wrong_is_said_and_refuses(scene: Scene, server: Server) -> None:
    server.bare.git("config", "fabro.server.maxRecordBytes", "many")
    scene.repo.git("update-ref", scene.meta_ref, scene.meta({}))

    assert server.push(scene.repo, scene.meta_ref) == (
        1,
        """\
fabro: refused: the record cannot be checked: not a size in fabro.server.maxRecordBytes: many
hint: git config fabro.server.maxRecordBytes 16m""",
    )


def test_a_run_without_its_record_is_refused(scene: Scene, server: Server) -> None:
    status, said = server.push(scene.repo, "main:refs/heads/fabro/run/01JKXYZ0000000000000000000")

    assert status == 1
    assert "the run has no metadata branch [link]" in said


@pytest.mark.parametrize(
    ("ref", "rule"),
    [
        ("refs/fabro/ops", "ref-name"),
        ("refs/fabro/anything", "ref-name"),
        ("refs/heads/fabro/run/-x", "id"),
        ("refs/heads/fabro/meta/a/b", "ref-name"),
        ("refs/fabro/checkpoint/01JKXYZ0000000000000000000/x", "ref-name"),
        ("refs/fabro/parallel/01JKXYZ0000000000000000000/x", "ref-name"),
    ],
)
def test_a_ref_that_is_nobodys_is_refused(
    scene: Scene, server: Server, ref: str, rule: str
) -> None:
    status, said = server.push(scene.repo, f"main:{ref}")

    assert status == 1
    assert said.splitlines()[0].endswith(f"[{rule}]")


def test_trees_of_more_paths_than_anybody_could_walk_are_refused(
    scene: Scene, server: Server
) -> None:
    seq = scene.state().seq
    for ref, bad in (
        (scene.run_ref, scene.endless_run()),
        (scene.meta_ref, scene.meta_on(scene.endless(scene.meta_ref), seq=seq)),
    ):
        status, said = server.push(scene.repo, f"+{bad}:{ref}", options=(layout.OPTION_REWIND,))

        assert status == 1
        row = f"fabro: refused {ref} {bad[:12]}: it adds more than 10000000 paths [size]"
        assert row in said.splitlines()


@pytest.mark.parametrize(
    "ref",
    [
        *("refs/heads/fabro", "refs/heads/fabro/run", "refs/heads/fabro/meta"),
        *("refs/notes/fabro/x", "refs/fabro/meta"),
    ],
)
def test_a_branch_in_the_place_of_all_runs_is_refused_and_one_that_is_there_may_go(
    repo: GitRepo, server: Server, ref: str
) -> None:
    tip = repo.commit({"file": "text\n"})

    assert server.push(repo, f"main:{ref}") == (
        1,
        f"""\
fabro: refused {ref} {tip[:12]}: as long as it is there, refs of runs cannot be [ref-name]
hint: git fabro fsck""",
    )
    server.takes(repo, "main")
    server.bare.git("update-ref", ref, tip)
    server.takes(repo, f":{ref}")


def test_refs_of_others_never_start_python(repo: GitRepo, server: Server) -> None:
    repo.commit({"file": "text\n"})
    hook = server.bare.path / "hooks" / "pre-receive"
    text = hook.read_text()
    start = text.index("\npython=") + 1
    end = text.index("\n", start)
    hook.write_text(f"{text[:start]}python=/nonexistent/python{text[end:]}")

    server.takes(repo, "main", "main:refs/heads/fabro/mine", "main:refs/tags/v1")
    refused = server.push(repo, "main:refs/heads/fabro/run/01JKXYZ0000000000000000000")

    assert refused == (
        1,
        """\
fabro: refused: the record cannot be checked, there is no /nonexistent/python [server]
hint: git fabro install --server, in the repository on the server""",
    )


def test_the_hook_loads_neither_typer_nor_porcelain() -> None:
    code = "import sys, git_fabro.jobs.hooks.pre_receive; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert {"typer", "dulwich.porcelain", "rich", "yaml"} & set(loaded) == set()
    assert "git_fabro.checkpoint.verify" in loaded
