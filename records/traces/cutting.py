"""A window of time out of a trace, as a trace of its own."""

from __future__ import annotations

import math
from dataclasses import replace

from records.errors import BadInput
from records.traces.reading import Trace
from records.traces.schema import SCHEMA


def cut_window(trace: Trace, start_s: float, end_s: float) -> Trace:
    """The requests that arrive from `start_s` on and before `end_s`, in seconds of the trace.

    The window's start becomes 0; nothing else changes, ids included. The header
    keeps the parent's hash and the window. BadInput when the window is empty.
    """
    if not (math.isfinite(start_s) and math.isfinite(end_s) and 0 <= start_s < end_s):
        raise BadInput(f"window: 0 <= start < end in seconds, not {start_s:g} to {end_s:g}")
    # Nanoseconds: a difference of two decimals must not grow fifteen digits.
    requests = [
        replace(request, at_s=round(request.at_s - start_s, 9))
        for request in trace.requests
        if start_s <= request.at_s < end_s
    ]
    if not requests:
        last = trace.requests[-1].at_s
        wanted = f"a window with requests; the trace ends at {last:g} s"
        raise BadInput(f"window: {wanted}, not {start_s:g} to {end_s:g} s")
    changes = list(trace.header.get("changes", []))
    begun = _begun_before(trace, start_s)
    if begun:
        changes.append(
            f"sessions that began before the window: {begun}; their earlier turns are left out"
        )
    cut = {"start_s": start_s, "end_s": end_s, "parent_trace_hash": trace.trace_hash}
    header = {
        **trace.header,
        "schema": SCHEMA,
        "changes": changes,
        "cuts": [*trace.header.get("cuts", []), cut],
    }
    return Trace(header, requests)


def _begun_before(trace: Trace, start_s: float) -> int:
    """How many sessions have turns on both sides of the window's start."""
    before = {r.session for r in trace.requests if r.session is not None and r.at_s < start_s}
    after = {r.session for r in trace.requests if r.session is not None and r.at_s >= start_s}
    return len(before & after)
