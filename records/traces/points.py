"""The points behind the pictures of a trace: rate over time, lengths as a histogram."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from records.traces.describe import arrival_times
from records.traces.prompts import approximate_tokens
from records.traces.reading import Trace


def rate_series(trace: Trace, bins: int = 200) -> dict[str, Any] | None:
    """Arrivals per second over the trace, in equal bins from first to last arrival, per class.

    `start_s` (left edges, seconds), `width_s`, `rate_per_s`, and `classes` with
    one such list per class. None when all requests arrive at one moment.
    """
    times = arrival_times(trace)
    if times[-1] <= times[0]:
        return None
    edges = np.linspace(times[0], times[-1], bins + 1)
    width = float(edges[1] - edges[0])
    names = np.array([request.service_class for request in trace.requests])
    return {
        "start_s": edges[:-1].tolist(),
        "width_s": width,
        "rate_per_s": (np.histogram(times, edges)[0] / width).tolist(),
        "classes": {
            str(name): (np.histogram(times[names == name], edges)[0] / width).tolist()
            for name in np.unique(names)
        },
    }


def length_histogram(
    trace: Trace, kind: Literal["prompt", "output"], bins: int = 40
) -> dict[str, Any] | None:
    """How many requests have which length, in bins of equal ratio (lengths span decades).

    `edges` in tokens, one longer than `counts`; lengths of 0 lie in the first
    bin. None when no request states such a length.
    """
    if kind == "prompt":
        lengths = [approximate_tokens(request) for request in trace.requests]
    else:
        stated = (request.max_output_tokens for request in trace.requests)
        lengths = [limit for limit in stated if limit is not None]
    if not lengths:
        return None
    values = np.maximum(np.asarray(lengths, dtype=np.float64), 1.0)
    top = max(float(values.max()), float(values.min()) + 1.0)
    edges = np.geomspace(float(values.min()), top, bins + 1)
    edges[-1] = top
    return {"edges": edges.tolist(), "counts": np.histogram(values, edges)[0].tolist()}


def _bins(requests: int, least: int, most: int) -> int:
    """About four requests a bin: a short trace in 200 bins would show only single arrivals."""
    return max(least, min(most, requests // 4))


def points_of(trace: Trace) -> dict[str, Any]:
    """All points of a trace's preview: `rate`, `prompt_tokens`, `output_tokens`."""
    n = len(trace.requests)
    return {
        "rate": rate_series(trace, _bins(n, 8, 200)),
        "prompt_tokens": length_histogram(trace, "prompt", _bins(n, 10, 40)),
        "output_tokens": length_histogram(trace, "output", _bins(n, 10, 40)),
    }
