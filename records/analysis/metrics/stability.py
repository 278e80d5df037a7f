"""How much work was waiting at both ends of the window."""

from __future__ import annotations

from typing import Any

import numpy as np

from records.analysis.figures import Absent, later, no_estimate
from records.analysis.frames import Floats, Frames, column
from records.analysis.metrics.concurrency import steps


def backlog(frames: Frames) -> tuple[Floats, Floats]:
    """Requests in the system over the window: times of change, count from then on.

    A request is in the system from its intended arrival to its departure.
    Shed and deferred work was never let in. Warm-up requests count: they are in
    the way of the others.
    """
    inside = frames.requests[~frames.requests["outcome"].isin(("shed", "deferred"))]
    return steps(column(inside, "intended_s"), column(inside, "departure_s"), frames.window)


def stability(frames: Frames) -> dict[str, Any]:
    """Backlog at the start and the end of the window, and deferred work per class.

    Verdict, slope and burst recovery come with a later analysis version.
    """
    counts = backlog(frames)[1]
    empty = len(frames.requests) == 0
    none = Absent("no request was attempted")
    deferred = frames.arrived.loc[frames.arrived["outcome"] == "deferred", "class"]
    return {
        "verdict": later(),
        "backlog_start": none if empty else int(counts[0]),
        "backlog_end": none if empty else int(counts[-1]),
        "slope_per_s": no_estimate(),
        "deferred": {str(k): int(v) for k, v in deferred.value_counts().sort_index().items()},
        "bursts": later(),
    }


def in_system(intended: Floats, departure: Floats) -> Floats:
    """How many earlier requests were still in the system at each intended arrival.

    A request that never departed counts as still there. Ties in arrival count
    the one that stands first.
    """
    order = np.argsort(intended, kind="stable")
    gone = np.sort(np.where(np.isnan(departure), np.inf, departure))
    before = np.empty(intended.size)
    before[order] = np.arange(intended.size)
    return before - np.searchsorted(gone, intended, side="right")
