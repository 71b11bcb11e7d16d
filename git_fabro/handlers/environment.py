"""The environment of a node's program: whose variables reach it, and which win."""

from __future__ import annotations

import re
from collections.abc import Mapping

_LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

#: The kernel refuses a program one of whose variables has 128 KiB (execve(2), MAX_ARG_STRLEN).
_LONGEST_BYTES = 120_000


def node_environment(
    caller: Mapping[str, str],
    settings_env: Mapping[str, str],
    variables: Mapping[str, str],
    fabro: Mapping[str, str],
) -> dict[str, str]:
    """What a node's program sees; of one name, the last of these wins.

    Args:
        caller: Of whoever started the run. Its ``GIT_*`` are dropped: in a hook they name another
            repository's index and work tree.
        settings_env: ``[sandbox.env]``, secrets filled in.
        variables: ``[vars]`` and ``[inputs]``; a name that no shell could spell is left out.
        fabro: The ``FABRO_*`` of the attempt.
    """
    merged = {name: value for name, value in caller.items() if not name.startswith("GIT_")}
    merged.update(settings_env)
    merged.update((name, value) for name, value in variables.items() if _LEGAL.match(name))
    merged.update((name, _cut(value)) for name, value in fabro.items())
    return {name: value.replace("\0", "") for name, value in merged.items()}


def _cut(value: str) -> str:
    """A value that a program can be given: a long goal must not keep every node from starting."""
    if len(value) * 4 <= _LONGEST_BYTES:
        return value
    data = value.encode("utf-8", "surrogateescape")[:_LONGEST_BYTES]
    return data.decode("utf-8", "ignore")
