"""``git fabro list``: which runs, and how they are shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import fabro
from tests.cli.typed import Shell, Typed
from tests.conftest import GitRepo
from tests.fabro import Visit

_AGE = re.compile(r"  \d+s   ")


def _ageless(typed: Typed) -> Typed:
    """What was printed, all runs of the same age: two looks may stand on two sides of a second."""
    return Typed(typed.status, _AGE.sub("  0s   ", typed.out), typed.err)


def test_only_runs_that_can_go_on_are_listed(shell: Shell) -> None:
    shell("run", "two")
    shell("run", "asks")

    typed = shell("list")

    assert _ageless(typed) == Typed(
        0,
        "RUN                         STATUS   WORKFLOW  NODE    CHECKPOINTS  AGE  GOAL\n"
        "<run>  blocked  asks      review  0            0s   ask first\n",
        "",
    )


def test_all_runs_are_listed_newest_first(shell: Shell) -> None:
    shell("run", "two")
    shell("run", "asks")

    typed = shell.exactly("list", "-a")

    assert [row.split()[1:4] for row in typed.out.splitlines()[1:]] == [
        ["blocked", "asks", "review"],
        ["success", "two", "exit"],
    ]


def test_a_list_is_a_document(shell: Shell) -> None:
    shell("run", "two", "--label", "team=a", "--goal", "x\ny")

    typed = shell("list", "-a", "--json")

    assert (typed.status, typed.err) == (0, "")
    assert json.loads(typed.out) == {
        "runs": [
            {
                "run_id": "<run>",
                "status": "success",
                "workflow": "two",
                "goal": "x\ny",
                "node": "exit",
                "checkpoints": 2,
                "created_at": "<time>",
                "updated_at": "<time>",
                "labels": {"team": "a"},
                "parent": None,
                "origin": "local",
            }
        ]
    }


def test_nothing_is_printed_of_no_runs(shell: Shell) -> None:
    assert shell("list") == Typed(0, "", "")
    assert shell("list", "-q") == Typed(0, "", "")
    assert json.loads(shell("list", "--json").out) == {"runs": []}


def test_ids_end_as_asked(shell: Shell) -> None:
    shell("run", "two")

    assert shell("list", "-a", "-q").out == "<run>\n"
    assert shell("list", "-a", "-q", "-z").out == "<run>\0"
    assert shell("list", "-z") == Typed(
        128, "", "fatal: -z is for a list of names\nhint: git fabro list -q -z\n"
    )


def test_runs_are_chosen_by_workflow_label_and_time(shell: Shell) -> None:
    shell("run", "two", "--label", "team=a")
    shell("run", "asks", "--label", "team=b")

    def count(*argv: str) -> int:
        return len(shell("list", "-a", "-q", *argv).out.splitlines())

    assert count("--workflow", "two") == 1
    assert count("--label", "team=b") == 1
    assert count("--label", "team=b", "--workflow", "two") == 0
    assert count("--before", "2020-01-01") == 0
    assert count("--before", "2200-01-01T00:00:00+02:00") == 2
    assert shell("list", "--before", "tomorrow") == Typed(
        128,
        "",
        "fatal: --before takes a time, not: tomorrow\nhint: --before 2026-03-01T10:00:00Z\n",
    )


def test_statuses_are_coloured_where_colour_is_wanted(shell: Shell, repo: GitRepo) -> None:
    shell("run", "asks")
    coloured = "\x1b[33mblocked\x1b[m"

    assert coloured in shell("list", "--color").out
    assert coloured in shell("list", "--color=always").out
    assert coloured not in shell("list").out
    repo.git("config", "color.ui", "always")
    assert coloured in shell("list").out
    assert coloured not in shell("list", "--no-color").out
    repo.git("config", "color.fabro", "never")
    assert coloured not in shell("list").out


def test_no_color_wins_over_the_configuration(shell: Shell, repo: GitRepo) -> None:
    shell("run", "asks")
    repo.git("config", "color.ui", "always")
    shell.patch.setenv("NO_COLOR", "1")

    assert "\x1b" not in shell("list").out


def test_a_run_that_cannot_be_read_is_named(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    run = shell.run_id()
    repo.git("update-ref", f"refs/heads/fabro/meta/{run}", repo.git("rev-parse", "HEAD"))

    typed = shell("list", "-a")

    assert typed.status == 1
    assert typed.out.splitlines()[1].split()[:2] == ["<run>", "?"]
    assert typed.err.startswith("warning: run cannot be read: <run>: no checkpoint.json in ")


def test_the_folder_of_a_run_whose_branches_are_gone_is_no_run(shell: Shell, repo: GitRepo) -> None:
    shell("run", "two")
    run = shell.run_id()
    repo.git("branch", "-q", "-D", f"fabro/run/{run}", f"fabro/meta/{run}")

    assert shell("list", "-a") == Typed(0, "", "")


def test_outside_a_repository_runs_without_checkpoints_are_listed(
    shell: Shell, outside: Shell
) -> None:
    outside.apart("run", str(shell.folder / "fabro/workflows/two/workflow.fabro"))

    assert outside("list", "-a", "-q") == Typed(0, "<run>\n", "")


@pytest.mark.parametrize(
    "argv", [[], ["-a"], ["-q"], ["-a", "-q"], ["--json"], ["--all", "--json"]]
)
def test_the_usual_forms_mean_without_typer_what_they_mean_with_it(
    shell: Shell, argv: list[str]
) -> None:
    shell("run", "two")
    shell("run", "asks")

    short, long = shell.exactly("list", *argv), shell.exactly("list", *argv, "--color=never")

    assert _ageless(short) == _ageless(long)


def test_what_was_kept_of_a_list_may_be_lost_or_broken(shell: Shell, tmp_path: Path) -> None:
    shell("run", "two")
    expected = _ageless(shell.exactly("list", "-a"))
    (kept,) = (tmp_path / ".home/cache/git-fabro").glob("*/rows.json")

    for text in (b"", b"{", b"[]", b'{"form": 1, "rows": {"x": 1}}', None):
        if text is None:
            kept.unlink()
        else:
            kept.write_bytes(text)
        assert _ageless(shell.exactly("list", "-a")) == expected
    shell("run", "two")
    assert len(shell.exactly("list", "-a").out.splitlines()) == 3


def test_runs_of_fabros_are_listed_with_their_own_words(shell: Shell, repo: GitRepo) -> None:
    visits = [Visit("plan"), Visit("build", "failed")]
    for at, generation in enumerate(fabro.GENERATIONS):
        fabro.write(repo, visits, generation=generation, run=f"01KP8XFY02RXHCR69H9FQ02X6{at}")
    fabro.write(repo, visits, ends=False, run="01KP8XFY02RXHCR69H9FQ02X69")

    found = json.loads(shell("list", "-a", "--json").out)["runs"]

    words = ["ended"] * 5 + ["failed"] * 3 + ["unfinished"]
    assert [row["status"] for row in reversed(found)] == words
    assert {row["checkpoints"] for row in found} == {2}
    slugs = ["ship", "ship", "ship", "", "ship", "ship", "ship", "ship", "ship"]
    assert [row["workflow"] for row in reversed(found)] == slugs
    assert shell.exactly("list", "-q").out == "01KP8XFY02RXHCR69H9FQ02X69\n"
