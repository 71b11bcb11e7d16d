"""What reading costs: a file of a megabyte, against Python reading as much JSON."""

from __future__ import annotations

import json

from git_fabro.workflow import dot
from git_fabro.workflow.diagnostic import Findings
from tests.bench.pairs import Row, compare

MEGABYTE = 1_000_000
TEXTS = {
    "nodes": "digraph {" + 'n [shape=box, label="a b"];' * (MEGABYTE // 29) + "}",
    "brackets": "[" * MEGABYTE,
    "braces": "digraph {" + "{" * MEGABYTE,
    "quotes": '"' * MEGABYTE,
    "comments": "digraph { " + "//" * (MEGABYTE // 2),
    "statements": "digraph {" + "a=1;" * (MEGABYTE // 4) + "}",
    "arrows": "digraph { " + "a->" * (MEGABYTE // 3),
}


def measure(pairs: int) -> list[Row]:
    """Milliseconds for each text; the issue asks for less than two seconds."""
    peer = json.dumps(["word"] * (MEGABYTE // 8))
    return [
        compare(
            f"parse@1MB/{name}",
            lambda text=text: dot.parse(Findings("w.fabro", text)),
            lambda: json.loads(peer),
            peer="json.loads of 1 MB",
            pairs=pairs,
        )
        for name, text in TEXTS.items()
    ]
