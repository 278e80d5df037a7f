"""Whether the load generator kept its own promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from records.analysis.distribution import distribution, no_distribution
from records.analysis.figures import (
    PERCENTILES,
    Absent,
    Distribution,
    Percentile,
    distribution_of,
)
from records.analysis.frames import Bools, Frames, column
from records.analysis.metrics.calibration import calibration
from records.analysis.metrics.stability import in_system
from records.evidence.canonical import is_number
from records.evidence.columns import NEVER_SENT

NOT_RECORDED = "not recorded by the load generator"
NO_LIMITS = "the run recorded quantiles, which have no limits"
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
    """The generator's lag, load and stalls, and how it read the clock, as far as recorded."""
    seen = run.get("generator") or {}
    cpu, wall = seen.get("cpu_s"), seen.get("wall_s")
    return {
        "schedule_lag_s": schedule_lag(frames),
        "cpu_fraction": Absent(NOT_RECORDED) if cpu is None or not wall else cpu / wall,
        "missed": missed(frames),
        "loop_stall_s": loop_stall(seen),
        "transport": transport(run),
        "stamp_source": stamp_source(frames.tries),
        "calibration": calibration(run),
    }


def loop_stall(seen: Mapping[str, Any]) -> Distribution:
    """How long the event loop was held up beyond each of its wake-ups, as the run recorded it.

    The run keeps quantiles, not samples, so there are no limits. Earlier versions
    kept the longest only.
    """
    longest: Any = seen.get("loop_stall_max_s")
    told = seen.get("loop_stall_s")
    names = ("n", "mean", "min", "max", *PERCENTILES)
    if isinstance(told, Mapping) and all(is_number(told.get(name)) for name in names):
        figures = {
            name: Percentile(float(told[name]), None, None, True, NO_LIMITS) for name in PERCENTILES
        }
        moments = (float(told["mean"]), float(told["min"]), float(told["max"]))
        return distribution_of(int(told["n"]), moments, figures, "measured")
    if not is_number(longest):
        return no_distribution(NOT_RECORDED, n=None)
    found = no_distribution("only the longest was recorded", n=None)
    return replace(found, max=float(longest), grade="measured")


def transport(run: Mapping[str, Any]) -> dict[str, Any] | Absent:
    """Which way of sending was used, `name`, and what it told of itself."""
    name, told = run.get("transport"), (run.get("generator") or {}).get("transport")
    facts = {k: v for k, v in told.items() if v is not None} if isinstance(told, Mapping) else {}
    if name is None and not facts:
        return Absent(NOT_RECORDED)
    return {"name": Absent(NOT_RECORDED) if name is None else name, **facts}


def stamp_source(tries: pd.DataFrame) -> str | Absent:
    """Who read the clock when bytes came: `kernel`, `user`, or `mixed` where attempts differ."""
    sources = set(tries["stamp_source"].dropna())
    if not sources:
        return Absent("no attempt was made" if tries.empty else NOT_RECORDED)
    return "mixed" if len(sources) > 1 else str(sources.pop())


def kernel_share(tries: pd.DataFrame) -> float:
    """The share of attempts whose bytes the kernel stamped; 0 where it was not recorded."""
    return float((tries["stamp_source"] == "kernel").mean()) if len(tries) else 0.0
