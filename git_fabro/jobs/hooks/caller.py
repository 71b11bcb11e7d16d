"""The git that runs a hook, as far as its command line tells what the hook is not told."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from git_fabro.git.discover import Repository

_FARTHEST = 12
#: Options of git push that take the next word.
_WITH_VALUE = frozenset({"-o", "--push-option", "--repo", "--receive-pack", "--exec"})
#: Options of git itself that take the next word.
_GITS_OWN = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})


def is_dry_run(repo: Repository) -> bool:
    """Whether the git push above this process is a dry run, which no hook is told.

    Looked up in the command lines of the processes above, through an alias of git's too; False
    where the system does not show them.
    """
    pid = os.getppid()
    for _ in range(_FARTHEST):
        words = _words(pid)
        pushed = push_words(words, repo)
        if pushed is not None:
            return says_dry_run(pushed)
        pid = _parent(pid)
        if pid <= 1:
            break
    return False


def push_words(words: Sequence[str], repo: Repository) -> list[str] | None:
    """What follows ``push`` in a command line of git; None where it is none of a push."""
    if not words:
        return None
    program = os.path.basename(words[0])
    if program == "git-push":
        return list(words[1:])
    if program != "git":
        return None
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GITS_OWN else 1
    if at >= len(words):
        return None
    alias = repo.config(f"alias.{words[at]}")
    if words[at] != "push" and alias is not None and not alias.startswith("!"):
        return push_words(["git", *_split(alias), *words[at + 1 :]], repo)
    return list(words[at + 1 :]) if words[at] == "push" else None


def says_dry_run(words: Sequence[str]) -> bool:
    """Whether the arguments of ``git push`` have ``-n`` or ``--dry-run``, short forms too."""
    said = False
    skips = False
    for word in words:
        if skips:
            skips = False
        elif word == "--":
            break
        elif word in _WITH_VALUE:
            skips = True
        elif word == "--no-dry-run":
            said = False
        elif word.startswith("--"):
            said = said or (len(word) > 3 and "--dry-run".startswith(word))
        elif word.startswith("-"):
            said = said or "n" in word[1:].partition("o")[0]
    return said


def _split(alias: str) -> list[str]:
    try:
        return shlex.split(alias)
    except ValueError:
        return []


def _words(pid: int) -> list[str]:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return os.fsdecode(line).split("\0")[:-1]


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    # The name stands in brackets and may hold anything. Source: proc_pid_stat(5)
    return int(stat.rpartition(b")")[2].split()[1])
