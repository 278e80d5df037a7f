"""How fast is a configuration fingerprinted and a trace read, against plain JSON?"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.table import Row, row, timed
from records.evidence.canonical import sha256_of
from records.traces.reading import read_trace, write_trace
from records.traces.sup_sum_01 import build_trace

_TUPLE = {
    "model": "m", "runtime": {"name": "r", "version": "1"}, "hardware": {"name": "h", "count": 8},
    "sampling": {"temperature": 0.7, "top_p": 0.95}, "batching": {"max_sequences": 64},
}  # fmt: skip


def rows() -> list[Row]:
    """Microseconds per fingerprint; seconds per trace of some 2,600 requests."""
    plain = [s * 1e3 for s in timed(lambda: [json.dumps(_TUPLE) for _ in range(1000)], 9)]
    ours = [s * 1e3 for s in timed(lambda: [sha256_of(_TUPLE) for _ in range(1000)], 9)]
    trace = build_trace(500)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        write_trace(path, trace.header, trace.requests)
        lines = path.read_text().splitlines()
        parse = timed(lambda: [json.loads(line) for line in lines], 5)
        read = timed(lambda: read_trace(path), 5)
    return [
        row("configuration fingerprint", ours, "us", ("json.dumps", plain)),
        row(f"read and check a trace of {len(lines):,} lines", read, "s", ("json.loads", parse)),
    ]
