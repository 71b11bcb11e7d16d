from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from git_fabro.git.snapshot.ignore import (
    FolderRules,
    PathGlobs,
    Patterns,
    UndecidedError,
    parse_patterns,
)
from tests.conftest import GitRepo

EXAMPLES, EXAMPLES_IN_A_LONG_RUN = 300, 10_000


class Case(NamedTuple):
    """Ignore files of a folder, and what they say; a name with a slash at its end is a folder."""

    claim: str
    rules: dict[str, bytes] | bytes
    ignored: tuple[bytes, ...] = ()
    kept: tuple[bytes, ...] = ()

    @property
    def files(self) -> dict[str, bytes]:
        return self.rules if isinstance(self.rules, dict) else {".gitignore": self.rules}


CASES = [
    Case("comments and empty lines say nothing", b"\n#a\n  \n\r\n!\n/\n//\n", (), (b"#a", b"b")),
    Case("a quoted hash is a name", b"\\#a\n", (b"#a",), (b"\\#a", b"a")),
    Case("a hash that is not first is a name", b"a#b\n #c", (b"a#b", b" #c"), (b"a",)),
    Case("a quoted exclamation mark is a name", b"\\!a\n", (b"!a",), (b"a",)),
    Case("only one exclamation mark negates", b"*\n!!a\n", (b"a",), (b"!a",)),
    Case(
        "a byte order mark at the start is dropped",
        b"\xef\xbb\xbfa\n\xef\xbb\xbfb",
        (b"a",),
        (b"b",),
    ),
    Case("a comment may follow the byte order mark", b"\xef\xbb\xbf#a\n", (), (b"#a",)),
    Case("the last line needs no end", b"a\nb", (b"a", b"b")),
    Case(
        "one carriage return at the end is dropped",
        b"a\r\nb\r\r\nc\r",
        (b"a", b"c", b"b\r"),
        (b"b",),
    ),
    Case("a carriage return inside is a name", b"a\rb\n", (b"a\rb",), (b"a",)),
    Case("a line ends at a NUL byte", b"a\0b\n\0c\n", (b"a",), (b"b", b"c", b"ab")),
    Case("spaces at the end are dropped", b"a  \nb \r\n", (b"a", b"b"), (b"a  ",)),
    Case("a quoted space at the end stays", b"a\\  \n", (b"a ",), (b"a", b"a  ")),
    Case("a space after a quoted backslash is dropped", b"a\\\\  \n", (b"a\\",), (b"a\\ ",)),
    Case("spaces at the start and tabs stay", b" a\nb\t\n", (b" a", b"b\t"), (b"a", b"b")),
    Case("a name is ignored at any depth", b"a\n", (b"a", b"c/a", b"c/d/a/"), (b"ab", b"c/ab")),
    Case("a slash at the start ties to the folder", b"/a\n", (b"a/b",), (b"c/a",)),
    Case("a slash inside ties to the folder", b"a/b\n", (b"a/b",), (b"c/a/b", b"a/c")),
    Case("a slash at the end means folders only", b"a/\n", (b"a/", b"c/a/"), (b"d/a",)),
    Case("two slashes at the end match nothing", b"a//\n", (), (b"a/",)),
    Case("a quoted slash ties as well", b"a\\/b\n", (b"a/b",), (b"c/a/b",)),
    Case("a slash in brackets ties, and matches nothing", b"[a/]b\n", (b"ab",), (b"c/ab", b"a/b")),
    Case("the last match counts", b"*.o\n!a.o\n!b.o\nb.o\n", (b"c.o", b"b.o"), (b"a.o",)),
    Case("a name beats an ending before it, and after", b"!a.o\n*.o\n", (b"a.o",)),
    Case("nothing returns below an ignored folder", b"a/\n!a/b\n", (b"a/b", b"a/c")),
    Case(
        "what returns must be let in from the top",
        b"/*\n!/a\n/a/*\n!/a/b\n",
        (b"c", b"a/d"),
        (b"a/b",),
    ),
    Case(
        "a deeper file beats one above",
        {".gitignore": b"*.o\n!b.o", "d/.gitignore": b"!a.o\nb.o"},
        (b"a.o", b"d/b.o", b"d/c.o"),
        (b"b.o", b"d/a.o", b"d/e/a.o"),
    ),
    Case(
        "a file in an ignored folder says nothing",
        {".gitignore": b"d", "d/.gitignore": b"!*", "d/e/.gitignore": b"!*"},
        (b"d/a", b"d/e/a"),
    ),
    Case(
        "a deeper file is tied to its own folder",
        {"d/.gitignore": b"/a\nb/c", "d/e/.gitignore": b"x/**/y"},
        (b"d/a", b"d/b/c", b"d/e/x/y", b"d/e/x/1/2/y"),
        (b"a", b"b/c", b"d/f/a", b"d/x/y"),
    ),
]


def ignores(files: Mapping[str, bytes], path: bytes) -> bool:
    """What the rules say of a path, all of whose folders are untracked."""

    def rules_in(folder: bytes) -> Patterns | None:
        data = files.get(os.fsdecode(folder) + ".gitignore")
        return None if data is None else parse_patterns(data, source="test")

    *folders, name = path.removesuffix(b"/").split(b"/")
    rules, at = FolderRules.top(None, None, rules_in(b"")), b""
    for folder in folders:
        at += folder + b"/"
        rules = rules.enter(folder, rules_in(at))
    return rules.ignores(name, is_folder=path.endswith(b"/"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.claim) for case in CASES])
def test_a_pattern_says_what_git_says_of(case: Case) -> None:
    said = {path: ignores(case.files, path) for path in case.ignored + case.kept}

    assert said == dict.fromkeys(case.ignored, True) | dict.fromkeys(case.kept, False)


def test_git_itself_says_what_the_table_says(repo: GitRepo) -> None:
    rules: dict[bytes, bytes] = {}
    ignored: set[bytes] = set()
    kept: set[bytes] = set()
    for number, case in enumerate(CASES):
        top = b"%d/" % number
        rules |= {top + name.encode(): data for name, data in case.files.items()}
        # A folder is shown by a file in it.
        ignored |= {top + path + b"~" * path.endswith(b"/") for path in case.ignored}
        kept |= {top + path + b"~" * path.endswith(b"/") for path in case.kept}
    lay_out(repo, rules | dict.fromkeys(ignored | kept, b""))

    left = untracked_by_git(repo)

    assert left - rules.keys() == kept
    assert untracked_by_git(repo, b".") == ignored | kept | rules.keys()


def test_a_file_in_the_tree_beats_the_repositorys_and_that_the_users() -> None:
    user, repository, tree = (
        parse_patterns(data, source="test")
        for data in (b"a\nb\n!c\nd\n", b"!b\nc\nd\n", b"!d\n/a/e\n")
    )

    top = FolderRules.top(user, repository, tree)

    said = {name: top.ignores(name, is_folder=False) for name in (b"a", b"b", b"c", b"d", b"e")}
    assert said == {b"a": True, b"b": False, b"c": True, b"d": False, b"e": False}


def test_patterns_are_equal_when_their_bytes_are() -> None:
    assert parse_patterns(b"a\n", source="one") == parse_patterns(b"a\n", source="two")
    assert parse_patterns(b"a\n", source="one") != parse_patterns(b"b\n", source="one")


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


# Of github/gitignore: what else than plain names and endings is written there.
COLLECTION = (
    rb"*.py[cod]|*$py.class|[Dd]ebug/|[Tt]est[Rr]esult*/|*.[Rr]e[Ss]harper|!?*.[Cc]ache/|~$*|*~"
    rb"|*- [Bb]ackup ([0-9][0-9]).rdl|**/[Pp]ackages/*|!**/[Pp]ackages/build/|**/*.Server/Gen"
    rb"|Generated\ Files/|.#*|\#*\#|._*|*.s[a-w][a-z]|[._]*.un~|.~lock.*#"
    rb"|report.[0-9]*.[0-9]*"
    rb"|cmake-build-*/|!.vscode/*.code-snippets|/[Ll]ibrary/|/[Aa]ssets/AssetStoreTools*|*.tfvars"
    rb"|[Bb]uild/[Ll]inux?/**|core.[1-9]*|/public/packs-test|*.rcl-*.html|npm-debug.log*|.yarn/*"
)


def test_ordinary_patterns_are_decided() -> None:
    rules = {".gitignore": COLLECTION.replace(b"|", b"\n")}
    paths = (b"x.pyc", b"DEBUG/", b"debug/", b"x.Cache/", b"x.cache", b"a - backup (07).rdl")

    said = [ignores(rules, path) for path in paths]

    assert said == [True, False, True, False, False, True]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"a\n" * 5_000_000, id="ten megabytes"),
        pytest.param(b"?" * 2000, id="a long pattern"),
        pytest.param(b"\n".join(b"?%d*" % number for number in range(20_000)), id="many wildcards"),
        pytest.param(b"\n".join(b"*[ab][ab]%d" % number for number in range(9000)), id="many sets"),
    ],
)
def test_a_hostile_file_is_left_to_git(data: bytes) -> None:
    with pytest.raises(UndecidedError, match=r"^d/\.gitignore: ") as caught:
        parse_patterns(data, source="d/.gitignore")

    assert caught.value.source == "d/.gitignore"


@pytest.mark.timeout(60)
def test_a_file_at_the_limit_is_decided_in_time() -> None:
    plain = b"\n".join(b"*.%d" % number for number in range(20_000))
    globs = b"\n".join(b"?%d*" % number for number in range(4000))

    rules = FolderRules.top(
        parse_patterns(plain, source="test"), parse_patterns(globs, source="test"), None
    )

    assert rules.ignores(b"a.19999", is_folder=False)
    assert not any(rules.ignores(b"ab%d" % number, is_folder=False) for number in range(1000))


GLOBS = [
    # pattern, what it keeps out, what not
    ("a", (b"a", b"a/b", b"a/b/c"), (b"ab", b"b/a")),
    ("a/", (b"a/b", b"a/b/c"), (b"a", b"b/a/c")),
    ("*.o", (b"a.o", b"*.o/a"), (b"d/a.o", b"a.o/b")),
    ("**/*.o", (b"a.o", b"d/e/a.o"), (b"a.o/b",)),
    ("**/a/**", (b"a/b", b"d/a/b/c"), (b"a", b"d/a")),
    ("a/**/b", (b"a/b", b"a/x/y/b"), (b"a/b/c",)),
    ("a**/b", (b"ab", b"a/b", b"ax/y/b"), (b"xa/b",)),
    ("[a]", (b"a", b"[a]/b"), (b"a/b",)),
    ("[", (b"[", b"[/a"), (b"a",)),
    ("\\a", (b"a", b"\\a/b"), (b"a/b",)),
    ("./a", (), (b"a",)),
    ("/a", (), (b"a", b"a/b")),
    ("\udcff*", (b"\xff", b"\xffa"), (b"a",)),
]


@pytest.mark.parametrize(
    ("pattern", "out", "kept"), [pytest.param(*row, id=ascii(row[0])) for row in GLOBS]
)
def test_a_path_glob_keeps_out(
    pattern: str, out: tuple[bytes, ...], kept: tuple[bytes, ...]
) -> None:
    globs = PathGlobs((pattern,))

    said = {path: globs.matches(path) for path in out + kept}

    assert said == dict.fromkeys(out, True) | dict.fromkeys(kept, False)


def test_no_path_globs_keep_nothing_out() -> None:
    assert not PathGlobs(()).matches(b"a")


@pytest.mark.parametrize("pattern", ["", "a\0b", "a*/", "**/a/", "*/*", "a\\/", "?" * 2000])
def test_a_path_glob_is_left_to_git(pattern: str) -> None:
    with pytest.raises(UndecidedError) as caught:
        PathGlobs(("a", pattern))

    assert caught.value.pattern == os.fsencode(pattern)


def test_git_does_not_enter_an_untracked_folder_that_a_path_glob_matches(repo: GitRepo) -> None:
    repo.commit({"tracked/a": ""})
    repo.write({"tracked/b/c": "", "untracked/b/c": ""})

    left = untracked_by_git(repo, b":(exclude,glob,top)*/*")

    # The reason for which such a pattern is left to git: it matches neither path.
    assert left == {b"tracked/b/c"}


def test_random_path_globs_keep_out_what_git_keeps_out(
    repo: GitRepo, pytestconfig: pytest.Config
) -> None:
    @examples(pytestconfig)
    @given(
        st.lists(file_paths, min_size=3, max_size=25), st.lists(patterns, min_size=1, max_size=3)
    )
    def check(paths: list[bytes], globs: list[bytes]) -> None:
        try:
            ours = PathGlobs(tuple(os.fsdecode(glob) for glob in globs))
        except UndecidedError:
            return
        lay_out(repo, dict.fromkeys(paths, b""))
        there = untracked_by_git(repo, b".")

        left = untracked_by_git(repo, *(b":(exclude,glob,top)" + glob for glob in globs))

        assert {path for path in there if not ours.matches(path)} == left

    check()
