"""Remotes: what one has, fetching from it and pushing to it.

No local ref moves here but tracking refs. A push names each ref with the value that it replaces,
and so can lose nothing that was not looked at; what may be replaced is decided by the caller.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from git_fabro.checkpoint import layout
from git_fabro.checkpoint.model import Move, Oid, RunId, parse_oid, zero
from git_fabro.errors import GitError
from git_fabro.git import transport
from git_fabro.git.discover import Repository
from git_fabro.git.program import Finished
from git_fabro.git.remotes import choose as choose
from git_fabro.git.remotes import known
from git_fabro.git.remotes import names as names

What = Literal["moved", "made", "deleted", "same", "refused"]

# Source: git-push(1), --porcelain
_FLAGS: dict[str, What] = {
    " ": "moved",
    "+": "moved",
    "*": "made",
    "-": "deleted",
    "=": "same",
    "!": "refused",
}
_LINE = re.compile(r"(?P<flag>[ +\-*=!])\t[^\t]*:(?P<ref>[^\t:]+)\t(?P<summary>[^\t]*)\Z")
_REASON = re.compile(r"\((?P<reason>.*)\)\Z")
# Nothing of a push but the refs that are named: no tags, submodules, signature, configured option.
_PUSH = (
    "push",
    "--porcelain",
    "--no-verify",
    "--no-follow-tags",
    "--no-signed",
    "--recurse-submodules=no",
)
# An empty refmap: what remote.<name>.fetch says, a mirror's too, moves nothing meanwhile.
_FETCH = ("--refmap=", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")
# The client says so itself, in the C locale; a server's capabilities cannot be asked otherwise.
_NO_OPTIONS = "does not support push options"
_NO_ATOMIC = "does not support --atomic push"
_GITS_WORDS = ("error: ", "fatal: ", "warning: ")


@dataclass(frozen=True, slots=True)
class RefPushed:
    """What a push did to one ref of the remote; ``reason`` is git's or the remote's, or ""."""

    ref: str
    what: What
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What came of a push: each ref, in order, and what git and the remote said, harmless.

    ``is_atomic`` is whether all refs moved or none; some remotes cannot do that.
    """

    refs: tuple[RefPushed, ...]
    said: str = ""
    is_atomic: bool = True

    @property
    def is_done(self) -> bool:
        """Whether the remote has every ref as it was to be."""
        return all(one.what != "refused" for one in self.refs)

    @property
    def why(self) -> str:
        """Why not: the first refusal, ``stale info: refs/heads/fabro/meta/01JK``; "" if done."""
        refused = [one for one in self.refs if one.what == "refused"]
        causes = [one for one in refused if "atomic" not in one.reason] or refused
        return f"{causes[0].reason or 'refused'}: {causes[0].ref}" if causes else ""

    @property
    def server_said(self) -> str:
        """The first line that the server's own hooks said, "" if they said nothing."""
        lines = [line for line in self.said.splitlines() if line.startswith("remote: ")]
        words = (line.removeprefix("remote: ").strip() for line in lines)
        # What receive-pack says of itself is the reason already, with advice of its own.
        return next((one for one in words if one and not one.startswith(_GITS_WORDS)), "")


def fetch(
    repo: Repository, remote: str, *, run: RunId | None = None, timeout_s: float | None = None
) -> None:
    """Bring the tracking refs of a remote up to what it has of ours; no other ref moves.

    Args:
        repo: The repository.
        remote: The name of a remote.
        run: Only this run's; None: all.
        timeout_s: After how long it is given up; None never.

    Raises:
        GitError: the remote cannot be reached, or not in time.
    """
    refspecs = layout.tracking_refspecs(remote, run)
    args = ("fetch", "--quiet", "--prune", *_FETCH, "--", remote, *refspecs)
    _checked(transport.talk(repo, args, remote, timeout_s=timeout_s), args, remote)


def fetch_ref(repo: Repository, remote: str, ref: str, timeout_s: float | None) -> None:
    """Bring the objects of one ref of a remote here; no ref moves.

    Raises:
        GitError: the remote cannot be reached, or not in time, or has no such ref.
    """
    args = ("fetch", "--quiet", *_FETCH, "--", remote, ref)
    _checked(transport.talk(repo, args, remote, timeout_s=timeout_s), args, remote)


def advertised(
    repo: Repository, remote: str, *patterns: str, timeout_s: float | None = None
) -> dict[str, Oid]:
    """What a remote has now, of the refs that are named: ``{"refs/heads/main": ...}``.

    Args:
        repo: The repository.
        remote: The name of a remote, or a URL.
        patterns: Whole names, or ``refs/heads/*``; none is all refs.
        timeout_s: After how long it is given up; None never.

    Raises:
        GitError: the remote cannot be reached, or not in time.
    """
    args = ("ls-remote", "--quiet", "--", remote, *patterns)
    done = _checked(transport.talk(repo, args, remote, timeout_s=timeout_s), args, remote)
    rows = (line.partition("\t") for line in os.fsdecode(done.stdout).splitlines())
    # A pattern also matches the end of a longer name.
    starts = tuple(pattern.removesuffix("*") for pattern in patterns) or ("",)
    return {ref: parse_oid(oid) for oid, _, ref in rows if ref.startswith(starts)}


def push(
    repo: Repository,
    remote: str,
    moves: Sequence[Move],
    *,
    options: Sequence[str] = (),
    timeout_s: float | None = None,
) -> Pushed:
    """Move refs of a remote, all or none, each only if it still has its old value there.

    Where the remote cannot move several at once, one goes after the other, and the first refusal
    ends it. Push options that the remote does not take are left out.

    Args:
        repo: The repository.
        remote: The name of a remote, or a URL.
        moves: Refs as the remote names them; a zero id means "must not exist", or deletes.
        options: Push options, each given with ``-o``.
        timeout_s: After how long it is given up; None never.

    Raises:
        GitError: the remote cannot be reached, or not in time; nothing is known of the refs then.
    """
    if not moves:
        return Pushed(refs=())
    done = _push(repo, remote, moves, options, timeout_s)
    if _NO_OPTIONS in done.stderr and options:
        return push(repo, remote, moves, timeout_s=timeout_s)
    if _NO_ATOMIC in done.stderr and len(moves) > 1:
        return _one_by_one(repo, remote, moves, options, timeout_s)
    refs = _outcomes(done.stdout, [move.ref for move in moves])
    if done.status != 0 and not any(one.what == "refused" for one in refs):
        raise _failure(done, ("push",), remote)
    return Pushed(refs=refs, said=done.stderr)


def _push(
    repo: Repository,
    remote: str,
    moves: Sequence[Move],
    options: Sequence[str],
    timeout_s: float | None,
) -> Finished:
    settings = ["-c", "push.pushOption="]
    if remote in known(repo):
        settings += ["-c", f"remote.{remote}.mirror=false"]
    how = ["--atomic"] if len(moves) > 1 else []
    how += [f"--push-option={option}" for option in options]
    how += [f"--force-with-lease={move.ref}:{_unless_zero(move.old)}" for move in moves]
    refspecs = [f"{_unless_zero(move.new)}:{move.ref}" for move in moves]
    args = [*settings, *_PUSH, *how, "--", remote, *refspecs]
    return transport.talk(repo, args, remote, timeout_s=timeout_s)


def _unless_zero(oid: Oid) -> str:
    return "" if oid == zero(oid) else oid


def _one_by_one(
    repo: Repository,
    remote: str,
    moves: Sequence[Move],
    options: Sequence[str],
    timeout_s: float | None,
) -> Pushed:
    refs: list[RefPushed] = []
    said: list[str] = []
    for move in moves:
        one = push(repo, remote, (move,), options=options, timeout_s=timeout_s)
        refs += one.refs
        said.append(one.said)
        if not one.is_done:
            break
    return Pushed(refs=tuple(refs), said="".join(said), is_atomic=False)


def _outcomes(printed: bytes, order: Sequence[str]) -> tuple[RefPushed, ...]:
    """What the refs came to, in this order; git prints them in another one."""
    found = {
        one["ref"]: RefPushed(
            transport.shown(one["ref"]),
            _FLAGS[one["flag"]],
            _reason(one["summary"]) if one["flag"] == "!" else "",
        )
        for one in map(_LINE.match, os.fsdecode(printed).splitlines())
        if one is not None
    }
    return tuple(found[ref] for ref in order if ref in found)


def _reason(summary: str) -> str:
    said = _REASON.search(summary)
    return transport.shown(said["reason"] if said is not None else summary)


def _checked(done: Finished, args: Sequence[str], remote: str) -> Finished:
    if done.status != 0:
        raise _failure(done, args, remote)
    return done


def _failure(done: Finished, args: Sequence[str], remote: str) -> GitError:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    fatal = [line.removeprefix("fatal: ") for line in lines if line.startswith("fatal: ")]
    reason = (fatal or lines or [f"status {done.status}"])[0]
    return GitError(
        f"git {args[0]} failed: {reason}",
        argv=("git", *args),
        stderr=done.stderr,
        hint=f"git ls-remote {transport.shown(remote)}",
    )
