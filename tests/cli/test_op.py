"""``git fabro op``: the log, and one entry of it."""

from __future__ import annotations

import json

from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo


def test_the_log_names_each_operation_and_whether_it_was_undone(
    shell: Shell, repo: GitRepo
) -> None:
    shell("run", "-q", "two")
    run, tip = shell.run_id(), repo.git("rev-parse", f"fabro/run/{shell.run_id()}")
    shell("rewind", "@1")
    shell("undo")

    rows = json.loads(shell.exactly("op", "log", "--json").out)["operations"]

    assert [(row["command"], row["undone"]) for row in rows] == [
        (f"undo rewind {run} @1", False),
        (f"rewind {run} @1", True),
    ]
    assert rows[0]["undoes"] == rows[1]["id"]
    assert rows[1]["refs"][0]["old"] == tip
    shown = [row.split(maxsplit=2) for row in shell.exactly("op", "log").out.splitlines()[1:]]
    assert [row[0] for row in shown] == [row["id"] for row in rows]


def test_one_operation_is_shown(shell: Shell) -> None:
    shell("run", "-q", "two")
    shell("rewind", "@1")
    [row] = json.loads(shell.exactly("op", "log", "--json").out)["operations"]

    shown = shell("op", "show", row["id"][:12])

    assert shown.out.splitlines()[1:2] == ["command    rewind <run 2> @1"]
    assert json.loads(shell.exactly("op", "show", "--json", row["id"]).out) == row


def test_no_operation_is_an_empty_log(shell: Shell) -> None:
    assert shell("op", "log").out == "OPERATION  AT    COMMAND\n"
    assert shell("op", "show", "01J") == Typed(
        128, "", "fatal: no such operation: 01J\nhint: git fabro op log\n"
    )
