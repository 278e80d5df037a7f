"""Whether the load generator kept its own promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from records.analysis.distribution import distribution, no_distribution
from records.analysis.figures import Absent, Distribution
from records.analysis.frames import Bools, Frames, column
from records.analysis.metrics.stability import in_system
from records.evidence.columns import NEVER_SENT

ALL_WAITED = "every request waited for the concurrency limit, which is its policy"


def found_slot(requests: pd.DataFrame, max_concurrency: int | None) -> Bools:
    """Which requests could be sent at their intended arrival.

    Without a concurrency limit all. With one, those that found fewer earlier
    requests in the system than the limit: what the others waited was asked for
    by the policy, and says nothing about the generator.
    """
    if max_concurrency is None:
        return np.ones(len(requests), dtype=bool)
    sendable = (~requests["outcome"].isin(NEVER_SENT)).to_numpy()
    out = np.zeros(len(requests), dtype=bool)
    mine = requests[sendable]
    waiting = in_system(column(mine, "intended_s"), column(mine, "end_s"))
    out[sendable] = waiting < max_concurrency
    return out


def schedule_lag(frames: Frames) -> Distribution:
    """First send minus intended arrival, over requests that found a free slot."""
    able = frames.arrived[frames.arrived["found_slot"]]
    absent = "no request was sent" if len(able) or frames.arrived.empty else ALL_WAITED
    return distribution(column(able, "client_wait_s"), absent=absent)


def missed(frames: Frames) -> int:
    """Requests that were due and never sent, though neither a policy nor the user held them."""
    arrived = frames.arrived
    tried = arrived["row"].isin(frames.attempts["row"])
    held = arrived["outcome"].isin((*NEVER_SENT, "cancelled", "timed_out"))
    return int((~tried & ~held).sum())


def generator(frames: Frames, run: Mapping[str, Any]) -> dict[str, Any]:
    """The generator's lag, load and stalls, as far as the run recorded them."""
    seen = run.get("generator") or {}
    cpu, wall = seen.get("cpu_s"), seen.get("wall_s")
    none = "not recorded by the load generator"
    stall = seen.get("loop_stall_max_s")
    loop = no_distribution(none if stall is None else "only the longest was recorded", n=None)
    calibration = run.get("calibration")
    return {
        "schedule_lag_s": schedule_lag(frames),
        "cpu_fraction": Absent(none) if cpu is None or not wall else cpu / wall,
        "missed": missed(frames),
        "loop_stall_s": loop
        if stall is None
        else replace(loop, max=float(stall), grade="measured"),
        "calibration": Absent("no calibration was recorded")
        if calibration is None
        else calibration,
    }
