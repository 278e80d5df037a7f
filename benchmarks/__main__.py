"""`make bench [NAME=…]`: run benchmarks, print a table, write benchmarks/out/NAME.json."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from benchmarks.machine import Noise, machine, watched
from benchmarks.table import Row, render

OUT = Path(__file__).parent / "out"

# name -> module with `rows() -> list[Row]`; a new benchmark is one file and one line.
BENCHMARKS = {
    "analysis": "benchmarks.analysis",
    "hashing": "benchmarks.hashing",
    "load": "benchmarks.load",
    "lists": "benchmarks.lists",
    "sealing": "benchmarks.sealing",
}


def main(names: list[str]) -> int:
    """Exit code 2 for a name that is not in the table."""
    for name in names or list(BENCHMARKS):
        if name not in BENCHMARKS:
            print(f"bench: {name}: expected one of {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2
        with watched() as noise:
            rows = importlib.import_module(BENCHMARKS[name]).rows()
        print(render(name, rows))
        if noise.text:
            print(noise.text)
        _write(name, rows, noise)
    return 0


def _write(name: str, rows: list[Row], noise: Noise) -> None:
    OUT.mkdir(exist_ok=True)
    document = {
        "name": name, "host": machine(), "noise": vars(noise),
        "rows": [row.to_json() for row in rows],
    }  # fmt: skip
    (OUT / f"{name}.json").write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
