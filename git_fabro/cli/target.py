"""From what a person types to a checkpoint of a run: ``@N``, ``node@N``, ``node``, an object id."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from git_fabro.cli import render
from git_fabro.errors import NotFoundError, RequestError
from git_fabro.jobs.look import Found

_OBJECT = re.compile(r"[0-9a-f]{4,64}\Z")
_NUMBER = re.compile(r"\+?[0-9]+\Z", re.ASCII)

#: A node inside a fan-out, and the parallel node that it belongs to.
Interior = Mapping[str, str]


def resolve(
    target: str, found: Sequence[Found], interior: Callable[[], Interior], run: str
) -> tuple[Found, str | None]:
    """The checkpoint that a target names, and what is to be said about it.

    Args:
        target: As it was typed.
        found: The run's checkpoints, the oldest first.
        interior: Gives the nodes inside fan-outs; asked only where no checkpoint has the name.
        run: For the hint.

    Raises:
        NotFoundError: none is meant by it.
        RequestError: it is malformed, or names several.
    """
    hint = f"git log --first-parent fabro/run/{run}"
    if target.startswith("@"):
        return _by_ordinal(target, found, hint), None
    node, visit = _split(target)
    if visit == 0:
        raise RequestError("visit number must be >= 1", hint=hint)
    named = [one for one in found if one.said is not None and one.said.node == node]
    if named:
        return _visit_of(
            node, visit, named, f"no visit {visit} found for node '{node}'", hint
        ), None
    by_id = _by_object(target, found)
    if by_id is not None:
        return by_id, None
    parallel = interior().get(node)
    if parallel is not None:
        return _of_parallel(node, visit, parallel, found, hint)
    known = dict.fromkeys(one.said.node for one in found if one.said is not None)
    near = render.near(node, list(known))
    text = f"no checkpoint found for node '{render.line(node)}'"
    raise NotFoundError(f"{text}; did you mean '{near}'?" if near else text, hint=hint)


def _split(target: str) -> tuple[str, int | None]:
    """Node and visit, split at the last ``@`` if a number follows it."""
    node, _, visit = target.rpartition("@")
    return (node, int(visit)) if node and _NUMBER.match(visit) else (target, None)


def _by_ordinal(target: str, found: Sequence[Found], hint: str) -> Found:
    text, last = target[1:], len(found)
    if not _NUMBER.match(text.removeprefix("-")):
        raise RequestError(f"invalid ordinal: {target}", hint=hint)
    number = int(text)
    if number == 0:
        raise RequestError(f"ordinal must be >= 1 (max @{last})", hint=hint)
    number = last + 1 + number if number < 0 else number
    if not 1 <= number <= last:
        raise NotFoundError(f"ordinal {target} out of range (max @{last})", hint=hint)
    return found[number - 1]


def _visit_of(
    node: str, visit: int | None, named: Sequence[Found], missing: str, hint: str
) -> Found:
    if visit is None:
        return named[-1]
    visits = [one.said.visit for one in named if one.said is not None]
    if visit not in visits:
        known = ", ".join(f"{node}@{number}" for number in visits)
        raise NotFoundError(f"{missing} (there is {known})" if known else missing, hint=hint)
    return named[visits.index(visit)]


def _of_parallel(
    node: str, visit: int | None, parallel: str, found: Sequence[Found], hint: str
) -> tuple[Found, str]:
    inside = f"node '{node}' is inside parallel '{parallel}'"
    named = [one for one in found if one.said is not None and one.said.node == parallel]
    if not named:
        raise NotFoundError(f"{inside}; no checkpoint found for '{parallel}'", hint=hint)
    missing = f"{inside}; no visit {visit} found for '{parallel}'"
    return _visit_of(parallel, visit, named, missing, hint), inside


def _by_object(target: str, found: Sequence[Found]) -> Found | None:
    """The checkpoint whose run commit or meta commit has this id or beginning of an id.

    Raises:
        RequestError: several have.
    """
    if not _OBJECT.match(target):
        return None
    named = [
        one
        for one in found
        if one.run_commit.startswith(target) or (one.meta_commit or "").startswith(target)
    ]
    if len(named) > 1:
        places = ", ".join(f"@{one.ordinal}" for one in named)
        raise RequestError(f"ambiguous object id: {target} ({places})", hint="type more of it")
    return named[0] if named else None
