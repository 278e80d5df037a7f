"""How much work left, how much of it met its objective, how much was accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from records.analysis.figures import Absent, Estimate, no_estimate
from records.analysis.frames import Frames, column
from records.analysis.metrics.acceptance import Accepted
from records.analysis.metrics.arrivals import per_second
from records.analysis.metrics.slo import MET, NO_OBJECTIVE, UNKNOWN
from records.statistics.intervals import wilson


def goodput(frames: Frames, accepted: Accepted) -> dict[str, Any]:
    """Rates by departure in the window, and fractions of what arrived in it.

    attempted_per_s, completed_per_s and output_tokens_per_s (of completions)
    count departures in the window, whenever they arrived. The fractions and
    accepted_per_s count arrivals of the window, followed to their end.
    amplification = attempts / requests sent.
    """
    arrived = frames.arrived
    n, completed = len(arrived), len(frames.completed)
    left = frames.requests[frames.window.holds(column(frames.requests, "departure_s"))]
    done = left[left["outcome"] == "completed"]
    span = frames.window.duration_s
    sent = frames.tries["row"].nunique()
    return {
        "attempted_per_s": per_second(len(left), span),
        "completed_per_s": per_second(len(done), span),
        "output_tokens_per_s": _tokens_per_s(done, span),
        "completed_fraction": proportion(completed, n, "no request was attempted"),
        "slo_attainment": slo_attainment(arrived[arrived["outcome"] != "cancelled"]),
        "slo_attainment_of_attempted": slo_attainment(arrived),
        **accepted_rates(accepted, span),
        "amplification": len(frames.tries) / sent if sent else Absent("no request was sent"),
    }


def proportion(k: int, n: int, absent: str) -> Estimate:
    """k of n with Wilson's limits; absent for n = 0."""
    if n == 0:
        return no_estimate(absent, n=0)
    limits = wilson(k, n)
    return Estimate(k / n, limits.low, limits.high, n, "measured")


def slo_attainment(requests: pd.DataFrame) -> Estimate:
    """The share of these requests that completed within the objective of their class.

    Reads class, met (see `slo.objective_met`). Absent when a class has no
    objective, or when a target could not be observed for some completion.
    """
    met = requests["met"].to_numpy()
    without = sorted(set(requests.loc[met == NO_OBJECTIVE, "class"]))
    if without:
        return no_estimate(f"no objective for class {without[0]}", n=len(requests))
    unknown = int((met == UNKNOWN).sum())
    if unknown:
        reason = f"a target of the objective was not observable for {unknown} completed requests"
        return no_estimate(reason, n=len(requests))
    return proportion(int((met == MET).sum()), len(requests), "no request was attempted")


def accepted_rates(accepted: Accepted, duration_s: float) -> dict[str, Estimate]:
    """accepted / workflows, and accepted workflows per second of the window.

    The rate's limits are those of the fraction, times workflows per second: the
    arrivals are given by the trace and do not vary.
    """
    n, k = accepted.workflows, accepted.accepted
    if isinstance(k, Absent):
        gone = no_estimate(k.reason, n=n)
        return {"accepted_fraction": gone, "accepted_per_s": gone}
    fraction = proportion(k, n, "no workflow was attempted")
    if duration_s <= 0:
        return {
            "accepted_fraction": fraction,
            "accepted_per_s": no_estimate("the window has no length", n=n),
        }
    scale = n / duration_s
    rate = Estimate(k / duration_s, None, None, n, "measured", fraction.reason)
    if fraction.low is not None and fraction.high is not None:
        rate = Estimate(k / duration_s, fraction.low * scale, fraction.high * scale, n, "measured")
    return {"accepted_fraction": fraction, "accepted_per_s": rate}


def _tokens_per_s(done: pd.DataFrame, duration_s: float) -> float | Absent:
    tokens = column(done, "output_tokens")
    unknown = int(np.isnan(tokens).sum())
    if unknown:
        return Absent(f"output tokens unknown for {unknown} of {tokens.size} completed requests")
    return per_second(float(tokens.sum()), duration_s)
