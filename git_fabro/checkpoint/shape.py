"""Dataclasses to JSON values and back, by their annotations. Knows no particular record."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from git_fabro.errors import RecordError

Decoder = Callable[[Any, str], Any]


def to_json(value: Any) -> Any:
    """A JSON value: dataclasses and mappings become objects, tuples become arrays."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name.rstrip("_"): to_json(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type, value: Any, where: str) -> Any:
    """A value of a dataclass from a JSON object; unknown keys are ignored.

    Args:
        kind: A frozen dataclass.
        value: What the JSON parser gave.
        where: Names the value in messages, ``node.finished``.

    Raises:
        RecordError: a key that has no default is missing, or a value has another type.
    """
    return _decoder(kind)(value, where)


@cache
def _fields(kind: type) -> tuple[tuple[str, str, Decoder, bool], ...]:
    hints = typing.get_type_hints(kind)
    return tuple(
        (
            field.name,
            field.name.rstrip("_"),
            _decoder(hints[field.name]),
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    )


@cache
def known_keys(kind: type) -> frozenset[str]:
    """The JSON keys of a dataclass."""
    return frozenset(key for _, key, _, _ in _fields(kind))


@cache
def _decoder(hint: Any) -> Decoder:
    if isinstance(hint, typing.NewType):
        return _decoder(hint.__supertype__)
    if dataclasses.is_dataclass(hint):
        return _object_decoder(typing.cast(type, hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union_decoder(arguments)
    if origin is tuple:
        return _array_decoder(arguments[0])
    if origin in (dict, Mapping):
        return _map_decoder(arguments[1])
    if hint in (str, bool, int, float):
        return _scalar_decoder(hint)
    raise TypeError(f"no decoder for {hint!r}")


def _object_decoder(kind: type) -> Decoder:
    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise RecordError(f"{where}: not an object")
        found: dict[str, Any] = {}
        for name, key, decoder, required in _fields(kind):
            if key in value:
                found[name] = decoder(value[key], f"{where}.{key}")
            elif required:
                raise RecordError(f"{where}: {key} is missing")
        return kind(**found)

    return decode


def _union_decoder(arguments: tuple[Any, ...]) -> Decoder:
    """``X | None``; any wider union is JSON itself, which is checked for its parts only."""
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) > 1:
        return lambda value, where: value
    inner = _decoder(others[0])
    return lambda value, where: None if value is None else inner(value, where)


def _array_decoder(item: Any) -> Decoder:
    inner = _decoder(item)

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            raise RecordError(f"{where}: not an array")
        return tuple(inner(entry, f"{where}[{index}]") for index, entry in enumerate(value))

    return decode


def _map_decoder(item: Any) -> Decoder:
    inner = _decoder(item)

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise RecordError(f"{where}: not an object")
        return {key: inner(entry, f"{where}.{key}") for key, entry in value.items()}

    return decode


def _scalar_decoder(kind: Any) -> Decoder:
    allowed = (int, float) if kind is float else (kind,)

    def decode(value: Any, where: str) -> Any:
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            raise RecordError(f"{where}: not of type {kind.__name__}")
        return value

    return decode
