"""What does a run cost before its first token: start, evidence and record of one request?"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.load import print_part
from benchmarks.load.command import impakt_load
from benchmarks.load.measure import Ask, truth_server
from benchmarks.table import Row, row

REPEATS = 3


def rows() -> list[Row]:
    """CPU seconds of `impakt load` with one request of 16 tokens, its record included."""
    spent = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder, truth_server() as server:
            spent.append(impakt_load(server.url, [Ask("0", tokens=16)], Path(folder)))
    return [row("`impakt load` of one request", spent, "CPU s", best=True, most=2.0)]


if __name__ == "__main__":
    print_part("fixed")
