"""The fake agent, run as a program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from git_fabro.handlers import fake


def ask(work: Path, *arguments: str, prompt: str = "", **environment: str):
    work.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-I", "-S", fake.__file__, *arguments],
        cwd=work,
        env={"FABRO_NODE_ID": "plan", "FABRO_VISIT": "1", **environment},
        input=prompt,
        capture_output=True,
        text=True,
    )


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("prompt", "said"), [("", "\n"), ("\n  one \ntwo\n", "one\n"), ("é", "é\n")]
)
def test_without_answers_it_echoes_the_first_line(tmp_path, prompt, said) -> None:
    done = ask(tmp_path / "work", prompt=prompt)

    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.parametrize("visit", ["1", "2"])
def test_an_answer_of_a_visit_comes_before_that_of_the_node(tmp_path, visit) -> None:
    write(tmp_path, {"answers/plan/response": "any", "answers/plan/2/response": "second"})

    done = ask(tmp_path / "work", str(tmp_path / "answers"), FABRO_VISIT=visit)

    assert done.stdout == {"1": "any", "2": "second"}[visit]


def test_an_answer_has_files_deletions_complaints_and_a_status(tmp_path: Path) -> None:
    answers, work = tmp_path / "answers", tmp_path / "work"
    write(
        answers / "plan",
        {
            "files/a/b.txt": "b",
            "files/c.sh": "c",
            "delete": "old\n\ngone\n",
            "stderr": "e",
            "exit": "7\n",
        },
    )
    (answers / "plan/files/c.sh").chmod(0o755)
    write(work, {"old/x": "x", "stay": "s", "c.sh": "before"})

    done = ask(work, prompt="p", FABRO_FAKE_ANSWERS=str(answers))

    assert (done.returncode, done.stdout, done.stderr) == (7, "p\n", "e")
    found = {str(p.relative_to(work)): p.read_text() for p in work.rglob("*") if p.is_file()}
    assert found == {"a/b.txt": "b", "c.sh": "c", "stay": "s"}
    assert (work / "c.sh").stat().st_mode & 0o111


@pytest.mark.parametrize("node", ["..", ".", "a/b", "", "/etc"])
def test_a_node_that_is_no_name_has_no_answer(tmp_path, node) -> None:
    write(tmp_path, {"answers/x/response": "x", "response": "outside"})

    done = ask(tmp_path / "work", str(tmp_path / "answers"), prompt="p", FABRO_NODE_ID=node)

    assert done.stdout == "p\n"


@pytest.mark.parametrize("name", ["../out", "link/out", "/etc/x", "."])
def test_nothing_outside_the_folder_is_touched(tmp_path, name) -> None:
    answers, work, outside = tmp_path / "answers", tmp_path / "work", tmp_path / "outside"
    write(answers / "plan", {"delete": name, "files/link/out": "overwritten"})
    write(outside, {"out": "kept"})
    write(tmp_path, {"out": "kept"})
    work.mkdir()
    (work / "link").symlink_to(outside)

    done = ask(work, str(answers))

    assert done.returncode == 0
    assert (outside / "out").read_text() == (tmp_path / "out").read_text() == "kept"
    assert work.is_dir()
