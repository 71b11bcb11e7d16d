"""Which attribute files let the fast engine record a work tree: those that convert nothing."""

from __future__ import annotations

import os

from git_fabro.git.snapshot.model import UncoveredError

# Source: gitattributes(5), "Checking-out and checking-in"
_CONVERTING = frozenset({b"text", b"eol", b"crlf", b"ident", b"filter", b"working-tree-encoding"})


def check_attributes(path: bytes, data: bytes) -> None:
    """Nothing, if no line of an attribute file can change what is recorded of a file.

    Raises:
        UncoveredError: an attribute is set that converts content; the file is named.
    """
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        # A pattern in quotes may hold spaces, and git reads no further than to a NUL: the words
        # count all the same, which errs on the safe side. A carriage return parts words.
        words = line.replace(b"\0", b" ").split()
        if not words or words[0].startswith(b"#"):
            continue
        for word in words if words[0].startswith(b'"') else words[1:]:
            attribute = word.partition(b"=")[0]
            if attribute in _CONVERTING:
                shown = attribute.decode("ascii")
                raise UncoveredError(f"{os.fsdecode(path)!a} sets {shown}", evidence=path)
