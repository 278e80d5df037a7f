"""How long does the analysis take over millions of token times?

Five million gaps, one token a chunk, against numpy doing nothing but sort them
(any percentile needs at least that).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.table import Row, row, timed

REQUESTS, TOKENS = 20_000, 251


def rows() -> list[Row]:
    """Seconds to read the evidence and compute the whole record."""
    from records.analysis.record import analyze_folder

    random = np.random.default_rng(1)
    gaps = random.integers(5_000, 50_000, (REQUESTS, TOKENS - 1)).astype(np.int32)
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "run"
        _write(folder, gaps)
        ours = timed(lambda: analyze_folder(folder), 3)
    bare = timed(lambda: np.sort(gaps.ravel()), 3)
    what = f"record of {REQUESTS:,} requests, {gaps.size:,} gaps"
    return [row("np.sort of the gaps", bare, "s"), row(what, ours, "s", ("np.sort", bare))]


def _write(folder: Path, gaps: np.ndarray) -> None:
    from records.evidence.folder import write_folder
    from records.evidence.run_document import SCHEMA
    from records.evidence.workload import default_workload

    sent = np.arange(REQUESTS) / 100
    last = sent + 0.2 + gaps.sum(axis=1) / 1e6
    times = {
        "first_token_s": sent + 0.2, "first_visible_token_s": sent + 0.2, "last_token_s": last,
        "end_s": last,
    }  # fmt: skip
    ids = [str(i) for i in range(REQUESTS)]
    common = [
        {"request_id": i, "outcome": "completed", "prompt_tokens": 100, "output_tokens": TOKENS}
        | {key: float(values[k]) for key, values in times.items()}
        for k, i in enumerate(ids)
    ]
    requests = [
        c | {"workflow_id": c["request_id"], "class": "default", "intended_s": float(sent[k]),
             "attempts": 1, "fallback": False, "in_window": True}
        for k, c in enumerate(common)
    ]  # fmt: skip
    attempts = [
        c | {"attempt": 1, "sent_s": float(sent[k]), "first_byte_s": float(sent[k]) + 0.2,
             "token_count_source": "usage", "connection": "new"}
        for k, c in enumerate(common)
    ]  # fmt: skip
    chunks = [
        {"request_id": i, "attempt": 1, "first_us": int((sent[k] + 0.2) * 1e6),
         "gap_us": gaps[k].tolist(), "tokens": [1] * TOKENS}
        for k, i in enumerate(ids)
    ]  # fmt: skip
    run = {
        "schema": SCHEMA, "run_id": "bench", "state": "completed",
        "window": {"start_s": 0.0, "end_s": REQUESTS / 100},
    }  # fmt: skip
    tables = {"requests": requests, "attempts": attempts, "chunks": chunks}
    write_folder(folder, run, default_workload(), None, tables)
