"""``python -m tests.bench NAME [--json]``: measurements, printed; nothing here can fail a test."""

from __future__ import annotations

import argparse
import json
import sys

from tests.bench import engine, parse

BENCHES = {"engine": engine.measure, "parse": parse.measure}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("name", choices=sorted(BENCHES))
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--pairs", type=int, default=5, help="how often each side runs")
    asked = parser.parse_args()
    rows = BENCHES[asked.name](asked.pairs)
    if asked.json:
        json.dump({"bench": asked.name, "rows": rows}, sys.stdout, indent=2)
        print()
        return 0
    for row in rows:
        print(
            f"{row['name']}: ratio {row['ratio']:.2f}"
            f" (min {row['ratio_min']:.2f}, max {row['ratio_max']:.2f}),"
            f" {row['ours_ms']:.2f} ms against {row['peer_ms']:.2f} ms of {row['peer']}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
