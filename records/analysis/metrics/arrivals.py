"""How the attempted requests arrived and were sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from records.analysis.figures import Absent
from records.analysis.frames import Floats, Frames, column

PEAK_S = 1.0


def arrivals(frames: Frames) -> dict[str, Any]:
    """Rates and burstiness of the intended arrivals in the window.

    offered_per_s = attempted / window; sent_per_s = first sends / (window,
    stretched to the last send when that came later), so it falls below the
    offered rate exactly when the load came late or not at all. cv is the
    population coefficient of variation of the gaps, burstiness (cv-1)/(cv+1),
    peak_per_s the most arrivals within any one second. METHODS 4.
    """
    arrived = frames.arrived
    intended = np.sort(column(arrived, "intended_s"))
    sent = column(arrived, "sent_s")
    sent = sent[~np.isnan(sent)]
    span = frames.window.duration_s
    stretched = max(span, float(sent.max(initial=-math.inf)) - frames.window.start_s)
    cv = gap_cv(intended)
    short = Absent("fewer than three arrivals at different times")
    return {
        "offered_per_s": per_second(len(arrived), span),
        "sent_per_s": per_second(sent.size, stretched if span > 0 else 0.0),
        "cv": short if cv is None else cv,
        "burstiness": short if cv is None else (cv - 1) / (cv + 1),
        "peak_per_s": _peak(intended),
    }


def per_second(count: float, duration_s: float) -> float | Absent:
    """A count over a duration; absent when the window has no length."""
    if duration_s <= 0:
        return Absent("the window has no length")
    return count / duration_s


def gap_cv(times: Floats) -> float | None:
    """Population CV of the gaps between sorted times; None below two gaps or at mean 0."""
    gaps = np.diff(times)
    if gaps.size < 2 or gaps.mean() <= 0:
        return None
    mean = math.fsum(gaps) / gaps.size
    return math.sqrt(math.fsum((gaps - mean) ** 2) / gaps.size) / mean


def _peak(times: Floats) -> float | Absent:
    if not times.size:
        return Absent("no arrival in the window")
    ends = np.searchsorted(times, times + PEAK_S, side="left")
    return float((ends - np.arange(times.size)).max()) / PEAK_S
