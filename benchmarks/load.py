"""What does a streamed token cost the load generator, and how late does it send?

50 streams of 160 tokens, about 5 ms apart, from the reference endpoint on
loopback; the reference is a client of the same event loop that reads the same
bytes and does nothing with them. Client CPU over the whole run, in a process
of its own.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import uvloop

from benchmarks.table import Row, row

STREAMS, TOKENS, REPEATS = 50, 160, 3
_PROFILE = {"decode_base_s": 0.005, "decode_per_sequence_s": 0.0, "slots": 64}


def rows() -> list[Row]:
    """CPU microseconds a token beside the floor; schedule lag of the same runs."""
    from runners.endpoint.testing import serve

    with serve("continuous", **_PROFILE) as endpoint:
        floor = [_child("floor", endpoint.url, endpoint.model) for _ in range(REPEATS)]
        ours = [_child("impakt", endpoint.url, endpoint.model) for _ in range(REPEATS)]
    cost = [run["cpu_us_per_token"] for run in ours]
    bare = [run["cpu_us_per_token"] for run in floor]
    return [
        row("floor: read and drop", bare, "us/token"),
        row("impakt load, httpx transport", cost, "us/token", ("floor", bare)),
        row("schedule lag p99", [run["lag_p99_ms"] for run in ours], "ms"),
    ]


def _child(kind: str, url: str, model: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.load", kind, url, model]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _ours(url: str, model: str) -> dict[str, float]:
    from records.evidence.folder import EvidenceFolder
    from records.traces.reading import Trace
    from records.traces.schema import SCHEMA, TraceRequest
    from runners.load.plan import LoadPlan
    from runners.load.run import run_load

    requests = [
        TraceRequest(
            id=str(i), at_s=i / STREAMS, prompt_tokens=32, max_output_tokens=TOKENS,
            sampling={"ignore_eos": True},
        )
        for i in range(STREAMS)
    ]  # fmt: skip
    plan = LoadPlan(url=url, model=model, trace=Trace({"schema": SCHEMA}, requests), run_id="bench")
    with tempfile.TemporaryDirectory() as folder:
        start = _cpu_s()
        run_load(plan, Path(folder) / "run")
        used = _cpu_s() - start
        evidence = EvidenceFolder.open(Path(folder) / "run")
        frame, intended = evidence.table("attempts"), evidence.table("requests")["intended_s"]
    lag = frame["sent_s"].to_numpy() - intended.to_numpy()
    return {
        "cpu_us_per_token": used * 1e6 / float(frame["output_tokens"].sum()),
        "lag_p99_ms": float(np.percentile(lag, 99) * 1e3),
    }


async def _stream(host: str, port: int, head: bytes, at: float) -> None:
    await asyncio.sleep(at)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(head)
    while await reader.read(65536):
        pass
    writer.close()


def _floor(url: str, model: str) -> dict[str, float]:
    parts = urlsplit(url)
    body = json.dumps(
        {
            "model": model,
            "prompt": "w " * 32,
            "max_tokens": TOKENS,
            "stream": True,
            "ignore_eos": True,
        }
    ).encode()
    head = (
        f"POST {parts.path}/completions HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body

    async def all_streams() -> None:
        port = parts.port or 80
        sends = (_stream(parts.hostname or "", port, head, i / STREAMS) for i in range(STREAMS))
        await asyncio.gather(*sends)

    start = _cpu_s()
    uvloop.run(all_streams())
    return {"cpu_us_per_token": (_cpu_s() - start) * 1e6 / (STREAMS * TOKENS)}


if __name__ == "__main__":
    _kind, _url, _model = sys.argv[1:]
    print(json.dumps({"impakt": _ours, "floor": _floor}[_kind](_url, _model)))
