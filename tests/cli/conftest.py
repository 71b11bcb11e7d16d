"""The prompts of the tests of command lines."""

from __future__ import annotations

from tests.cli.typed import outside, shell

__all__ = ["outside", "shell"]
