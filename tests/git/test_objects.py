from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_fabro.checkpoint.model import Commit, Identity, Oid, TreeEntry
from git_fabro.errors import MissingObjectError, RecordError, RequestError
from git_fabro.git import treecount
from git_fabro.git.discover import open_repository
from git_fabro.git.objects import Objects, open_objects
from tests.conftest import WHEN, GitRepo

ME = Identity("A. Tester", "tester@example.com")
EMPTY_SHA1 = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
EMPTY_SHA256 = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"


def commit(tree: Oid, *parents: Oid, message: str = "work\n", when: int = WHEN) -> Commit:
    return Commit(tree=tree, parents=parents, author=ME, committer=ME, when=when, message=message)


@pytest.fixture(params=["sha1", "sha256"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> GitRepo:
    path = tmp_path / "repo"
    path.mkdir()
    made = GitRepo(path)
    made.git("init", "-q", "-b", "main", f"--object-format={request.param}")
    return made


def opened(repo: GitRepo) -> Objects:
    return open_objects(open_repository(repo.path))


def test_objects_have_the_names_that_git_gives_them_in_both_formats(either: GitRepo) -> None:
    objects = opened(either)

    blob = objects.write_blob(b"hello\n")
    tree = objects.tree_from({"a/b/c": b"hello\n", "a.b": b"", "a0": b"x"})
    made = objects.write_commit(commit(tree))

    assert blob == either.git("hash-object", "--stdin", stdin=b"hello\n")
    assert tree == either.git("rev-parse", f"{made}^{{tree}}")
    assert either.git("show", f"{made}:a/b/c") == "hello"
    either.git("update-ref", "refs/heads/main", made)
    either.fsck()


def test_packed_objects_are_read_in_both_formats(either: GitRepo) -> None:
    made = Oid(either.commit({"a/b": "one\n", "c": "two\n"}, message="first\n\nbody"))
    objects = opened(either)
    either.git("gc", "-q", "--prune=now")

    read = objects.read_commit(made)

    assert read == commit(read.tree, message="first\n\nbody\n")
    assert objects.blob_at(made, "a/b") == b"one\n"
    assert objects.blob_at(made, "a") is None
    assert objects.blob_at(made, "nowhere/b") is None


def test_a_pack_that_appears_later_is_seen(repo: GitRepo) -> None:
    first = Oid(repo.commit({"a": "1"}))
    repo.git("gc", "-q")
    objects = opened(repo)
    objects.read_commit(first)

    second = Oid(repo.commit({"a": "2"}))
    repo.git("gc", "-q", "--prune=now")

    assert objects.read_commit(second).parents == (first,)
    assert objects.exists(first)


def test_an_absent_object_is_a_missing_object(repo: GitRepo) -> None:
    objects = opened(repo)

    assert not objects.exists(Oid("a" * 40))
    with pytest.raises(MissingObjectError):
        objects.read_blob(Oid("a" * 40))


def test_the_empty_tree_has_the_name_of_its_format_ob15(either: GitRepo) -> None:
    written = opened(either).tree_from({})

    assert written in (EMPTY_SHA1, EMPTY_SHA256)
    assert len(written) == len(either.git("hash-object", "--stdin"))


def test_nothing_that_is_packed_is_written_again_ob6(repo: GitRepo) -> None:
    repo.commit({f"{folder}/x": folder for folder in "abcde"})
    repo.git("gc", "-q", "--prune=now")
    objects = opened(repo)
    tree = Oid(repo.git("rev-parse", "HEAD^{tree}"))

    again = objects.tree_from({"a/x": b"a"}, base=tree)
    rebuilt = objects.tree_from({f"{folder}/x": folder.encode() for folder in "abcde"})

    assert again == rebuilt == tree
    assert repo.git("count-objects").startswith("0 objects")


_TEXTS = st.text(max_size=12)


@settings(max_examples=60, deadline=None)
@given(name=_TEXTS, email=_TEXTS)
def test_a_commit_exists_only_with_an_identity_that_git_accepts_ob8(
    tmp_path_factory: pytest.TempPathFactory, name: str, email: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "identities"
    made = GitRepo(path)
    if not path.exists():
        path.mkdir()
        made.git("init", "-q")
    objects = Objects(path / ".git", "sha1")
    who = Identity(name, email)
    tree = objects.tree_from({})

    try:
        oid = objects.write_commit(
            Commit(tree=tree, parents=(), author=who, committer=who, when=WHEN, message="m\n")
        )
    except RequestError:
        return

    raw = made.git_bytes("cat-file", "commit", oid)
    assert made.git("hash-object", "-t", "commit", "--stdin", stdin=raw) == oid
    assert objects.read_commit(oid).author.email == email


@pytest.mark.parametrize(
    "who",
    [Identity("", "a@b"), Identity("a", ""), Identity("a<b", "a@b"), Identity("a\nb", "a@b")],
)
def test_a_broken_identity_is_refused_before_an_object_exists_ob8(
    repo: GitRepo, who: Identity
) -> None:
    objects = opened(repo)
    tree = objects.tree_from({})

    with pytest.raises(RequestError, match="identity"):
        objects.write_commit(
            Commit(tree=tree, parents=(), author=who, committer=ME, when=WHEN, message="m\n")
        )

    assert repo.git("count-objects").startswith("1 objects")


def test_a_replacing_ref_changes_nothing_that_is_read_ob9(repo: GitRepo) -> None:
    one = Oid(repo.commit({"a": "1"}, message="one"))
    two = repo.commit({"a": "2"}, message="two")
    repo.git("replace", one, two)

    assert opened(repo).read_commit(one).subject == "one"


def test_what_a_partial_clone_lacks_is_fetched_ob10(repo: GitRepo, tmp_path: Path) -> None:
    tip = Oid(repo.commit({"a": "content"}))
    repo.git("config", "uploadpack.allowFilter", "true")
    source = f"file://{repo.path}"
    repo.git("clone", "-q", "--bare", "--filter=blob:none", source, str(tmp_path / "partial"))

    with open_objects(open_repository(tmp_path / "partial")) as objects:
        assert objects.blob_at(tip, "a") == b"content"


def test_an_alternate_is_read(repo: GitRepo, tmp_path: Path) -> None:
    tip = Oid(repo.commit({"a": "content"}))
    repo.git("clone", "-q", "--shared", str(repo.path), str(tmp_path / "other"))

    with open_objects(open_repository(tmp_path / "other")) as objects:
        assert objects.blob_at(tip, "a") == b"content"


def test_history_follows_first_parents_newest_first(repo: GitRepo) -> None:
    tips = [Oid(repo.commit({"a": str(number)})) for number in range(4)]
    repo.git("checkout", "-q", "-b", "side", tips[1])
    repo.commit({"b": "side"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "side")
    merge = Oid(repo.git("rev-parse", "HEAD"))
    objects = opened(repo)

    assert list(objects.history(merge)) == [merge, *reversed(tips)]
    assert list(objects.history(merge, stop=tips[1])) == [merge, tips[3], tips[2]]
    assert list(objects.history(merge, limit=2)) == [merge, tips[3]]
    assert [oid for oid, _ in objects.walk(merge, stop=tips[2])] == [merge, tips[3]]
    assert objects.read_commit(merge).parents[0] == tips[3]


def test_ancestry_is_what_git_says_it_is(repo: GitRepo) -> None:
    base = repo.commit({"a": "0"})
    repo.commit({"a": "1"})
    repo.git("checkout", "-q", "-b", "side", base)
    repo.commit({"b": "1"})
    repo.commit({"b": "2"})
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--no-edit", "side")
    repo.git("checkout", "-q", "--orphan", "other")
    repo.commit({"c": "1"})
    objects = opened(repo)
    every = [Oid(oid) for oid in repo.git("rev-list", "--all").splitlines()]

    for one in every:
        for two in every:
            status = subprocess.run(
                ["git", "merge-base", "--is-ancestor", one, two], cwd=repo.path
            ).returncode
            assert objects.is_ancestor(one, two) == (status == 0), (one, two)


def test_a_shallow_history_ends_in_a_missing_object(repo: GitRepo, tmp_path: Path) -> None:
    repo.commit({"a": "1"})
    tip = Oid(repo.commit({"a": "2"}))
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(tmp_path / "shallow"))

    with (
        open_objects(open_repository(tmp_path / "shallow")) as objects,
        pytest.raises(MissingObjectError),
    ):
        list(objects.history(tip))


def test_changed_paths_keep_the_mode_they_had(repo: GitRepo) -> None:
    repo.write({"bin/run": "#!/bin/sh\n", "plain": "1"})
    (repo.path / "bin/run").chmod(0o755)
    (repo.path / "link").symlink_to("plain")
    repo.commit()
    base = Oid(repo.git("rev-parse", "HEAD^{tree}"))

    tree = opened(repo).tree_from({"bin/run": b"new", "plain": None, "new/x": b""}, base)

    assert repo.git("ls-tree", "-r", "--format=%(objectmode) %(path)", tree).splitlines() == [
        "100755 bin/run",
        "120000 link",
        "100644 new/x",
    ]


def test_a_file_takes_the_place_of_a_folder_and_the_reverse(repo: GitRepo) -> None:
    objects = opened(repo)
    base = objects.tree_from({"a/b": b"1", "c": b"2"})

    tree = objects.tree_from({"a": b"file", "c/d": b"below"}, base)

    assert repo.git("ls-tree", "-r", "--name-only", tree).splitlines() == ["a", "c/d"]


@pytest.mark.parametrize(
    "path", ["", "/a", "a//b", "a/", "../a", "a/./b", ".git/config", "a/.GIT/x", "a\0b"]
)
def test_a_path_that_no_tree_may_hold_is_refused_wt6(repo: GitRepo, path: str) -> None:
    with pytest.raises((RequestError, RecordError)):
        opened(repo).tree_from({path: b""})


def test_differences_are_those_of_git(either: GitRepo) -> None:
    one = Oid(either.commit({"a": "1", "b/c": "2", "d": "3", "e/f": "4", "same": "s"}))
    (either.path / "a").unlink()
    (either.path / "a").symlink_to("b")
    (either.path / "d").unlink()
    either.git("rm", "-q", "-r", "e")
    (either.path / "b/c").chmod(0o755)
    two = Oid(either.commit({"e": "now a file", "new/é": "5"}))

    found = opened(either).diff(one, two)

    listed = either.git_bytes("diff", "--name-status", "-z", "--no-renames", one, two)
    status, path = listed.split(b"\0")[:-1:2], listed.split(b"\0")[1::2]
    expected = sorted(zip(path, [it.decode() for it in status], strict=True))
    assert [(change.path, change.status) for change in found] == expected
    trees = (Oid(either.git("rev-parse", f"{commit}^{{tree}}")) for commit in (one, two))
    counted = treecount.count(*trees, opened(either).tree_data, opened(either).object_format)
    assert counted.files == len(expected)


def test_a_folder_that_stands_at_many_paths_counts_at_each(either: GitRepo) -> None:
    empty = Oid(either.git("mktree", stdin=b""))
    blob = either.git("hash-object", "-w", "--stdin", stdin=b"x")
    tree = either.git("mktree", stdin=f"100644 blob {blob}\tfile\n".encode())
    for _ in range(3):
        rows = "".join(f"040000 tree {tree}\td{number}\n" for number in range(5))
        tree = either.git("mktree", stdin=rows.encode())

    objects = opened(either)
    counted = treecount.count(empty, Oid(tree), objects.tree_data, objects.object_format)

    rows = either.git("diff", "--raw", "--no-renames", empty, tree)
    assert counted == (len(rows.splitlines()), 125 + 125 + 25 + 5)


def test_a_blob_above_the_limit_is_not_read(repo: GitRepo) -> None:
    objects = opened(repo)
    oid = objects.write_blob(b"x" * 1000)

    assert len(objects.read_blob(oid, limit_bytes=1000)) == 1000
    with pytest.raises(RecordError, match="more than 999"):
        objects.read_blob(oid, limit_bytes=999)


def test_a_commit_in_another_encoding_is_read(repo: GitRepo) -> None:
    message = "Grüße\n".encode("latin-1")
    repo.write({"a": "1"})
    repo.git("add", "-A")
    repo.git("-c", "i18n.commitEncoding=latin1", "commit", "-q", "-F", "-", stdin=message)

    assert opened(repo).read_commit(Oid(repo.git("rev-parse", "HEAD"))).subject == "Grüße"


def test_the_kind_of_an_object_is_checked(repo: GitRepo) -> None:
    objects = opened(repo)
    tree = objects.write_tree({b"a": TreeEntry(0o100644, objects.write_blob(b""))})

    with pytest.raises(RecordError, match="is a tree, not a blob"):
        objects.read_blob(tree)


def test_a_writer_beside_gc_never_fails_ob11(repo: GitRepo) -> None:
    repo.commit({"a": "1"})
    objects = opened(repo)
    for round_ in range(4):
        collecting = subprocess.Popen(["git", "gc", "-q", "--prune=now"], cwd=repo.path)
        number = 0
        while collecting.poll() is None:
            tip = Oid(repo.git("rev-parse", "HEAD"))
            tree = objects.tree_from({"a": b"%d %d" % (round_, number)})
            objects.write_commit(commit(tree, tip))
            objects.read_commit(tip)
            number += 1

    repo.fsck()


@pytest.mark.parametrize("base", ["true", "false"], ids=["offsets", "names"])
def test_sizes_are_known_without_the_content(either: GitRepo, base: str) -> None:
    text = "".join(f"line {number}\n" for number in range(2000))
    either.commit({"a": text, "b": "", "c/d": "x"})
    either.commit({"a": text + "more\n"})
    loose = opened(either)
    listed = either.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    names = [Oid(name) for name in listed.splitlines()]
    sizes = {name: int(either.git("cat-file", "-s", name)) for name in names}

    assert {name: loose.size(name) for name in names} == sizes
    either.git("-c", f"repack.useDeltaBaseOffset={base}", "repack", "-q", "-adf")
    either.git("prune-packed")
    (pack,) = (either.path / ".git/objects/pack").glob("*.idx")
    assert "chain length = 1" in either.git("verify-pack", "-v", str(pack))
    packed = opened(either)
    assert {name: packed.size(name) for name in names} == sizes


def test_the_size_of_what_is_absent_or_damaged_is_an_error(repo: GitRepo) -> None:
    objects = opened(repo)
    blob = objects.write_blob(b"text")
    (repo.path / ".git/objects" / blob[:2] / blob[2:]).chmod(0o600)
    (repo.path / ".git/objects" / blob[:2] / blob[2:]).write_bytes(b"no object")

    with pytest.raises(RecordError):
        objects.size(blob)
    with pytest.raises(MissingObjectError):
        objects.size(Oid("1" * 40))
