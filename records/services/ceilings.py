"""How much load an endpoint may be given: its own ceilings and this installation's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from django.conf import settings

from records.errors import FieldError
from records.models import Endpoint
from records.models import Trace as TraceRow


def busiest_per_s(arrivals: Iterable[float], limit_per_s: float | None = None) -> float:
    """The most arrivals in any second [t, t + 1), in requests/s.

    A limit below 1/s is met over as many seconds as one request may take of it,
    since no single second could keep it.
    """
    times = np.fromiter(arrivals, dtype=np.float64)
    width_s = 1.0 if limit_per_s is None else max(1.0, 1.0 / limit_per_s)
    # Nanoseconds: 0.3 + 1 must not take in an arrival at 1.3.
    ends = np.searchsorted(np.round(times, 9), np.round(times + width_s, 9), side="left")
    return float((ends - np.arange(len(times))).max()) / width_s


def rate_ceiling(endpoint: Endpoint) -> tuple[float, str]:
    """The most requests per second that may be sent there, and who says so."""
    own = endpoint.max_rate_per_s
    if own is not None and own <= settings.MAX_RATE_PER_S:
        return own, endpoint.name
    return settings.MAX_RATE_PER_S, "this installation"


def concurrency_ceiling(endpoint: Endpoint) -> tuple[int, str]:
    """The most requests that may be open there at once, and who says so."""
    own = endpoint.max_concurrency
    if own is not None and own <= settings.MAX_CONCURRENCY:
        return own, endpoint.name
    return settings.MAX_CONCURRENCY, "this installation"


def check_rate(endpoint: Endpoint, name: str, arrivals: list[float]) -> None:
    """FieldError naming both numbers when a trace is busier than its endpoint may be."""
    most, who = rate_ceiling(endpoint)
    busiest = busiest_per_s(arrivals, most)
    if busiest > most:
        span_s = arrivals[-1] - arrivals[0]
        mean = f"{(len(arrivals) - 1) / span_s:.3g} on average" if span_s > 0 else "all at once"
        raise FieldError(
            "run", "trace",
            f"{name} asks for {busiest:.4g} requests/s at its busiest ({mean}), "
            f"{who} allows at most {most:.4g}",
        )  # fmt: skip


def surely_within_rate(endpoint: Endpoint, trace: TraceRow) -> bool:
    """Whether the row of a trace tells that it keeps the ceiling, without reading its bytes."""
    most, _ = rate_ceiling(endpoint)
    busiest = (trace.description or {}).get("busiest_per_s")
    return trace.requests <= most or (most >= 1 and busiest is not None and busiest <= most)


def capped(endpoint: Endpoint, trace: TraceRow, policies: dict[str, Any]) -> dict[str, Any]:
    """The policies within the ceiling on concurrency; FieldError when more is asked for.

    A run that asks for no limit gets the ceiling, except where the trace has too
    few requests to reach this installation's.
    """
    most, who = concurrency_ceiling(endpoint)
    asked = policies["max_concurrency"]
    if asked is None:
        own = endpoint.max_concurrency is not None
        return policies | {"max_concurrency": most if own or trace.requests > most else None}
    if asked > most:
        raise FieldError(
            "run", "policies.max_concurrency", f"{asked} asked for, {who} allows at most {most}"
        )
    return policies
