from __future__ import annotations

import hashlib
import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_fabro.checkpoint.model import Identity, Oid
from git_fabro.errors import BusyError
from git_fabro.git.discover import open_repository
from git_fabro.git.notes import all_notes, read_note, write_notes
from git_fabro.git.objects import Objects, open_objects
from git_fabro.git.refs import Refs
from tests.conftest import WHEN, GitRepo

BY = Identity("A. Tester", "tester@example.com")
REF = "refs/notes/fabro"
Opened = tuple[Objects, Refs]


@pytest.fixture
def opened(repo: GitRepo) -> Iterator[Opened]:
    found = open_repository(repo.path)
    with open_objects(found) as objects, Refs(found, objects) as refs:
        yield objects, refs


def named(number: int) -> Oid:
    """The name of an object that need not exist: git keeps notes on any name."""
    return Oid(hashlib.sha1(str(number).encode()).hexdigest())


def write(opened: Opened, notes: dict[Oid, str | None], ref: str = REF) -> Oid | None:
    return write_notes(*opened, notes, by=BY, when=WHEN, ref=ref)


def by_git(repo: GitRepo, numbers: range, ref: str) -> None:
    """The note "text" on many names, by one process of git's."""
    source = repo.git("rev-parse", "refs/tags/source")
    repo.git("notes", "--ref=source", "add", "-f", "-m", "text", source)
    blob = repo.git("notes", "--ref=source", "list", source)
    repo.git("notes", f"--ref={ref}", "add", "-f", "-C", blob, source)
    pairs = "".join(f"{source} {named(number)}\n" for number in numbers)
    repo.git("notes", f"--ref={ref}", "copy", "-f", "--stdin", stdin=pairs.encode())
    repo.git("notes", f"--ref={ref}", "remove", source)


@pytest.fixture
def source(repo: GitRepo) -> None:
    repo.git("tag", "source", repo.commit({"a": "1"}))


def tree(repo: GitRepo, ref: str) -> str:
    return repo.git("rev-parse", f"{ref}^{{tree}}")


def test_a_note_is_what_git_shows(repo: GitRepo, opened: Opened) -> None:
    commit = Oid(repo.commit({"a": "1"}))

    write(opened, {commit: "one\n\nFabro-Run: X"})
    write(opened, {commit: "two\n\nFabro-Run: X\n"})

    assert repo.git("notes", "--ref=fabro", "show", commit) == "two\n\nFabro-Run: X"
    assert read_note(opened[0], opened[1], commit) == "two\n\nFabro-Run: X\n"
    assert read_note(opened[0], opened[1], named(1)) is None
    assert repo.git("rev-list", "--count", REF) == "2"
    repo.fsck()


def test_a_note_that_is_there_already_makes_no_commit(opened: Opened) -> None:
    first = write(opened, {named(1): "text"})

    assert write(opened, {named(1): "text"}) == first
    assert write(opened, {}) == first


def test_removing_where_nothing_is_makes_no_commit(opened: Opened) -> None:
    assert write(opened, {named(1): None}) is None
    assert read_note(*opened, named(1)) is None


def test_a_removed_note_is_gone(repo: GitRepo, opened: Opened) -> None:
    write(opened, {named(number): "text" for number in range(600)})

    write(opened, {named(number): None for number in range(5, 600)})

    assert all_notes(*opened).keys() == {named(number) for number in range(5)}
    assert len(repo.git("notes", "--ref=fabro", "list").splitlines()) == 5
    repo.fsck()


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("count", [1, 16, 40, 60, 80, 120, 300, 1000, 6000, 20_000])
def test_the_fan_out_grows_where_git_lets_it_grow_rf11(
    repo: GitRepo, opened: Opened, count: int
) -> None:
    by_git(repo, range(count), "refs/notes/git")

    write(opened, {named(number): "text" for number in range(count)})

    assert tree(repo, REF) == tree(repo, "refs/notes/git")


@pytest.mark.usefixtures("source")
def test_one_more_note_gives_the_tree_that_git_would_write_rf11(
    repo: GitRepo, opened: Opened
) -> None:
    by_git(repo, range(9000), "refs/notes/git")
    repo.git("update-ref", REF, "refs/notes/git")

    for number in range(9000, 9010):
        by_git(repo, range(number, number + 1), "refs/notes/git")
        write(opened, {named(number): "text"})

        assert tree(repo, REF) == tree(repo, "refs/notes/git")
    repo.fsck()


@pytest.mark.usefixtures("source")
def test_git_and_we_take_turns_on_one_ref_rf11(repo: GitRepo, opened: Opened) -> None:
    for start in range(0, 400, 40):
        by_git(repo, range(start, start + 20), REF)
        write(opened, {named(number): "text" for number in range(start + 20, start + 40)})

    assert len(repo.git("notes", "--ref=fabro", "list").splitlines()) == 400
    assert len(all_notes(*opened)) == 400
    repo.fsck()


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_tree_of_any_depth_is_read_and_one_note_remains_of_each_rf11(
    repo: GitRepo, opened: Opened, depth: int
) -> None:
    objects, refs = opened
    oid = named(1)
    parts = [oid[at : at + 2] for at in range(0, 2 * depth, 2)]
    path = "/".join([*parts, oid[2 * depth :]])
    made = objects.tree_from({path: b"old\n", "README": b"no note\n", "ab/other": b"none\n"})
    commit = repo.git("commit-tree", made, "-m", "hand-made")
    repo.git("update-ref", REF, commit)

    assert read_note(objects, refs, oid) == "old\n"
    write(opened, {oid: "new"})

    assert repo.git("notes", "--ref=fabro", "show", oid) == "new"
    assert len(repo.git("notes", "--ref=fabro", "list").splitlines()) == 1
    assert repo.git("show", f"{REF}:README") == "no note"
    assert repo.git("show", f"{REF}:ab/other") == "none"
    repo.fsck()


def test_two_notes_of_one_object_in_a_mixed_tree_are_joined_then_replaced_rf11(
    repo: GitRepo, opened: Opened
) -> None:
    objects, refs = opened
    oid, other = named(1), named(2)
    made = objects.tree_from({oid: b"flat\n", f"{oid[:2]}/{oid[2:]}": b"deep\n"})
    repo.git("update-ref", REF, repo.git("commit-tree", made, "-m", "hand-made"))

    assert read_note(objects, refs, oid) == "flat\n\ndeep\n"
    write(opened, {other: "other"})
    assert repo.git("notes", "--ref=fabro", "show", oid) == "flat\n\ndeep"
    write(opened, {oid: "new"})

    assert repo.git("notes", "--ref=fabro", "show", oid) == "new"
    assert len(repo.git("notes", "--ref=fabro", "list").splitlines()) == 2


def test_notes_of_a_sha256_repository(tmp_path: Path) -> None:
    path = tmp_path / "repo"
    path.mkdir()
    repo = GitRepo(path)
    repo.git("init", "-q", "--object-format=sha256")
    commit = Oid(repo.commit({"a": "1"}))
    found = open_repository(path)

    with open_objects(found) as objects, Refs(found, objects) as refs:
        write((objects, refs), {commit: "text"})

    assert repo.git("notes", "--ref=fabro", "show", commit) == "text"


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.dictionaries(st.integers(0, 200), st.sampled_from(["x", "y", None]), max_size=80),
        max_size=5,
    )
)
def test_any_sequence_of_writes_leaves_what_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[dict[int, str | None]]
) -> None:
    path = tmp_path_factory.mktemp("notes")
    GitRepo(path).git("init", "-q")
    found = open_repository(path)
    expected: dict[Oid, str] = {}

    with open_objects(found) as objects, Refs(found, objects) as refs:
        for step in steps:
            notes = {named(number): text for number, text in step.items()}
            write((objects, refs), notes)
            expected |= {oid: text for oid, text in notes.items() if text is not None}
            expected = {
                oid: text for oid, text in expected.items() if notes.get(oid, "") is not None
            }

        found_notes = all_notes(objects, refs)
        assert {oid: objects.read_blob(blob) for oid, blob in found_notes.items()} == {
            oid: f"{text}\n".encode() for oid, text in expected.items()
        }


def _write_hundred(path: str, start: int) -> None:
    found = open_repository(path)
    with open_objects(found) as objects, Refs(found, objects) as refs:
        for number in range(start, start + 100):
            write((objects, refs), {named(number): str(number)})


def test_two_writers_at_once_lose_no_note_rf10(repo: GitRepo) -> None:
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_write_hundred, args=(str(repo.path), start)) for start in (0, 100)
    ]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0, 0]
    assert len(repo.git("notes", "--ref=fabro", "list").splitlines()) == 200
    repo.fsck()


def test_a_left_over_lock_costs_little_patience_rf9(repo: GitRepo, opened: Opened) -> None:
    write(opened, {named(1): "text"})
    (repo.path / ".git" / f"{REF}.lock").touch()
    began = time.monotonic()

    with pytest.raises(BusyError):
        write(opened, {named(2): "text"})

    assert time.monotonic() - began < 2
