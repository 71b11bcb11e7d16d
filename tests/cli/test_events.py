"""``git fabro events``: the records of a run."""

from __future__ import annotations

import json
from pathlib import Path

from git_fabro.checkpoint import codec
from tests.cli.typed import Shell, Typed, process, until
from tests.conftest import GitRepo

NEWEST = "run <run> (the newest)\n"
KINDS = [
    "run.created",
    "lease.taken",
    "run.branch",
    "git.identity",
    "run.started",
    "node.started",
    "node.finished",
    "node.started",
    "node.finished",
    "checkpoint",
    "node.started",
    "node.finished",
    "checkpoint",
    "node.started",
    "node.finished",
    "run.finished",
    "lease.released",
]


def _numbers(text: str) -> list[int]:
    return [json.loads(row)["seq"] for row in text.splitlines()]


def test_records_are_canonical_lines(shell: Shell) -> None:
    shell("run", "two")

    typed = shell.exactly("events", "two")

    rows = [json.loads(row) for row in typed.out.splitlines()]
    assert [row["kind"] for row in rows] == KINDS
    assert typed.out.encode() == b"".join(codec.canonical(row) + b"\n" for row in rows)
    assert shell.exactly("events", "two", "--json").out == typed.out
    assert (typed.status, typed.err) == (0, "")


def test_records_are_lines_of_text_for_people(shell: Shell) -> None:
    shell("run", "two")

    assert shell("events", "--pretty", "--after", "7", "--tail", "3") == Typed(
        0,
        "   15 <time> node.finished      exit@1\n"
        "   16 <time> run.finished\n"
        "   17 <time> lease.released\n",
        NEWEST,
    )
    assert (
        "    9 <time> node.finished      plan@1 success (<spent>)\n"
        in shell("events", "--pretty").out
    )


def test_records_are_chosen_by_number_and_time(shell: Shell) -> None:
    shell("run", "two")
    rows = [json.loads(row) for row in shell.exactly("events", "two").out.splitlines()]
    at = rows[9]["at"]

    def numbers(*argv: str) -> list[int]:
        return _numbers(shell.exactly("events", "two", *argv).out)

    assert numbers("--after", "15") == [16, 17]
    assert numbers("--after", "17") == []
    assert numbers("--tail", "2") == [16, 17]
    assert numbers("--tail", "0") == []
    assert numbers("--since", at) == [row["seq"] for row in rows if row["at"] >= at]
    assert numbers("--since", "2200-01-01") == []
    assert numbers("--after", f"10@{at}") == list(range(11, 18))


def test_a_position_that_is_gone_begins_behind_what_was_before_it(shell: Shell) -> None:
    shell("run", "two")
    rows = [json.loads(row) for row in shell.exactly("events", "two").out.splitlines()]
    first = rows[0]["at"]

    gone = _numbers(shell.exactly("events", "two", "--after", "12@2200-01-01T00:00:00.000Z").out)
    old = _numbers(shell.exactly("events", "two", "--after", "12@2000-01-01T00:00:00.000Z").out)

    assert gone == []
    assert old == list(range(1, 18))
    assert first > "2000"


def test_what_is_no_position_or_time_is_refused(shell: Shell) -> None:
    assert shell("events", "--after", "x") == Typed(
        128, "", "fatal: --after takes SEQ or SEQ@AT, not: x\nhint: git fabro events -h\n"
    )
    assert shell("events", "--since", "x") == Typed(
        128, "", "fatal: --since takes a time, not: x\nhint: --since 2026-03-01T10:00:00Z\n"
    )


def test_following_gives_every_record_once_and_ends_with_the_run(
    shell: Shell, tmp_path: Path
) -> None:
    shell.patch.setenv("GATE", str(tmp_path))
    shell.apart("run", "-d", "held")
    follower = process(shell.folder, "events", "held", "-f")
    held = '"attempt":1,"node":"held"'
    until(lambda: held in shell.exactly("events", "held").out, "the second node begins")

    (tmp_path / "go").touch()
    out, err = follower.communicate()

    assert (follower.returncode, err) == (0, "")
    assert out == shell.exactly("events", "held").out
    assert '"kind":"run.finished"' in out


def test_following_a_run_that_rests_ends_at_once(shell: Shell) -> None:
    shell("run", "two")

    assert shell.exactly("events", "-f", "two") == shell.exactly("events", "two")


def test_damage_ends_the_stream_and_is_named(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    run = shell.run_id()
    second = repo.git("rev-list", "--first-parent", "--reverse", f"fabro/meta/{run}").split()[1]
    tree = repo.git("rev-parse", f"{second}:records.jsonl")
    repo.path.joinpath(".git/objects", tree[:2], tree[2:]).unlink()

    typed = shell("events", "two")

    assert typed.status == 1
    assert _numbers(typed.out) == [1, 2, 3, 4, 5]
    assert typed.err.startswith("incomplete: record 5 is the last good one: ")
