"""What runs a node of each kind; ``register`` makes a kind of one's own known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git_fabro.handlers.table import register

__all__ = ["register"]


def __getattr__(name: str) -> object:
    # The table knows every handler: 20 ms that whoever wants one handler alone need not pay.
    if name == "register":
        from git_fabro.handlers import table

        return table.register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
