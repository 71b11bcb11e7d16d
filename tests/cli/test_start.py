"""The program itself: its names, its help, its statuses, and what it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from git_fabro.cli import start
from tests.cli.typed import Shell, Typed, process, program

SUMMARY = """\
usage: git fabro <command> [<args>]

    run        run a workflow, each finished node a checkpoint
    resume     go on with a run from its last checkpoint
    attach     follow a run as it happens, and answer its questions
    answer     answer a question of a run
    pause      let a run rest after the node that is running
    stop       end what a run is doing now; it can be resumed
    wait       wait until a run ends
    list       list runs
    log        print the timeline of a run, newest first
    show       show all of a run or a checkpoint
    diff       print what a run or a checkpoint changed
    compare    print two runs side by side
    rewind     put a run back to one of its checkpoints
    fork       make a new run from a checkpoint of another one
    undo       take the last operation back: refs, work tree and index
    redo       take the last undo back
    op         list the operations that undo can take back
    events     print the records of a run as JSON Lines
    validate   check a workflow and print all diagnostics
    graph      draw the graph of a workflow or a run
    workflow   list workflows, or create one
    sync       bring runs here and at a remote up to each other
    fsck       prove the record of runs
    install    put the hooks of this repository in place
    uninstall  take the hooks out, and put back what was there
    hook       do what a hook does, for a hook manager

'git fabro <command> -h' is a summary of a command, '--help' its manual page.
"""
WAIT = """\
usage: git fabro wait [<options>] [RUN]

Wait until a run ends, rests, or asks a person; the exit status says which.

    [RUN]                     default: the run here, else the newest
    --timeout S               seconds to wait at most
    --json                    one JSON document
"""


@pytest.mark.parametrize(
    ("argv", "status", "out", "err"),
    [
        pytest.param(["-h"], 129, SUMMARY, "", id="summary"),
        pytest.param(["--version"], 0, f"git-fabro {start.VERSION}\n", "", id="version"),
        pytest.param(["wait", "-h"], 129, WAIT, "", id="summary of a command"),
        pytest.param(["wait", "01JK", "-h"], 129, WAIT, "", id="-h behind other words"),
        pytest.param(
            ["workflow", "-h"],
            129,
            "usage: git fabro workflow list [<options>]\n"
            "   or: git fabro workflow create [<options>] NAME\n",
            "",
            id="summary of a command with commands",
        ),
        pytest.param(
            [], 129, "", "fatal: command is missing\nhint: git fabro -h\n", id="no command"
        ),
        pytest.param(
            ["lst"],
            129,
            "",
            "fatal: no such command: lst\nhint: git fabro list\n",
            id="nearest command",
        ),
        pytest.param(
            ["xyzzy"],
            129,
            "",
            "fatal: no such command: xyzzy\nhint: git fabro -h\n",
            id="no command is near",
        ),
        pytest.param(
            ["--verson"],
            129,
            "",
            "fatal: no such option: --verson\nhint: git fabro --version\n",
            id="nearest option of the program",
        ),
        pytest.param(
            ["run", "--agnt", "x"],
            129,
            "",
            "fatal: no such option: --agnt\nhint: git fabro run --agent\n",
            id="nearest option of a command",
        ),
        pytest.param(
            ["run", "--xyzzy"],
            129,
            "",
            "fatal: no such option: --xyzzy\nhint: git fabro run -h\n",
            id="no option is near",
        ),
        pytest.param(
            ["run"],
            129,
            "",
            "fatal: argument is missing: WORKFLOW\nhint: git fabro run -h\n",
            id="argument",
        ),
        pytest.param(
            ["wait", "a", "b", "c"],
            129,
            "",
            "fatal: too many arguments: b c\nhint: git fabro wait -h\n",
            id="too many arguments",
        ),
        pytest.param(
            ["wait", "--timeout"],
            129,
            "",
            "fatal: option needs a value: --timeout\nhint: git fabro wait -h\n",
            id="value of an option",
        ),
        pytest.param(
            ["wait", "--timeout", "soon"],
            129,
            "",
            "fatal: --timeout: not a number: soon\nhint: git fabro wait -h\n",
            id="number",
        ),
        pytest.param(
            ["wait", "--timeout", "-1"],
            129,
            "",
            "fatal: --timeout: -1 is not in the range x>=0\nhint: git fabro wait -h\n",
            id="number out of range",
        ),
        pytest.param(
            ["workflow"],
            129,
            "",
            "fatal: command is missing: workflow\nhint: git fabro workflow -h\n",
            id="command of a command",
        ),
        pytest.param(
            ["workflow", "creat"],
            129,
            "",
            "fatal: no such command: workflow creat\nhint: git fabro workflow create\n",
            id="nearest command of a command",
        ),
        pytest.param(
            ["l\x1b[31mst\u202e"],
            129,
            "",
            "fatal: no such command: l\\x1b[31mst\\u202e\nhint: git fabro -h\n",
            id="control characters",
        ),
    ],
)
def test_a_command_line_says_what_it_is(
    outside: Shell, argv: list[str], status: int, out: str, err: str
) -> None:
    assert outside.exactly(*argv) == Typed(status, out, err)


@pytest.mark.parametrize("alias", ["ps", "inspect"])
def test_an_alias_is_the_command(outside: Shell, alias: str) -> None:
    command = {"ps": "list", "inspect": "show"}[alias]

    assert outside.exactly(alias, "-h") == outside.exactly(command, "-h")


def test_without_man_help_is_the_summary(outside: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    assert outside.exactly("--help") == Typed(0, SUMMARY, "")
    assert outside.exactly("wait", "--help") == Typed(0, WAIT, "")


def test_a_bug_is_one_line_that_asks_for_a_report(
    outside: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(start.COMMANDS, "wait", ("no_such_module", "broken"))

    assert outside.exactly("wait") == Typed(
        128,
        "",
        "fatal: git-fabro has a bug: ModuleNotFoundError: "
        "No module named 'git_fabro.cli.no_such_module'\n"
        "hint: please report it with the output of: FABRO_DEBUG=1 git fabro wait ...\n",
    )


def test_a_bug_shows_itself_to_who_asks(outside: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(start.COMMANDS, "wait", ("no_such_module", "broken"))
    monkeypatch.setenv("FABRO_DEBUG", "1")

    with pytest.raises(ModuleNotFoundError):
        outside.exactly("wait")


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH with the program under all its names, as install.sh makes them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "git-fabro"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nfrom git_fabro.cli.start import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    for name in start.COMMANDS:
        (folder / f"git-fabro-{name}").symlink_to("git-fabro")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize(
    "argv", [["git", "fabro", "list"], ["git", "fabro-list"], ["git-fabro-list"]]
)
def test_both_forms_are_one_program(shell: Shell, argv: list[str]) -> None:
    shell("run", "two")

    done = subprocess.run([*argv, "-a", "-q"], cwd=shell.folder, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{shell.run_id()}\n", "")


@pytest.mark.usefixtures("links")
@pytest.mark.parametrize(
    ("argv", "variables", "folder"),
    [
        pytest.param(["git", "-C", "repo", "fabro"], {}, ".", id="git -C"),
        pytest.param(["git", "--git-dir=repo/.git", "fabro"], {}, ".", id="--git-dir"),
        pytest.param(["git-fabro"], {"GIT_DIR": "repo/.git"}, ".", id="GIT_DIR"),
        pytest.param(
            ["git-fabro"],
            {"GIT_DIR": "repo/.git", "GIT_WORK_TREE": "repo"},
            ".",
            id="GIT_WORK_TREE",
        ),
        pytest.param(["git", "fabro"], {}, "repo/fabro/workflows", id="sub-folder"),
        pytest.param(["git", "fabro"], {}, "repo/.git", id="git directory"),
        pytest.param(["git", "fabro"], {}, "linked", id="linked work tree"),
        pytest.param(["git", "-c", "alias.runs=fabro", "-C", "repo", "runs"], {}, ".", id="alias"),
    ],
)
def test_the_repository_is_found_as_git_finds_it(
    shell: Shell, argv: list[str], variables: dict[str, str], folder: str
) -> None:
    above = shell.folder.parent
    subprocess.run(["git", "worktree", "add", "-q", "../linked"], cwd=shell.folder, check=True)
    shell("run", "two")

    done = subprocess.run(
        [*argv, "list", "-a", "-q"],
        cwd=above / folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{shell.run_id()}\n", "")


@pytest.mark.parametrize("argv", [["list", "-a"], ["show"], ["events"], ["-h"]])
def test_reading_into_a_closed_pipe_is_141(shell: Shell, argv: list[str]) -> None:
    shell("run", "two")
    reader = process(shell.folder, *argv)
    assert reader.stdout is not None
    assert reader.stderr is not None

    reader.stdout.close()

    assert "Traceback" not in reader.stderr.read()
    assert reader.wait() == 141
    reader.stderr.close()


def test_a_run_does_not_die_of_a_closed_pipe(shell: Shell) -> None:
    driver = process(shell.folder, "run", "-v", "two")
    assert driver.stdout is not None
    assert driver.stderr is not None

    driver.stdout.close()
    driver.stderr.close()

    assert driver.wait() == 0
    assert '"status": "success"' in shell("list", "-a", "--json").out


@pytest.mark.parametrize(
    "argv",
    [
        ["list", "-a", "-q"],
        ["list", "--json", "-a"],
        ["show", "two"],
        ["show", "--json", "two", "@1"],
        ["log", "two"],
        ["log", "--json", "two"],
        ["log", "--graph", "two"],
        ["diff", "two", "build"],
        ["diff", "two", "--stat"],
        ["compare", "two", "two"],
        ["events", "two"],
        ["validate", "two"],
        ["graph", "two"],
        ["show", "two", "nowhere"],
    ],
    ids=" ".join,
)
def test_reading_needs_no_git_program(shell: Shell, argv: list[str]) -> None:
    shell("run", "two")
    with_git = process(shell.folder, *argv)
    without = process(shell.folder, *argv, environment={"PATH": os.path.dirname(sys.executable)})

    expected, found = with_git.communicate(), without.communicate()

    assert (without.returncode, *found) == (with_git.returncode, *expected)
    assert expected != ("", "")


_LOADED = """
import sys
from git_fabro.cli.start import main
sys.stdout = open("/dev/null", "w")
main(sys.argv[1:])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""
_HEAVY = {"asyncio", "dulwich", "pydantic", "rich", "tomli_w", "typer", "urllib3", "yaml"}


@pytest.mark.parametrize(
    ("argv", "heavy"),
    [
        (["--version"], set()),
        (["-h"], set()),
        (["nope"], set()),
        (["list", "-q"], {"dulwich"}),
        (["log", "-n", "2"], {"dulwich"}),
        (["log", "--stat"], {"typer", "dulwich"}),
        (["events", "-q"], {"typer", "dulwich"}),
        (["validate", "two"], {"typer", "dulwich"}),
        (["run", "--dry-run", "-q", "two"], {"typer", "dulwich"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_loads_only_what_it_needs(shell: Shell, argv: list[str], heavy: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *argv], cwd=shell.folder, capture_output=True, text=True
    )

    loaded = set(done.stderr.split("\n")[-2].split())
    assert loaded & _HEAVY == heavy


_ALL_LOADED = _LOADED.replace('name.partition(".")[0]', "name")
_FOR_OTHERS = {"dulwich.objects", "random", "shlex", "shutil", "socket", "tempfile", "calendar"}


@pytest.mark.parametrize("argv", [["list", "-a"], ["log"], ["log", "--oneline"]], ids=" ".join)
def test_a_list_and_a_log_load_nothing_for_others(shell: Shell, argv: list[str]) -> None:
    shell("run", "two")
    shell("list", "-a")

    done = subprocess.run(
        [sys.executable, "-c", _ALL_LOADED, *argv], cwd=shell.folder, capture_output=True, text=True
    )

    loaded = set(done.stderr.split("\n")[-2].split())
    assert loaded & _FOR_OTHERS == set()
    assert "git_fabro.cli.start" in loaded


def test_a_trace_names_each_program_that_was_started(shell: Shell, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    environment = {**os.environ, "FABRO_TRACE": str(trace)}

    subprocess.run(program("list", "-q"), cwd=shell.folder, env=environment, check=True)

    rows = [row.split(" ms ")[1].split(maxsplit=1)[1] for row in trace.read_text().splitlines()]
    assert rows[0] == "git fabro list -q"
    assert all(row.startswith("start ") for row in rows[1:-1])
    assert rows[-1] == "exit 0"
    assert len(rows) > 2
