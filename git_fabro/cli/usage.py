"""What ``-h`` prints, and what a command line that cannot be parsed is told. Git's own form."""

from __future__ import annotations

import re
from typing import Any

from typer._click.exceptions import (
    BadOptionUsage,
    BadParameter,
    MissingParameter,
    NoSuchOption,
    UsageError,
)

from git_fabro.cli import render

_LEFT = 26
# Typer has no kinds of errors for these, only sentences.
_NO_COMMAND = re.compile(r"No such command '(.*?)'")
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)")
_NO_NUMBER = re.compile(r"'(.*)' is not a valid (?:int|float)")


def summary(name: str, command: Any) -> None:
    """The summary of a command: how it is called, what it does, its options.

    Args:
        name: ``run``, or ``workflow list``.
        command: Typer's own command or group of that name.
    """
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        for number, (word, one) in enumerate(subcommands.items()):
            render.out(f"{'   or:' if number else 'usage:'} {_call(f'{name} {word}', one)}")
        return
    render.out(f"usage: {_call(name, command)}")
    render.out()
    render.out(f"{command.help.split(chr(10))[0]}")
    rows = [_row(one) for one in command.params if not getattr(one, "hidden", False)]
    if rows:
        render.out()
    for left, what in rows:
        if len(left) > _LEFT - 2:
            render.out(f"    {left}")
            left = ""
        render.out(f"    {left:<{_LEFT}}{what}".rstrip())


def _call(name: str, command: Any) -> str:
    words = [one.metavar or one.name.upper() for one in command.params if _is_argument(one)]
    options = ["[<options>]"] if any(not _is_argument(one) for one in command.params) else []
    return " ".join(["git fabro", name, *options, *words])


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _row(parameter: Any) -> tuple[str, str]:
    if _is_argument(parameter):
        return parameter.metavar or parameter.name.upper(), parameter.help or ""
    left = ", ".join(sorted(parameter.opts, key=len))
    if not parameter.is_flag:
        left += f" {parameter.metavar or _word(parameter)}"
    return left, parameter.help or ""


def _word(parameter: Any) -> str:
    return str(parameter.name.upper())


def refuse(name: str, command: Any, exc: UsageError) -> None:
    """Says why a command line cannot be parsed, with the nearest command that could."""
    text, meant = _reason(name, command, exc)
    render.say(f"fatal: {text}")
    render.hint(f"git fabro {name} {meant or '-h'}")


def _reason(name: str, command: Any, exc: UsageError) -> tuple[str, str | None]:
    """What is wrong, and the word that was most likely meant."""
    if isinstance(exc, NoSuchOption):
        known = [opt for one in command.params for opt in one.opts]
        return f"no such option: {exc.option_name}", render.near(exc.option_name, known)
    if isinstance(exc, MissingParameter):
        return f"argument is missing: {_named(exc)}", None
    if isinstance(exc, BadParameter):
        return f"{_named(exc)}: {_bad_value(exc.message)}", None
    if isinstance(exc, BadOptionUsage):
        return f"option needs a value: {exc.option_name}", None
    word = _NO_COMMAND.match(exc.message)
    if word is not None:
        known = list(getattr(command, "commands", {}))
        return f"no such command: {name} {word[1]}", render.near(word[1], known)
    extra = _EXTRA.match(exc.message)
    if extra is not None:
        return f"too many arguments: {extra[1]}", None
    return f"command is missing: {name}", None


def _bad_value(message: str) -> str:
    """Why a value is none, in our own words."""
    word = _NO_NUMBER.match(message)
    if word is not None:
        return f"not a number: {word[1]}"
    return message.replace(".0 is not", " is not").removesuffix(".")


def _named(exc: BadParameter) -> str:
    parameter: Any = exc.param
    if parameter is None:
        return "value"
    if not _is_argument(parameter):
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper())
