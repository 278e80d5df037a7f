"""`make bench [NAME=…]`: run benchmarks, print a table, write benchmarks/out/NAME.json."""

from __future__ import annotations

import importlib
import json
import platform
import sys
from pathlib import Path

from benchmarks.table import Row, render

OUT = Path(__file__).parent / "out"

# name -> module with `rows() -> list[Row]`; a new benchmark is one file and one line.
BENCHMARKS = {
    "analysis": "benchmarks.analysis",
    "hashing": "benchmarks.hashing",
    "load": "benchmarks.load",
    "lists": "benchmarks.lists",
}


def main(names: list[str]) -> int:
    """Exit code 2 for a name that is not in the table."""
    for name in names or list(BENCHMARKS):
        if name not in BENCHMARKS:
            print(f"bench: {name}: expected one of {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2
        rows = importlib.import_module(BENCHMARKS[name]).rows()
        print(render(name, rows))
        _write(name, rows)
    return 0


def _write(name: str, rows: list[Row]) -> None:
    OUT.mkdir(exist_ok=True)
    host = {"machine": platform.machine(), "python": platform.python_version()}
    document = {"name": name, "host": host, "rows": [row.to_json() for row in rows]}
    (OUT / f"{name}.json").write_text(json.dumps(document, indent=2, allow_nan=False) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
