"""In which phase the time of a completed request went, at the median and in the tail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from records.analysis.distribution import Sample
from records.analysis.figures import Absent
from records.analysis.frames import Floats, Frames, column

PHASES = (
    "client", "backoff", "queue", "prefill", "queue_prefill", "decode", "external", "residual",
)  # fmt: skip
MEDIAN_BAND = (0.4, 0.6)
MEDIAN_LABEL = "median (p40–p60)"
MEDIAN_NEEDS, TAIL_NEEDS, WIDE_TAIL_BELOW = 5, 20, 100
UNDIVIDED = "queue and prefill were not observed apart, see queue_prefill"
DIVIDED = "known apart, see queue and prefill"
NO_TOOL = "no tool ran inside a request; tool time between requests is tools.exclusive_s"
# Time that cannot be told from rounding of microseconds is not a phase.
_NOISE_S = 1e-9


def phase_times(done: pd.DataFrame) -> dict[str, Floats]:
    """Seconds per phase and completed request; the phases of a request sum to its E2E.

    client = first send - intended arrival; backoff = pauses between tries;
    queue and prefill as the server told them for every request, else
    queue_prefill = first token - send; decode = last - first token, or as the
    server told it for an answer that was not streamed; residual = the rest,
    failed tries included. A phase that was not observed for any request is left
    out; one not observed for some counts 0 there, its time is in the residual.
    """
    e2e, sent = column(done, "e2e_s"), column(done, "counted_sent_s")
    first, last = column(done, "first_token_s"), column(done, "last_token_s")
    queue, prefill = column(done, "queue_s"), column(done, "prefill_s")
    out = {"client": column(done, "client_wait_s"), "backoff": column(done, "backoff_s")}
    if len(done) and not np.isnan(queue + prefill).any():
        out |= {"queue": queue, "prefill": prefill}
    else:
        out["queue_prefill"] = first - sent
    out["decode"] = np.where(np.isnan(first), column(done, "decode_s"), last - first)
    out = {name: np.nan_to_num(v) for name, v in out.items() if not np.isnan(v).all()}
    residual = e2e - sum(out.values(), np.zeros(e2e.size))
    out["residual"] = np.where(np.abs(residual) < _NOISE_S, 0.0, residual)
    return out


def phases(frames: Frames) -> dict[str, Any]:
    """Total, share of E2E, median and p95 per phase, and which phase dominates where.

    Over completed requests with a known E2E. Shares sum to 1; review time is
    apart. Absent phases name their reason.
    """
    done = timed(frames)
    if done.empty:
        gone = Absent("no completed request")
        nothing = {"phase": gone, "share": gone, "grade": "not_observable"}
        return {p: _absent("no completed request") for p in PHASES} | {
            "dominant": {"median": nothing, "tail": nothing}
        }
    times = phase_times(done)
    e2e = column(done, "e2e_s")
    whole = math.fsum(e2e)
    out: dict[str, Any] = {}
    for name in PHASES:
        if name in times:
            out[name] = _phase(times[name], whole, phase_grade(name, done))
        else:
            out[name] = _absent(_why_absent(name, times))
    out["dominant"] = {
        "median": _dominant(
            times, median_band(e2e), done, f"fewer than {MEDIAN_NEEDS} completions"
        ),
        "tail": _dominant(times, tail_band(e2e), done, f"fewer than {TAIL_NEEDS} completions"),
    }
    return out


def timed(frames: Frames) -> pd.DataFrame:
    """Completed requests of the window whose E2E is known."""
    done = frames.completed
    return done[~np.isnan(column(done, "e2e_s"))]


def median_band(e2e: Floats) -> np.ndarray | None:
    """Which requests lie between the 40th and 60th percentile of E2E; None below 5 requests."""
    if e2e.size < MEDIAN_NEEDS:
        return None
    sample = Sample(e2e)
    return (e2e >= sample.quantile(MEDIAN_BAND[0])) & (e2e <= sample.quantile(MEDIAN_BAND[1]))


def tail_band(e2e: Floats) -> np.ndarray | None:
    """Which requests are the tail: at or above p95 of E2E from 100 requests on, above
    p90 from 20 on, None below."""
    if e2e.size < TAIL_NEEDS:
        return None
    return e2e >= Sample(e2e).quantile(0.9 if e2e.size < WIDE_TAIL_BELOW else 0.95)


def tail_label(e2e: Floats) -> str:
    """How the tail of so many requests is named; see `tail_band`."""
    return "tail (above p90)" if e2e.size < WIDE_TAIL_BELOW else "tail (above p95)"


def phase_grade(name: str, done: pd.DataFrame) -> str:
    """How the phase is known: the client saw it, the server told it, or it is what is left."""
    if name == "residual":
        return "derived"
    if name in ("queue", "prefill"):
        told = set(done["phase_grade"].dropna())
        return "measured" if told == {"measured"} else "derived"
    return "measured"


def _phase(times: Floats, whole: float, grade: str) -> dict[str, Any]:
    sample, total = Sample(times), math.fsum(times)
    return {
        "total_s": total,
        "share": total / whole if whole > 0 else Absent("E2E sums to 0"),
        "grade": grade,
        "p50_s": sample.quantile(0.5),
        "p95_s": sample.quantile(0.95),
    }


def _absent(reason: str) -> dict[str, Any]:
    gone = Absent(reason)
    figures = dict.fromkeys(("total_s", "share", "p50_s", "p95_s"), gone)
    return {**figures, "grade": "not_observable"}


def _why_absent(name: str, times: dict[str, Floats]) -> str:
    if name == "external":
        return NO_TOOL
    if name in ("queue", "prefill"):
        return UNDIVIDED if "queue_prefill" in times else "no token time was seen: not streamed"
    return DIVIDED if "queue" in times else "no token time was seen: not streamed"


def _dominant(
    times: dict[str, Floats], band: np.ndarray | None, done: pd.DataFrame, reason: str
) -> dict[str, Any]:
    if band is None:
        gone = Absent(reason)
        return {"phase": gone, "share": gone, "grade": "not_observable"}
    totals = {name: math.fsum(values[band]) for name, values in times.items()}
    whole = math.fsum(column(done, "e2e_s")[band])
    name = max(totals, key=lambda k: totals[k])
    share = totals[name] / whole if whole > 0 else Absent("E2E sums to 0")
    return {"phase": name, "share": share, "grade": phase_grade(name, done)}
