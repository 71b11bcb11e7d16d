from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_fabro.git.snapshot.ignore import (
    FolderRules,
    Patterns,
    parse_patterns,
)
from tests.conftest import GitRepo

EXAMPLES, EXAMPLES_IN_A_LONG_RUN = 300, 10_000


def parsed(path: Path) -> Patterns | None:
    return parse_patterns(path.read_bytes(), source=str(path)) if path.is_file() else None


def untracked(repo: GitRepo) -> set[bytes]:
    """What a scanner finds that asks our rules, as paths from the top."""
    git = repo.path / ".git"
    top = FolderRules.top(
        parsed(git / "excludes"), parsed(git / "info" / "exclude"), parsed(repo.path / ".gitignore")
    )
    return set(scan(os.fsencode(repo.path), b"", top))


def scan(top: bytes, folder: bytes, rules: FolderRules) -> Iterator[bytes]:
    for entry in os.scandir(os.path.join(top, folder)):
        is_folder = entry.is_dir(follow_symlinks=False)
        path = folder + entry.name
        if path == b".git" or rules.ignores(entry.name, is_folder=is_folder):
            continue
        if not is_folder:
            yield path
            continue
        gitignore = parsed(Path(os.fsdecode(entry.path), ".gitignore"))
        yield from scan(top, path + b"/", rules.enter(entry.name, gitignore))


def untracked_by_git(repo: GitRepo, *pathspecs: bytes) -> set[bytes]:
    settings = ("-c", f"core.excludesFile={repo.path}/.git/excludes")
    specs = [os.fsdecode(spec) for spec in (b".", *pathspecs)]
    rules = [] if pathspecs else ["--exclude-standard"]
    listed = repo.git_bytes(*settings, "ls-files", "-o", "-z", *rules, "--", *specs)
    return set(listed.split(b"\0")[:-1])


def lay_out(repo: GitRepo, files: Mapping[bytes, bytes]) -> None:
    """Files in an emptied work tree; one whose place is taken by another kind is left out."""
    for entry in os.scandir(os.fsencode(repo.path)):
        if entry.is_dir(follow_symlinks=False) and entry.name != b".git":
            shutil.rmtree(entry.path)
        elif entry.name != b".git":
            os.remove(entry.path)
    for name in ("excludes", "info/exclude"):
        (repo.path / ".git" / name).unlink(missing_ok=True)
    for path, content in files.items():
        place = os.path.join(os.fsencode(repo.path), path)
        try:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            Path(os.fsdecode(place)).write_bytes(content)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue


PIECES = (
    *(b"a", b"a", b"b", b"c", b"ab", b".", b"-", b"\xff", b"\xc3\xa9"),
    *(b"*", b"*", b"**", b"**/", b"/**", b"***", b"?", b"/", b"/"),
    *(b"[ab]", b"[!a]", b"[^a]", b"[]a]", b"[!]a]", b"[a-c]", b"[c-a]", b"[--b]", b"[a-]", b"[-a]"),
    *(b"[a/b]", b"[\\]a]", b"[\\a-\\c]", b"[[:alpha:]]", b"[![:punct:]b]", b"[[:nope:]]"),
    *(b"[[:alpha:]-c]", b"[a-[:alpha:]]", b"[[:]", b"[[a:]", b"[[::]]", b"[", b"]", b"[a", b"[:"),
    *(b"\\", b"\\a", b"\\*", b"\\/", b"\\[", b"\\ ", b"\\!", b"\\#", b"\\\\"),
    *(b"!", b"#", b" ", b"  ", b"\t", b"\r", b"\0", b"^", b"-", b":"),
)
patterns = st.builds(
    lambda start, middle, end: start + b"".join(middle) + end,
    st.sampled_from([b"", b"", b"", b"!", b"/", b"!/", b"**/", b"#"]),
    st.lists(st.sampled_from(PIECES), max_size=6),
    st.sampled_from([b"", b"", b"", b"/", b"/**", b"/*", b" ", b"\\ ", b"\r"]),
)
ignore_files = st.builds(
    lambda bom, lines, end: bom + end.join(lines),
    st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]),
    st.lists(patterns, max_size=6),
    st.sampled_from([b"\n", b"\n", b"\r\n"]),
)
names = st.lists(
    st.sampled_from(b"aaaabbbccc..-!#*?[]\\ \t\r:^\xff\xc3\xa9"), min_size=1, max_size=3
).map(bytes)
folders = st.lists(names.filter(lambda name: name not in (b".", b"..")), min_size=0, max_size=3)
file_paths = st.builds(
    lambda folder, name: b"/".join([*folder, name]),
    folders,
    names.filter(lambda name: name not in (b".", b"..")),
)


@st.composite
def work_trees(draw: st.DrawFn) -> dict[bytes, bytes]:
    paths = draw(st.lists(file_paths, min_size=3, max_size=25, unique=True))
    tree = dict.fromkeys(paths, b"")
    inner = sorted({path.rpartition(b"/")[0] for path in paths if b"/" in path})
    ruled = draw(st.lists(st.sampled_from(inner), max_size=3)) if inner else []
    for folder in (b"", *ruled):
        tree[folder + b"/.gitignore" if folder else b".gitignore"] = draw(ignore_files)
    for place in (b".git/excludes", b".git/info/exclude"):
        tree[place] = draw(st.one_of(st.just(b""), ignore_files))
    return tree


def examples(config: pytest.Config) -> settings:
    count = EXAMPLES_IN_A_LONG_RUN if config.getoption("--long") else EXAMPLES
    return settings(max_examples=count, deadline=None)


def test_random_rules_leave_the_files_of_a_random_tree_that_git_leaves(
    repo: GitRepo, pytestconfig: pytest.Config
) -> None:
    @examples(pytestconfig)
    @given(work_trees())
    def check(tree: dict[bytes, bytes]) -> None:
        lay_out(repo, tree)

        assert untracked(repo) == untracked_by_git(repo)

    check()
