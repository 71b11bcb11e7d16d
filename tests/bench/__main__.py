"""``python -m tests.bench NAME [--json]``: measurements, printed; nothing here can fail a test."""

from __future__ import annotations

import argparse
import json
import sys

from tests.bench import engine, hooks, metadata, parse, snapshot, timeline
from tests.bench.pairs import Row

BENCHES = {
    "engine": engine.measure,
    "hooks": hooks.measure,
    "metadata": metadata.measure,
    "parse": parse.measure,
    "snapshot": snapshot.measure,
    "timeline": timeline.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--pairs", type=int, default=5, help="how often each side runs")
    parser.add_argument(
        "--checkpoints", type=int, default=10_000, help="of metadata, timeline: how many"
    )
    asked = parser.parse_args()
    more = (asked.checkpoints,) if asked.name in ("metadata", "timeline") else ()
    rows = BENCHES[asked.name](asked.pairs, *more)
    if asked.json:
        json.dump({"bench": asked.name, "rows": rows}, sys.stdout, indent=2)
        print()
        return 0
    for row in rows:
        print(_shown(row))
    return 0


def _shown(row: Row) -> str:
    if "value" in row:
        which = f": {' '.join(row['which'])}" if "which" in row else ""
        return f"{row['name']}: {row['value']:.6g} {row['unit']}{which}"
    return (
        f"{row['name']}: ratio {row['ratio']:.2f}"
        f" (min {row['ratio_min']:.2f}, max {row['ratio_max']:.2f}),"
        f" {row['ours_ms']:.2f} ms against {row['peer_ms']:.2f} ms of {row['peer']}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
