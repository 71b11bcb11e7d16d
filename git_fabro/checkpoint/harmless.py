"""Text from elsewhere, made harmless: what no node, branch or remote may do to a terminal."""

from __future__ import annotations

import re

# Control characters, and what turns the direction of writing around. Source: UAX #9; ECMA-48
HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


def safe(text: str) -> str:
    """Text that cannot move the cursor, colour, hide or reorder; such characters are escaped."""
    # All that is harmful counts as not printable.
    if text.isprintable():
        return text
    return HARMFUL.sub(_escaped, text.encode("utf-8", "backslashreplace").decode())


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def line(text: str) -> str:
    """Harmless text of one line."""
    return safe(text.replace("\n", " ").replace("\t", " "))


def without_password(text: str) -> str:
    """Text in which no URL says who logs in, or with what: ``https://host/path``."""
    return _PASSWORD.sub("", text)
