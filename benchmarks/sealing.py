"""What does evidence cost: noting requests as they go, and sealing them when the run ends?"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.table import Row, row
from records.evidence import spool
from records.evidence.writer import SpoolWriter

REQUESTS, CHUNKS = 100_000, 64
_REPEATS = 3


class _Part(NamedTuple):
    times_us: array[int]
    totals: array[int]
    text: str
    reasoning: str


def rows() -> list[Row]:
    """Microseconds that noting takes; seconds, memory and microseconds per chunk of sealing.

    The reference of sealing is numpy's own arrays through pyarrow into one Parquet
    file, of the same chunks, each in a process of its own.
    """
    with tempfile.TemporaryDirectory() as place:
        noted = _measured("note", place)
        ours = [_measured("seal", place) for _ in range(_REPEATS)]
        bare = [_measured("bare", place) for _ in range(_REPEATS)]
    name = f"seal {REQUESTS:,} requests of {CHUNKS} chunks"
    reference = ("numpy to Parquet", [b["cpu_s"] for b in bare])
    chunk = [o["cpu_s"] * 1e6 / (REQUESTS * CHUNKS) for o in ours]
    return [
        row("note sent, attempt and request", noted["events_us"], "us"),
        row(f"note a part of {CHUNKS} chunks", noted["part_us"], "us"),
        row("all that noting costs, per chunk", [noted["us_per_chunk"]], "us CPU"),
        row(name, [o["cpu_s"] for o in ours], "s CPU", reference),
        row(f"{name}, wall", [o["wall_s"] for o in ours], "s"),
        row("the same, per chunk", chunk, "us CPU"),
        row("peak memory of sealing", [o["peak_mib"] for o in ours], "MiB"),
        row("peak memory of the reference", [b["peak_mib"] for b in bare], "MiB"),
    ]


def _measured(what: str, place: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.sealing", what, place]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def note(place: Path) -> dict[str, Any]:
    """Writes a spool as a run would and leaves it unsealed; what the calling thread took."""
    plan = [_planned(i) for i in range(REQUESTS)]
    out = SpoolWriter.create(place / "spooled", _RUN, {}, [], plan)
    parts = [_part(i) for i in range(256)]
    spans: dict[str, list[float]] = {"events_us": [], "part_us": []}
    begun = time.process_time()
    for first in range(0, REQUESTS, 1000):
        batch = range(first, first + 1000)
        spans["part_us"].append(_timed(lambda ids: _note_parts(out, parts, ids), batch))
        spans["events_us"].append(_timed(lambda ids: _note_events(out, ids), batch))
        # A run at 10,000 requests/s or less; faster than disks are is no run's pace.
        time.sleep(0.05)
    out.abandon()
    if out.failed is not None:
        raise out.failed
    spent = time.process_time() - begun
    return {**spans, "us_per_chunk": spent * 1e6 / (REQUESTS * CHUNKS)}


def _timed(call: Any, ids: range) -> float:
    begun = time.perf_counter()
    call(ids)
    return (time.perf_counter() - begun) * 1e6 / len(ids)


def _note_parts(out: SpoolWriter, parts: list[_Part], ids: range) -> None:
    for i in ids:
        out.part(f"r{i:06d}", 1, parts[i % len(parts)], True)


def _note_events(out: SpoolWriter, ids: range) -> None:
    for i in ids:
        name, at_s = f"r{i:06d}", i * 1e-3
        out.sent(name, 1, at_s)
        row = {**_ATTEMPT, "request_id": name, "sent_s": at_s, "end_s": at_s + 0.6}
        out.attempt(row, output={**_OUTPUT, "request_id": name})
        out.request({**_REQUEST, "request_id": name, "end_s": at_s + 0.6})


def seal(place: Path) -> None:
    """Seals a copy of the spool in an otherwise fresh folder."""
    shutil.rmtree(place / "sealed", ignore_errors=True)
    shutil.copytree(place / "spooled", place / "sealed")
    _report(lambda: spool.seal(place / "sealed"))


def bare(place: Path) -> None:
    """The same numbers of chunks from arrays in memory to Parquet."""
    times = np.concatenate([np.array(_part(i % 256).times_us) for i in range(REQUESTS)])
    times = times.reshape(REQUESTS, CHUNKS)
    _report(lambda: _bare(times, place / "bare.parquet"))


def _bare(times: Any, path: Path) -> None:
    gaps = np.diff(times, axis=1).astype(np.int32).ravel()
    ends = np.arange(REQUESTS + 1)
    table = pa.table(
        {
            "request_id": pa.array([f"r{i:06d}" for i in range(REQUESTS)]),
            "attempt": np.ones(REQUESTS, np.int64),
            "first_us": np.ascontiguousarray(times[:, 0]),
            "gap_us": pa.ListArray.from_arrays(pa.array(ends * (CHUNKS - 1), pa.int32()), gaps),
            "tokens": pa.ListArray.from_arrays(
                pa.array(ends * CHUNKS, pa.int32()), np.ones(REQUESTS * CHUNKS, np.int16)
            ),
        }
    )
    pq.write_table(table, path, compression="zstd")


def _report(call: Any) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"cpu_s": cpu, "wall_s": wall, "peak_mib": _peak_mib()}))


def _peak_mib() -> float:
    # Not getrusage: its maximum is inherited from the parent of a new process.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _part(seed: int) -> _Part:
    gaps = np.random.default_rng(seed).gamma(4, 2500, CHUNKS).astype(np.int64)
    times = array("q", (1_000_000 + np.cumsum(gaps)).tobytes())
    return _Part(times, array("q", [-1]) * CHUNKS, "some" * CHUNKS, "")


def _planned(i: int) -> dict[str, Any]:
    name = f"r{i:06d}"
    return {
        "request_id": name, "workflow_id": name, "class": "chat", "case": None, "session": None,
        "turn": None, "intended_s": i * 1e-3, "deadline_s": None, "in_window": True,
    }  # fmt: skip


_RUN = {"schema": "impakt.run/1", "run_id": "bench", "state": "running", "capture": "full"}
_ATTEMPT = {
    "attempt": 1, "first_byte_s": 1.0123, "first_token_s": 1.0234, "first_visible_token_s": 1.0345,
    "last_token_s": 1.6543, "prompt_tokens": 512, "output_tokens": CHUNKS, "reasoning_tokens": 0,
    "cached_tokens": None, "tool_calls": 0, "token_count_source": "usage", "outcome": "completed",
    "http_status": 200, "error_kind": None, "finish_reason": "stop",
    "phase_grade": "not_observable", "connection": "reused", "stamp_source": "kernel",
    "receives": CHUNKS, "first_token_after_s": None,
}  # fmt: skip
_OUTPUT = {"attempt": 1, "text": None, "reasoning": None, "tool_calls": None, "parts": 1}
_REQUEST = {
    "outcome": "completed", "attempts": 1, "fallback": False, "prompt_tokens": 512,
    "output_tokens": CHUNKS, "first_token_s": 1.0234, "first_visible_token_s": 1.0345,
    "last_token_s": 1.6543,
}  # fmt: skip


if __name__ == "__main__":
    work = {"note": lambda at: print(json.dumps(note(at))), "seal": seal, "bare": bare}
    work[sys.argv[1]](Path(sys.argv[2]))
