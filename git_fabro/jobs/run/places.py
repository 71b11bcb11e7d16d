"""Where the lines of a run work: the run's own work tree, the user's, or one for each branch."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Oid
from git_fabro.doors import Doors, Tip, WorkTree, shown_path
from git_fabro.errors import ConflictError, FabroError, NotFoundError, RequestError
from git_fabro.git import merge, worktree
from git_fabro.git.discover import Repository
from git_fabro.git.snapshot.choose import choose_engine, rules_of
from git_fabro.git.snapshot.reference import seed_index
from git_fabro.store import RunLog

_MOST_SUFFIXES = 1000


@dataclass(slots=True, kw_only=True)
class Places:
    """The work trees of a run's lines.

    ``folder`` is where nodes run without Git: the user's own. ``in_place`` is whether the run's
    line works in the user's tree, through a private index.
    """

    log: RunLog
    folder: Path
    excludes: tuple[str, ...] = ()
    in_place: bool = False
    remade: bool = False
    _open: dict[str | None, WorkTree] = field(default_factory=dict)

    def of(self, branch: str | None) -> WorkTree:
        """The work tree of a line; a branch's is made when it is first asked for."""
        if branch not in self._open:
            self._open[branch] = self._enter(branch)
        return self._open[branch]

    def _enter(self, branch: str | None) -> WorkTree:
        doors = self.log.doors
        if doors is None:
            return self._without_git(branch)
        if branch is None:
            return self._main(doors)
        tip = self.tip_of(branch)
        path = self.log.directory.branch_worktree(branch)
        with self.log.lock:
            repository, _ = self._linked(doors, path, commit=tip.oid)
        return self._place(doors, path, repository, tip)

    def tip_of(self, branch: str | None) -> Tip:
        """Where a line's ref stands; its work tree is not asked."""
        assert self.log.doors is not None
        if branch in self._open:
            return self._open[branch].tip
        if branch is not None:
            return self._branch_tip(self.log.doors, branch)
        assert self.log.run_tip is not None
        ref = layout.run_ref(self.log.run)
        return Tip(branch=None, ref=ref, oid=self.log.run_tip, exists=True)

    def _main(self, doors: Doors) -> WorkTree:
        """The run's own work tree with the run branch checked out, or the user's for in-place."""
        repository, path = doors.repository, doors.repository.work_tree
        if not self.in_place:
            path = self.log.directory.worktree
            name = layout.run_branch(self.log.run)
            repository, self.remade = self._linked(doors, path, name=name)
        if path is None:
            raise RequestError("a bare repository has no work tree to run in")
        return self._place(doors, path, repository, self.tip_of(None))

    def _linked(
        self, doors: Doors, path: Path, *, name: str | None = None, commit: Oid | None = None
    ) -> tuple[Repository, bool]:
        """A linked work tree that is there, or a new one; and whether it had to be made."""
        try:
            return worktree.at_work_tree(doors.repository, path), False
        except NotFoundError:
            self._make_room(doors, path, name)
            made = worktree.add_work_tree(doors.repository, path, branch=name, commit=commit)
            return made, True

    def _make_room(self, doors: Doors, path: Path, name: str | None) -> None:
        """Moves a folder aside that git no longer knows; refuses to share the run branch.

        Raises:
            ConflictError: somebody has the run branch checked out elsewhere.
        """
        for other in worktree.list_work_trees(doors.repository):
            if name is not None and other.branch == f"refs/heads/{name}" and other.is_there:
                raise ConflictError(
                    f"the run branch is checked out in another work tree: {other.path}",
                    hint=f"git -C {shlex.quote(str(other.path))} switch --detach",
                )
        if path.is_dir() and any(path.iterdir()):
            aside = path.with_name(f"{path.name}.{self.log.holder.owner}.left")
            path.rename(aside)
            self.log.notice("worktree_moved", f"git did not know the work tree; it is {aside.name}")

    def _place(self, doors: Doors, path: Path, repository: Repository, tip: Tip) -> WorkTree:
        index = repository.git_dir / "index"
        if self.in_place and tip.branch is None:
            index = self.log.directory.index
            seed_index(repository, index)
        rules = rules_of(doors.repository, self.excludes)
        return WorkTree(
            path=path,
            tip=tip,
            index=index,
            engine=choose_engine(repository, doors.objects, index, rules),
            repository=repository,
        )

    def _without_git(self, branch: str | None) -> WorkTree:
        tip = Tip(branch=branch, ref="", oid=Oid(""), exists=False)
        return WorkTree(path=self.folder, tip=tip, index=self.folder, engine=None, repository=None)

    def _branch_tip(self, doors: Doors, branch: str) -> Tip:
        """The tip of a branch. A ref that a former fan-out left is never used again.

        One that is there belongs to this fan-out only if the branch has finished a node; otherwise
        the first free ``<branch>+n`` is taken.
        """
        state = self.log.state.branches[branch]
        base = layout.branch_ref(self.log.run, branch)
        last: tuple[str, Oid] | None = None
        for number in range(1, _MOST_SUFFIXES):
            ref = base if number == 1 else f"{base}+{number}"
            oid = doors.refs.read(ref)
            if oid is None:
                break
            last = ref, oid
        # Not what is completed: a restart of the loop inside the branch empties that.
        if last is not None and state.line.current_node is not None:
            return Tip(branch=branch, ref=last[0], oid=last[1], exists=True)
        opened = self.log.state.fan_outs[branch.rpartition("/")[0]]
        return Tip(branch=branch, ref=ref, oid=Oid(opened.base_sha or ""), exists=False)

    def head(self, branch: str) -> Oid | None:
        """The last commit of a branch; where it began if it has none, None without Git."""
        return self.tip_of(branch).oid if self.log.doors is not None else None

    def leave(self, branch: str) -> None:
        """Removes the work tree of a branch that has ended; its commits stay on its ref."""
        place = self._open.pop(branch, None)
        if place is None or self.log.doors is None:
            return
        with self.log.lock:
            if not self.log.catch_up(place):
                self.log.notice("worktree_kept", f"no commit holds all of {branch}: it stays")
                return
            self.log.prove(place)
            _let_go(place)
            try:
                worktree.remove_work_tree(self.log.doors.repository, place.path)
            except FabroError as exc:
                self.log.notice("worktree_kept", f"the work tree of {branch} stays: {exc.message}")

    def take_trees(self, branch: str | None, base: Oid, heads: Sequence[Oid]) -> tuple[str, ...]:
        """Puts the merge of heads into a line's work tree; gives the paths in conflict, sorted."""
        doors = self.log.doors
        if doors is None:
            return ()
        place = self.of(branch)
        with self.log.lock:
            merged = merge.Merge(doors.objects.tree_of(heads[0]))
            if len(heads) > 1:
                ours = place.tip.oid
                merged = merge.merge_trees(doors.repository, doors.objects, base, ours, heads)
            if merged.tree is not None:
                doors.set_files(place, merged.tree)
        return tuple(shown_path(path) for path in merged.conflicts)

    def onto(self, before: Oid, tip: Oid, tree: Oid) -> Oid:
        """A recorded tree on top of commits made by hand since; theirs, in a conflict."""
        doors = self.log.doors
        if doors is None or before == tip:
            return tree
        merged = merge.merge_trees(doors.repository, doors.objects, before, tip, [tree])
        if merged.tree is None:
            paths = ", ".join(shown_path(path) for path in merged.conflicts)
            self.log.notice("files_kept", f"a commit by hand and a node changed the same: {paths}")
            return doors.objects.tree_of(tip)
        return merged.tree

    def verify(self, *, keep_changes: bool) -> str:
        """Makes the run's work tree what the run tip holds; says what had to be done for it.

        ``verified``: it held just that. ``restored``: it was gone. ``reset``: a killed node had
        left changes, which are saved as an operation first. ``kept``: they stay, as asked.
        """
        place, doors = self.of(None), self.log.doors
        if doors is None:
            return "kept"
        if self.remade:
            return "restored"
        if self.in_place:
            return self._verify_in_place(doors, place, keep_changes=keep_changes)
        if worktree.is_clean_at(place.view, place.tip.oid, excludes=self.excludes):
            return "verified"
        if doors.is_index_behind(place):
            doors.bring_index_up(place)
            return "verified"
        if keep_changes:
            self.log.notice("files_kept", "changes that were in the work tree stay in it")
            return "kept"
        name = layout.run_branch(self.log.run)
        self._save_left_over(doors, place)
        worktree.reset_work_tree(
            place.view,
            place.tip.oid,
            branch=name,
            excludes=self.excludes,
            now_s=self.log.clock().timestamp(),
        )
        return "reset"

    def _save_left_over(self, doors: Doors, place: WorkTree) -> None:
        """Saves what a killed node left, as an operation; only then may it be overwritten."""
        log, command = self.log, f"resume {self.log.run}"
        tip = place.tip.oid
        saved = doors.keep_work_tree(command, log.run, place, tip, log.identity, log.when())
        log.notice("files_saved", f"what was in the work tree is saved: git show --stat {saved}")

    def _verify_in_place(self, doors: Doors, place: WorkTree, *, keep_changes: bool) -> str:
        tree, _ = doors.snapshot(place)
        if tree == doors.objects.tree_of(place.tip.oid):
            return "verified"
        if keep_changes:
            self.log.notice("files_kept", "changes that were in the work tree stay in it")
            return "kept"
        self._save_left_over(doors, place)
        doors.set_files_from(place, tree, place.tip.oid)
        return "reset"

    def forget_branches(self) -> None:
        """Removes work trees of branches that a killed driver left; each can be made again."""
        doors = self.log.doors
        if doors is None:
            return
        root = os.path.realpath(self.log.directory.path / "branches")
        keep = {os.path.join(root, branch) for branch in self.log.behind if branch is not None}
        for linked in worktree.list_work_trees(doors.repository):
            path = str(linked.path)
            if path.startswith(root + os.sep) and path not in keep:
                worktree.remove_work_tree(doors.repository, linked.path)

    def let_go(self) -> None:
        """Keeps what the engines know, and ends their watches; the work trees stay as they are."""
        for place in self._open.values():
            _let_go(place)

    def close(self, *, keep: bool) -> None:
        """Leaves the work trees: removed, or kept to be looked at."""
        doors = self.log.doors
        if doors is None or self.in_place or keep:
            return
        for place in list(self._open.values()):
            try:
                worktree.remove_work_tree(doors.repository, place.path)
            except FabroError as exc:
                # The run has ended well, and its record is whole: the folder stays, and is named.
                self.log.tell("worktree_kept", f"the work tree stays: {exc.message}")
        self._open.clear()


def _let_go(place: WorkTree) -> None:
    if place.engine is not None:
        place.engine.close()
