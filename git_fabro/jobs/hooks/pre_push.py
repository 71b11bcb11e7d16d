"""Before a push: the record of each run branch that is pushed goes first, to the same remote.

Metadata branch and notes, in one push that moves both or none, each with a lease on what the remote
had. It asks nobody, ends within its deadline, and never stops the push that it goes before.

Standard input has a line for each ref: local ref, its value, remote ref, its value.
Source: githooks(5), pre-push
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from git_fabro import course, sending, sharing
from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, RunId, parse_oid, zero
from git_fabro.course import Tips
from git_fabro.doors import Doors
from git_fabro.errors import FabroError, RecordError, RequestError
from git_fabro.git import remote, transport
from git_fabro.git.remote import Pushed
from git_fabro.jobs.hooks import byhand, caller
from git_fabro.jobs.hooks.speaking import never_failing, say

#: So often is begun again where another push was faster.
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Pushing:
    """A ref that git is about to push; ``new`` is the zero id where it deletes it."""

    new: Oid
    ref: str
    old: Oid


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a push goes: its name for people, what git is told, and when to give up."""

    name: str
    address: str
    due: float

    @property
    def left_s(self) -> float:
        """The seconds that are left; never none at all, so that the message is git's."""
        return max(0.01, self.due - time.monotonic())


def main(argv: Sequence[str] | None = None) -> int:
    """Sends the record of what standard input tells of; always 0."""
    words = sys.argv[1:] if argv is None else list(argv)
    return never_failing(lambda: _hook(words))


def from_pre_commit(
    environment: Mapping[str, str],
) -> tuple[list[str], tuple[Pushing, ...]] | None:
    """What pre-commit tells the hooks that it runs, as it keeps git's lines to itself.

    The remote's name and address, and one ref; None where pre-commit does not run.
    Source: pre-commit, "pre-push", the variables PRE_COMMIT_*.
    """
    name, new = environment.get("PRE_COMMIT_REMOTE_NAME"), environment.get("PRE_COMMIT_TO_REF")
    if name is None or new is None:
        return None
    ref = environment.get("PRE_COMMIT_REMOTE_BRANCH", "")
    tip = parse_oid(new)
    url = environment.get("PRE_COMMIT_REMOTE_URL", name)
    return [name, url], (Pushing(tip, ref, zero(tip)),)


def parse(lines: Iterable[bytes]) -> Iterator[Pushing]:
    """What git is about to push.

    Raises:
        RequestError: a line has not four parts.
        RecordError: a value is no object name.
    """
    for line in lines:
        # What is pushed may be called anything: "HEAD~ (x)" has blanks.
        parts = os.fsdecode(line).rstrip("\n").rsplit(" ", 3)
        if len(parts) != 4:
            raise RequestError("not a line of pre-push on standard input")
        yield Pushing(parse_oid(parts[1]), parts[2], parse_oid(parts[3]))


def _hook(arguments: Sequence[str]) -> None:
    told = from_pre_commit(os.environ)
    words, lines = told or (arguments, tuple(parse(sys.stdin.buffer)))
    runs = [run for line in lines if (run := _run_of(line)) is not None]
    if not runs or not words:
        return
    doors = Doors.open()
    repository = doors.repository
    if repository.config("fabro.push") == "never" or caller.is_dry_run(repository):
        return
    name, url = words[0], words[-1]
    # Where a remote has another address for pushes, its name means the one for fetches here.
    has_own = repository.config(f"remote.{name}.pushurl") is not None
    target = Target(
        name=transport.shown(name),
        address=url if has_own else name,
        due=time.monotonic() + transport.deadline_s(repository),
    )
    for run in runs:
        _flush(doors, run)
    _send(doors, target, runs, {line.ref for line in lines})


def _run_of(line: Pushing) -> RunId | None:
    """The run whose branch is pushed, and not deleted."""
    if not line.ref.startswith(layout.RUN_PREFIX) or line.new == zero(line.new):
        return None
    return layout.run_of(line.ref)


def _flush(doors: Doors, run: RunId) -> None:
    """Commits by hand that no hook saw are recorded now, so that their record can go along."""
    try:
        byhand.record(doors, run)
    except FabroError as exc:
        say(f"warning: {exc.message}")


def _send(doors: Doors, target: Target, runs: Sequence[RunId], taken: set[str]) -> None:
    for _ in range(_TRIES):
        has = remote.advertised(
            doors.repository, target.address, "refs/heads/*", *_asked(runs), timeout_s=target.left_s
        )
        if not any(ref.startswith(layout.HEADS) for ref in has):
            _tell_of_waiting(doors, target, [course.tips_of(doors, run) for run in runs], taken)
            return
        metas = [move for run in runs for move in _meta(doors, target, run, has, taken)]
        if not _is_outrun(_push(doors, Sending(target, runs, has, metas, taken))):
            return
    say(f"warning: others push to {target.name} at the same time; the record waits")
    say("hint: git fabro sync")


def _tell_of_waiting(doors: Doors, target: Target, tips: Sequence[Tips], taken: set[str]) -> None:
    """Says that records wait, and for what; not of those that git itself is about to push."""
    metas = [
        one.meta_tip
        for one in tips
        if one.meta_tip is not None and layout.meta_ref(one.run, one.namespace) not in taken
    ]
    if metas:
        branch = shlex.quote(_base_branch(doors, metas[0]) or "BRANCH")
        say(f"{target.name} has no branch yet, so the record waits")
        say(f"hint: git push {shlex.quote(target.name)} {branch} && git fabro sync")


def _base_branch(doors: Doors, meta: Oid) -> str | None:
    """The branch on which a run began, as run.json says; None if it is not here."""
    try:
        value = json.loads(doors.objects.blob_at(meta, layout.RUN_JSON) or b"{}")
    except ValueError as exc:
        raise RecordError(f"{layout.RUN_JSON}: not JSON: {exc}") from exc
    name = value.get("base_branch") if isinstance(value, dict) else None
    if not isinstance(name, str) or layout.HEADS + name not in doors.refs.list(layout.HEADS):
        return None
    return None if name.startswith("-") or layout.run_of(layout.HEADS + name) else name


@dataclass(frozen=True, slots=True)
class Sending:
    """What is to go where: the runs, what the remote has, and the moves of metadata branches.

    ``taken`` are the refs that git itself is about to push.
    """

    target: Target
    runs: Sequence[RunId]
    has: Mapping[str, Oid]
    metas: Sequence[Move]
    taken: set[str]


def _is_outrun(done: Pushed) -> bool:
    """Whether another push was faster."""
    return any(one.reason == "stale info" for one in done.refs)


def _asked(runs: Sequence[RunId]) -> list[str]:
    return [layout.NOTES_REF, *(layout.meta_ref(run, "hidden") for run in runs)]


def _meta(
    doors: Doors, target: Target, run: RunId, has: Mapping[str, Oid], taken: set[str]
) -> Iterator[Move]:
    """The move of a metadata branch there, if it has anything to send and loses nothing."""
    for ref in (layout.meta_ref(run), layout.meta_ref(run, "hidden")):
        tip = doors.refs.read(ref)
        if tip is None or ref in taken:
            continue
        theirs = has.get(ref)
        standing = sending.standing(doors.objects, tip, theirs)
        if standing == "ahead":
            yield Move(ref, theirs or zero(tip), tip)
        elif standing == "behind":
            option, branches = layout.OPTION_REWIND, f"{layout.run_branch(run)} {ref}"
            say(f"warning: the remote's record goes further than the one here, and stays: {run}")
            say(f"hint: git push --force-with-lease -o {option} {target.name} {branches}")
        elif standing != "same":
            say(f"warning: the remote's record has what is not here, and stays as it is: {run}")
            say(f"hint: git fabro sync --run {run}")


def _push(doors: Doors, what: Sending) -> Pushed:
    """Sends all of it; where the remote refuses, with fewer notes, and then with none.

    Some take no notes on commits that they do not have yet, as those that are about to be pushed.
    """
    target, metas = what.target, list(what.metas)
    noted = [] if layout.NOTES_REF in what.taken else _notes(doors, what, is_pushed=False)
    done = _attempt(doors, target, [*metas, *noted])
    if done.is_done or _is_outrun(done) or not noted:
        return _told(target, done)
    fewer = _notes(doors, what, is_pushed=True)
    if fewer and fewer != noted:
        again = _attempt(doors, target, [*metas, *fewer])
        if again.is_done or _is_outrun(again):
            return again
    bare = _attempt(doors, target, metas)
    if bare.is_done:
        say(f"{target.name} does not take the notes now; git fabro sync sends them later")
    return _told(target, bare)


def _attempt(doors: Doors, target: Target, moves: Sequence[Move]) -> Pushed:
    return remote.push(doors.repository, target.address, moves, timeout_s=target.left_s)


def _told(target: Target, done: Pushed) -> Pushed:
    """The same, once a refusal has been said."""
    if not done.is_done and not _is_outrun(done):
        say(f"warning: {target.name} refuses the record: {done.why}")
        for line in done.said.splitlines():
            if line.startswith("remote: "):
                say(line)
    return done


def _notes(doors: Doors, what: Sending, *, is_pushed: bool) -> list[Move]:
    """The notes of these runs on top of those that the remote has; none where it has them.

    ``is_pushed``: only those on commits that the remote has, or gets with its metadata branches.
    """
    theirs = what.has.get(layout.NOTES_REF)
    if theirs is not None and not doors.objects.exists(theirs):
        remote.fetch_ref(
            doors.repository, what.target.address, layout.NOTES_REF, what.target.left_s
        )
    tips = [course.tips_of(doors, run) for run in what.runs]
    if is_pushed:
        tips = [_there(doors, what, one) for one in tips]
    move = sharing.to_send(doors, tips, doors.refs.read(layout.NOTES_REF), theirs)
    return [] if move is None else [move]


def _there(doors: Doors, what: Sending, tips: Tips) -> Tips:
    """Where the branches of a run stand at the remote once its metadata is sent.

    What git itself is about to push counts as it stands there now.
    """
    meta = layout.meta_ref(tips.run, tips.namespace)
    run_tip = what.has.get(layout.run_ref(tips.run))
    meta_tip = what.has.get(meta) if meta in what.taken else tips.meta_tip
    here = [one if one and doors.objects.exists(one) else None for one in (run_tip, meta_tip)]
    return tips._replace(run_tip=here[0], meta_tip=here[1])


if __name__ == "__main__":
    raise SystemExit(main())
