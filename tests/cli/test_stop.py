"""``git fabro stop``: the run ends now, and can be resumed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.typed import Shell, Typed, until


def test_the_running_node_is_interrupted_and_runs_again(shell: Shell, tmp_path: Path) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")
    held = '"attempt":1,"node":"held"'
    until(lambda: held in shell.exactly("events", "held").out, "the second node begins")

    typed = shell("stop", "held", "--json")

    assert json.loads(typed.out) == {"asked": "stop", "run_id": "<run>"}
    assert shell("wait", "held") == Typed(1, "<run> stopped: request\n", "")
    (tmp_path / "go").touch()
    assert shell("resume", "held").status == 0
    records = [json.loads(row) for row in shell.exactly("events", "held").out.splitlines()]
    begun = [one["position"]["node"] for one in records if one["kind"] == "node.started"]
    assert begun == ["start", "first", "held", "held", "last", "exit"]


def test_without_a_driver_there_is_nothing_to_stop(shell: Shell) -> None:
    shell("run", "asks")

    assert shell("stop", "asks") == Typed(
        128, "", "fatal: nobody drives the run: <run>\nhint: git fabro resume <run>\n"
    )


def test_a_run_that_is_not_there_is_refused(shell: Shell) -> None:
    assert shell("stop", "nope") == Typed(
        128, "", "fatal: no run found matching 'nope'\nhint: git fabro list -a\n"
    )
