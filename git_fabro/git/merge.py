"""Three-way merges of trees, by git's merge-ort, without a work tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from git_fabro.checkpoint.model import Commit, Identity, Oid, parse_oid
from git_fabro.errors import GitError
from git_fabro.git.discover import Repository
from git_fabro.git.objects import Objects
from git_fabro.git.program import failure

# Of the commits that stand for the three sides while git merges; nothing ever names them.
_NOBODY = Identity("git-fabro", "merge@git-fabro.invalid")


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge came to: a tree, or the paths in conflict, sorted."""

    tree: Oid | None
    conflicts: tuple[bytes, ...] = ()


def merge_trees(
    repo: Repository, objects: Objects, base: Oid, ours: Oid, theirs: Sequence[Oid]
) -> Merge:
    """Merge several heads into ours, one after the other, each with the same base.

    A head in conflict is left out of what follows, so that the paths of all conflicts are found.

    Args:
        repo: The repository.
        objects: Its objects.
        base: What all sides began from; a commit or a tree, as the others.
        ours: The first side.
        theirs: The heads, in the order in which they are taken.

    Raises:
        GitError: git could not merge, or there is no git program.
    """
    start, merged = objects.tree_of(base), objects.tree_of(ours)
    conflicts: set[bytes] = set()
    for head in theirs:
        result = _merge_two(repo, objects, start, merged, objects.tree_of(head))
        conflicts.update(result.conflicts)
        merged = result.tree or merged
    return Merge(None if conflicts else merged, tuple(sorted(conflicts)))


def _merge_two(repo: Repository, objects: Objects, base: Oid, ours: Oid, theirs: Oid) -> Merge:
    if theirs in (base, ours):
        return Merge(ours)
    if ours == base:
        return Merge(theirs)
    if repo.git is None:
        raise GitError("a merge needs the git program", hint="install git")
    # Commits made for this, because merge-tree finds the base in history. git < 2.40 has no
    # --merge-base, and the branches' own history may have more bases than one.
    root = _stand_in(objects, base)
    sides = (_stand_in(objects, ours, root), _stand_in(objects, theirs, root))
    args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", *sides]
    done = repo.git.call(args, git_dir=repo.common_dir)
    if done.status not in (0, 1):
        raise failure(args, done)
    tree, *names = done.stdout.split(b"\0")[:-1]
    if done.status == 1:
        return Merge(None, tuple(sorted({name for name in names if name})))
    return Merge(parse_oid(tree.decode("ascii")))


def _stand_in(objects: Objects, tree: Oid, *parents: Oid) -> Oid:
    commit = Commit(
        tree=tree, parents=parents, author=_NOBODY, committer=_NOBODY, when=0, message="merge\n"
    )
    return objects.write_commit(commit)
