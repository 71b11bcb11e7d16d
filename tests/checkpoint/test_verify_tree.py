"""Names and forms of trees: what git refuses is refused, and nothing else is."""

from __future__ import annotations

import pytest

from git_fabro.checkpoint.finding import Fault, Limits
from git_fabro.checkpoint.verify_tree import Comparison, entries, name_fault
from git_fabro.errors import RecordError
from tests.checkpoint.histories import Objects

OID = "1" * 40


# Both lists were compared with what git fsck --strict says of a tree with such an entry.
@pytest.mark.parametrize(
    "name",
    [
        *(b"", b".", b"..", b"a/b", b".git", b".GIT", b".Git ", b".git.", b".git...", b".git/x"),
        *(b"git~1", b"GIT~1", b"git~1.", b".git::$INDEX_ALLOCATION", b".git:x", b"a\\.git"),
        *(b".git\\x", b"x\\.git\\y", b".git\xff", b".g\xe2\x80\x8cit", b"\xe2\x80\x8e.GIT"),
        b".git\xef\xbb\xbf",
    ],
)
def test_names_that_git_refuses_on_some_file_system(name: bytes) -> None:
    assert name_fault(name)


@pytest.mark.parametrize(
    "name",
    [
        *(b"...", b"..\\x", b"git", b"git~2", b".gitx", b".gitignore", b".gitmodules", b"a:.git"),
        *(b".git ~1", b"git~1 x", b"\xff\xfe", b"con", ".g\u0131t".encode(), ".G\u0130T".encode()),
    ],
)
def test_names_that_git_takes(name: bytes) -> None:
    assert name_fault(name) == ""


def test_a_link_in_place_of_gitmodules_is_refused() -> None:
    assert name_fault(b".gitmodules", is_link=True)
    assert name_fault(b"GITMOD~1", is_link=True)
    assert name_fault(b"other", is_link=True) == ""


@pytest.mark.parametrize(
    "data",
    [
        *(b"100644", b"100644 a", b"100644 a\0short", b" a\0" + b"1" * 20),
        *(b"0100644 a\0" + b"1" * 20, b"x a\0" + b"1" * 20, b"100644 a\0" + b"1" * 20 + b"rest"),
    ],
)
def test_bytes_that_are_no_tree(data: bytes) -> None:
    with pytest.raises(RecordError):
        list(entries(data, 20))


def faults(objects: Objects, *rows: tuple[str, bytes, str]) -> list[str]:
    tree = objects.raw_tree(*rows)  # type: ignore[arg-type]
    return [one.message for one in Comparison.of(objects, Limits()).faults(None, tree)]


def test_names_stand_once_and_in_order() -> None:
    objects = Objects()

    assert faults(objects, ("100644", b"a", OID), ("100644", b"b", OID)) == []
    assert faults(objects, ("100644", b"b", OID), ("100644", b"a", OID)) != []
    assert faults(objects, ("100644", b"a", OID), ("100755", b"a", OID)) != []


def test_a_folder_sorts_as_if_its_name_ended_in_a_slash() -> None:
    objects = Objects()
    folder = objects.raw_tree()

    assert faults(objects, ("100644", b"a.b", OID), ("40000", b"a", folder)) == []
    assert faults(objects, ("40000", b"a", folder), ("100644", b"a.b", OID)) != []


@pytest.mark.parametrize("mode", ["100600", "140000", "777777"])
def test_modes_that_git_does_not_write(mode: str) -> None:
    assert faults(Objects(), (mode, b"a", OID)) != []


def test_only_folders_that_changed_are_opened() -> None:
    objects = Objects()
    before = objects.write_tree({"same/a": b"1", "other/a": b"1", "other/b": b"2"})
    after = objects.write_tree({"same/a": b"1", "other/a": b"3", "other/b": b"2"})
    objects.reads = 0

    compared = Comparison.of(objects, Limits())

    assert list(compared.faults(before, after)) == []
    assert [one.path for one in compared.added] == [b"other/a"]
    assert objects.reads == 4


def test_a_tree_that_did_not_change_is_not_opened() -> None:
    objects = Objects()
    tree = objects.write_tree({"a": b"1"})
    objects.reads = 0

    assert list(Comparison.of(objects, Limits()).faults(tree, tree)) == []
    assert objects.reads == 0


def test_folders_without_end_are_given_up() -> None:
    objects = Objects()
    tree = objects.raw_tree()
    for _ in range(300):
        tree = objects.raw_tree(("40000", b"a", tree))

    found = [one.message for one in Comparison.of(objects, Limits()).faults(None, tree)]

    assert found == ["folders 200 deep"]


def test_trees_that_name_one_another_many_times_are_opened_once() -> None:
    objects = Objects()
    tree = objects.write_tree({"a": b"1"})
    for _ in range(10):
        tree = objects.raw_tree(*(("40000", name, tree) for name in (b"a", b"b", b"c")))

    assert list(Comparison.of(objects, Limits()).faults(None, tree)) == []
    assert objects.reads == 11


@pytest.mark.parametrize("files", [{"a": b"1"}, {}], ids=["files", "folders alone"])
def test_more_paths_than_anybody_could_walk_are_refused(files: dict[str, bytes]) -> None:
    objects = Objects()
    tree = objects.write_tree(files)
    for _ in range(25):
        tree = objects.raw_tree(*(("40000", b"d%d" % at, tree) for at in range(10)))

    assert list(Comparison.of(objects, Limits()).faults(None, tree)) == [
        Fault("size", "it adds more than 10000000 paths")
    ]
    assert list(Comparison.of(objects, Limits()).faults(tree, tree)) == []
    assert objects.reads == 26


def test_millions_of_files_are_honest() -> None:
    objects = Objects()
    tree = objects.write_tree({f"{at:03}": b"1" for at in range(900)})
    for width in (100, 100):
        tree = objects.raw_tree(*(("40000", b"%03d" % at, tree) for at in range(width)))

    assert list(Comparison.of(objects, Limits()).faults(None, tree)) == []


def test_a_tree_that_is_too_large_is_not_read() -> None:
    objects = Objects()
    tree = objects.write_tree({"a": b"1"})
    objects.sizes[tree] = 1 << 40

    found = [one.message for one in Comparison.of(objects, Limits()).faults(None, tree)]

    assert found == ["the root: the folder is too large to be read"]
    assert objects.reads == 0
