from __future__ import annotations

import pytest

from git_fabro.checkpoint.model import Oid
from git_fabro.git.discover import open_repository
from git_fabro.git.merge import Merge, merge_trees
from git_fabro.git.objects import open_objects
from tests.conftest import GitRepo

BASE = {"a": "1\n2\n3\n4\n5\n6\n7\n", "b": "b\n", "gone": "g\n" * 20}


@pytest.fixture
def base(repo: GitRepo) -> Oid:
    return Oid(repo.commit(BASE))


def side(repo: GitRepo, base: Oid, files: dict[str, str | None]) -> Oid:
    repo.git("checkout", "-q", "--detach", base)
    for name in [name for name, content in files.items() if content is None]:
        repo.git("rm", "-q", name)
    return Oid(repo.commit({name: text for name, text in files.items() if text is not None}))


def merge(repo: GitRepo, base: Oid, *theirs: Oid, ours: Oid | None = None) -> Merge:
    found = open_repository(repo.path)
    with open_objects(found) as objects:
        return merge_trees(found, objects, base, ours or base, theirs)


def test_changes_of_several_heads_come_together_and_no_work_tree_is_touched(
    repo: GitRepo, base: Oid
) -> None:
    one = side(repo, base, {"a": "one\n2\n3\n4\n5\n6\n7\n", "new/x": "x\n"})
    two = side(repo, base, {"a": "1\n2\n3\n4\n5\n6\ntwo\n", "moved": BASE["gone"], "gone": None})
    three = side(repo, base, {"gone": BASE["gone"] + "edited\n"})
    repo.git("checkout", "-q", "main")

    result = merge(repo, base, one, two, three)

    assert result.conflicts == ()
    assert result.tree is not None
    assert repo.git("show", f"{result.tree}:a") == "one\n2\n3\n4\n5\n6\ntwo"
    assert repo.git("show", f"{result.tree}:moved").endswith("edited")
    assert repo.git("ls-tree", "-r", "--name-only", result.tree).splitlines() == [
        "a",
        "b",
        "moved",
        "new/x",
    ]
    assert repo.git("status", "--porcelain") == ""
    repo.fsck()


def test_paths_of_all_conflicts_are_listed_sorted_and_raw(repo: GitRepo, base: Oid) -> None:
    one = side(repo, base, {"é\n": "1\n", "a": "x\n"})
    two = side(repo, base, {"é\n": "2\n", "b": "fine\n"})
    three = side(repo, base, {"a": "y\n"})

    result = merge(repo, base, one, two, three)

    assert result == Merge(None, (b"a", "é\n".encode()))


def test_one_head_alone_is_its_own_tree(repo: GitRepo, base: Oid) -> None:
    one = side(repo, base, {"a": "x\n"})

    assert merge(repo, base, one).tree == repo.git("rev-parse", f"{one}^{{tree}}")
    assert merge(repo, base, base, one, one).tree == repo.git("rev-parse", f"{one}^{{tree}}")


def test_no_head_is_the_first_side(repo: GitRepo, base: Oid) -> None:
    assert merge(repo, base).tree == repo.git("rev-parse", f"{base}^{{tree}}")


def test_the_base_that_is_given_counts_not_the_history(repo: GitRepo, base: Oid) -> None:
    unrelated = Oid(
        repo.git("commit-tree", f"{side(repo, base, {'b': 'two'})}^{{tree}}", "-m", "x")
    )
    one = side(repo, base, {"a": "x\n"})

    result = merge(repo, base, one, unrelated)

    assert result.tree is not None
    assert repo.git("show", f"{result.tree}:b") == "two"
