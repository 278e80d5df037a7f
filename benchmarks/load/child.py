"""The measured process: takes one job as JSON on stdin, stays on its core, answers on stdout."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any


def _cpu_s() -> float:
    """Of this process and of children that it has waited for."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def _rss_bytes() -> int | None:
    path = Path("/proc/self/statm")
    if not path.exists():
        return None
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _impakt(job: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.load.measure import Ask, trace_request
    from records.traces.reading import Trace
    from records.traces.schema import SCHEMA
    from runners.load.plan import LoadPlan, Progress
    from runners.load.run import run_load

    requests = [trace_request(Ask(**ask)) for ask in job["asks"]]
    ca_file = job["ca_file"]
    plan = LoadPlan(
        url=job["url"], model="truth", trace=Trace({"schema": SCHEMA}, requests), run_id="bench",
        transport=job["transport"], ca_file=None if ca_file is None else Path(ca_file),
        # The lateness is what is measured here, not what makes the run invalid.
        lag_limit_s=60.0,
    )  # fmt: skip
    rss: list[tuple[float, int, int | None]] = []
    ended_ns = 0

    def note(progress: Progress) -> None:
        nonlocal ended_ns
        ended_ns = time.monotonic_ns()
        rss.append((progress.elapsed_s, progress.in_flight, _rss_bytes()))

    start_s = _cpu_s()
    outcome = run_load(plan, Path(job["folder"]), note)
    return {
        "cpu_s": _cpu_s() - start_s,
        "outcomes": dict(outcome.outcomes),
        "rss": rss,
        "ended_ns": ended_ns,
    }


def _floor(job: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.load.floor import drain

    start_s = _cpu_s()
    answer = drain(job["url"], job["streams"], job["body"], job["ca_file"])
    return {**answer, "cpu_s": _cpu_s() - start_s}


def _timer(job: dict[str, Any]) -> dict[str, Any]:
    from benchmarks.load.floor import timer_lateness_s

    return {"late_s": timer_lateness_s(job["times_s"])}


def main() -> None:
    job = json.load(sys.stdin)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {job["core"]})
    kinds = {"impakt": _impakt, "floor": _floor, "timer": _timer}
    print(json.dumps(kinds[job["kind"]](job)))


if __name__ == "__main__":
    main()
