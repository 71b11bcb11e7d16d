"""Where the keys of a TOML text stand: for messages only, values are read by ``tomllib``.

Source: TOML 1.0, "Keys" and "Table".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

Path = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''
      (?P<blank>[^\S\n]+|\#[^\n]*+)
    | (?P<line>\n)
    | (?P<string>"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*+\'{3,5}
        |"(?:[^"\\\n]|\\.)*+"|\'[^\'\n]*+\')
    | (?P<bare>[A-Za-z0-9_-]+)
    | (?P<mark>.)
    ''',
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = frozenset("[{"), frozenset("]}")


def key_offsets(text: str) -> Mapping[Path, int]:
    """The offset of each key of a text that ``tomllib`` accepts; a table's is that of its header.

    Tables of an array have their number in the path: ``("hooks", 0, "event")``. Keys of inline
    tables are not looked for.
    """
    offsets: dict[Path, int] = {}
    table: Path = ()
    counts: dict[Path, int] = {}
    for tokens in _statements(text):
        keys, header = _keys(tokens), tokens[0][1] == "["
        base: Path = () if header else table
        for key, offset in keys:
            base = _indexed((*base, key), counts) if header else (*base, key)
            offsets.setdefault(base, offset)
        if header:
            if len(tokens) > 1 and tokens[1][1] == "[":
                name = _without_index(base)
                counts[name] = counts.get(name, -1) + 1
                base = (*name, counts[name])
                offsets[base] = keys[-1][1] if keys else tokens[0][0]
            table = base
    return offsets


def nearest_offset(offsets: Mapping[Path, int], path: Path) -> int:
    """The offset of a key, or of the table around it that has one."""
    while path and path not in offsets:
        path = path[:-1]
    return offsets.get(path, 0)


def _indexed(path: Path, counts: Mapping[Path, int]) -> Path:
    return (*path, counts[path]) if path in counts else path


def _without_index(path: Path) -> Path:
    return path[:-1] if path and isinstance(path[-1], int) else path


def _statements(text: str) -> Iterator[list[tuple[int, str]]]:
    """The tokens of each header, or of each key up to its value, with their offsets."""
    tokens: list[tuple[int, str]] = []
    depth, in_value = 0, False
    for found in _TOKEN.finditer(text):
        part = found[0]
        if found.lastgroup == "line" and depth == 0:
            if tokens:
                yield tokens
            tokens, in_value = [], False
        elif found.lastgroup in {"blank", "line"}:
            continue
        elif in_value:
            depth += (part in _OPEN) - (part in _CLOSE)
        elif part == "=" and tokens and tokens[0][1] != "[":
            in_value = True
        else:
            tokens.append((found.start(), part))
    if tokens:
        yield tokens


def _keys(tokens: list[tuple[int, str]]) -> list[tuple[str, int]]:
    return [(_key(part), offset) for offset, part in tokens if part not in {".", "[", "]"}]


def _key(part: str) -> str:
    if part[0] not in "\"'":
        return part
    try:
        return str(tomllib.loads(f"k = {part}")["k"])
    except tomllib.TOMLDecodeError:
        return part
