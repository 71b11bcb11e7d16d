"""``git fabro validate``: all diagnostics, and the status they make."""

from __future__ import annotations

import json

from tests.cli.typed import Shell, Typed

BAD = """\
digraph Bad {
    start [shape=Mdiamond]; exit [shape=Msquare]
    plan [shape=parallelogram, script="true", colour=red, max_retrys=2]
    start -> plan -> biuld
}
"""


def test_a_good_workflow_has_no_problems(shell: Shell) -> None:
    assert shell("validate", "two") == Typed(0, "", "no problems\n")
    assert shell("validate", "--strict", "two") == Typed(0, "", "no problems\n")


def test_all_diagnostics_are_printed_with_their_places(shell: Shell) -> None:
    shell.folder.joinpath("bad.fabro").write_text(BAD)

    typed = shell("validate", "bad.fabro")

    assert typed.status == 1
    assert (
        'bad.fabro:4:22: edge target "biuld" is not declared [edge_target_exists]\n'
        "    start -> plan -> biuld\n"
        "                     ^\n"
    ) in typed.out
    assert 'bad.fabro:3:59: warning: unknown attribute "max_retrys"' in typed.out
    assert typed.err.startswith("1 error, ")


def test_diagnostics_are_a_document(shell: Shell) -> None:
    shell.folder.joinpath("bad.fabro").write_text(BAD)

    typed = shell("validate", "bad.fabro", "--json")
    found = json.loads(typed.out)

    assert (typed.status, typed.err, found["file"]) == (1, "", "bad.fabro")
    assert {
        "file": "bad.fabro",
        "line": 4,
        "column": 22,
        "severity": "error",
        "rule": "edge_target_exists",
        "message": 'edge target "biuld" is not declared',
    } in found["diagnostics"]
    assert json.loads(shell("validate", "two", "--json").out) == {
        "diagnostics": [],
        "file": "fabro/workflows/two/workflow.fabro",
    }


def test_strict_makes_warnings_errors(shell: Shell) -> None:
    shell.folder.joinpath("warns.fabro").write_text(
        "digraph { start [shape=Mdiamond]; exit [shape=Msquare]; lost [script=true]\n"
        "start -> exit; lost -> exit }\n"
    )

    assert shell("validate", "warns.fabro").status == 0
    assert shell("validate", "--strict", "warns.fabro").status == 1


def test_what_is_not_there_is_refused(shell: Shell, outside: Shell) -> None:
    assert shell("validate", "nope") == Typed(
        128, "", "fatal: no such workflow: nope\nhint: git fabro workflow list\n"
    )
    assert outside("validate", "nope.dot") == Typed(
        128, "", "fatal: no such workflow file: nope.dot\nhint: git fabro workflow list\n"
    )
