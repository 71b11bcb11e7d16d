"""The server's hook: a push that would break the record of a run is refused as a whole.

Standard input has a line for each ref, as git gives it to pre-receive; the objects are seen through
the quarantine that the environment names. Nothing is written but the reason.

Source: githooks(5), pre-receive; git-receive-pack(1), "Quarantine Environment"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from git_fabro.branches import Source
from git_fabro.checkpoint import layout, verify
from git_fabro.checkpoint.finding import Finding, plain
from git_fabro.checkpoint.model import Oid, parse_oid
from git_fabro.checkpoint.verify import Grants, Update
from git_fabro.errors import FabroError, RequestError
from git_fabro.facts import RepositoryFacts, limits_of
from git_fabro.git.discover import Repository

#: So many findings are printed; the rest is counted.
_MOST = 50
#: What is found where a run branch comes alone, where an option lacks, where none would do.
_NO_RECORD = "the run has no metadata branch"
_NO_OPTION = "the push has not the option "
_NOT_ALLOWED = "which this server does not allow"


def main() -> int:
    """Judges the push that standard input tells of; 0 if it may happen."""
    try:
        updates = tuple(parse(sys.stdin.buffer))
        source = Source.open(".")
        findings = check(source, updates, os.environ)
        _tell(findings, sys.stderr)
        if findings:
            has_branch = bool(source.refs.list(layout.HEADS))
            _say(sys.stderr, f"hint: {hint_of(findings, has_branch=has_branch)}")
        return 1 if findings else 0
    except FabroError as exc:
        _say(sys.stderr, f"fabro: refused: the record cannot be checked: {exc.message}")
        _say(sys.stderr, f"hint: {exc.hint or 'git fabro fsck, in the repository on the server'}")
        return 1
    except Exception as exc:
        if os.environ.get("FABRO_DEBUG"):
            raise
        _say(sys.stderr, f"fabro: refused: git-fabro has a bug: {type(exc).__name__}: {exc}")
        _say(sys.stderr, "hint: please report it, with FABRO_DEBUG=1 in the server's environment")
        return 1


def check(
    source: Source, updates: Sequence[Update], environment: Mapping[str, str]
) -> tuple[Finding, ...]:
    """What is wrong with a push to this repository.

    Args:
        source: The repository, with the objects of the push.
        updates: All refs of the push.
        environment: Where git puts the push options.

    Raises:
        RequestError: the configuration is wrong.
    """
    grants = grants_of(source.repository, push_options(environment))
    return verify.judge(RepositoryFacts(source), limits_of(source.repository), grants, updates)


def parse(lines: Iterable[bytes]) -> Iterator[Update]:
    """The updates of a push: one line each of old value, new value and ref.

    Raises:
        RecordError: a value is no object name.
        RequestError: a line has not three parts.
    """
    for line in lines:
        parts = os.fsdecode(line).rstrip("\n").split(" ", 2)
        if len(parts) != 3:
            raise RequestError("not a line of pre-receive on standard input")
        old, new, ref = parts
        yield Update(ref=ref, old=_value(old), new=_value(new))


def _value(text: str) -> Oid | None:
    oid = parse_oid(text)
    return None if set(oid) == {"0"} else oid


def push_options(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What was given to ``git push -o``."""
    count = environment.get("GIT_PUSH_OPTION_COUNT", "0")
    numbers = range(int(count)) if count.isdecimal() else range(0)
    return tuple(environment.get(f"GIT_PUSH_OPTION_{number}", "") for number in numbers)


def grants_of(repository: Repository, options: Sequence[str]) -> Grants:
    """What the push asked for, and what this server's configuration allows."""
    return Grants(
        rewind_asked=layout.OPTION_REWIND in options,
        rewind_allowed=repository.config_bool("fabro.server.allowRewind"),
        prune_asked=layout.OPTION_PRUNE in options,
        delete_allowed=repository.config_bool("fabro.server.allowDelete"),
    )


def hint_of(findings: Sequence[Finding], *, has_branch: bool) -> str:
    """The command that helps who pushed.

    Args:
        findings: Why the push is refused.
        has_branch: Whether the repository has any; a client sends no record to one that has none.
    """
    if any(one.message.endswith(_NO_RECORD) for one in findings):
        first = "" if has_branch else "git push REMOTE BRANCH, a branch of your own, and then "
        return f"{first}git fabro sync"
    return next(filter(None, map(_option_hint, findings)), "git fabro fsck")


def _option_hint(one: Finding) -> str | None:
    """How what was refused may be done; None if neither an option nor the server's word helps."""
    if one.message.endswith(_NOT_ALLOWED):
        key = "allowDelete" if one.rule == "delete" else "allowRewind"
        return f"git config fabro.server.{key} true, in the repository on the server"
    _, found, option = one.message.partition(_NO_OPTION)
    if not found:
        return None
    run = layout.run_of(one.ref)
    if run is None or option != layout.OPTION_REWIND:
        return f"git push -o {option}"
    is_hidden = one.ref.startswith(layout.HIDDEN_META_PREFIX)
    meta = layout.meta_ref(run, "hidden" if is_hidden else "heads").removeprefix(layout.HEADS)
    return f"git push -f -o {option} REMOTE {layout.run_branch(run)} {meta}"


def _tell(findings: Sequence[Finding], stderr: TextIO) -> None:
    for one in findings[:_MOST]:
        commit = f" {one.commit[:12]}" if one.commit is not None else ""
        _say(stderr, f"fabro: refused {one.ref}{commit}: {one.message} [{one.rule}]")
    if len(findings) > _MOST:
        _say(stderr, f"fabro: and {len(findings) - _MOST} more")


def _say(stderr: TextIO, text: str) -> None:
    stderr.write(plain(text) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
