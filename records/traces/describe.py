"""What a trace asks for: rate, burstiness, lengths, classes, shared prefixes, sessions.

Definitions: METHODS 4 (burstiness, dispersion) and docs/methods/traces.md. A
figure that the trace cannot give is None, and `reasons` says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from records.statistics.quantiles import quantile
from records.traces.prompts import approximate_tokens
from records.traces.reading import Trace
from records.traces.schema import TraceRequest

Floats = npt.NDArray[np.float64]
WINDOWS = {"1s": 1.0, "10s": 10.0, "60s": 60.0}
_QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
# Gaps above this are silence, which dominates CV without saying much about bursts.
_SILENCE_S = 30.0
_SAME_STAMP_SHARE = 0.10


def describe(trace: Trace) -> dict[str, Any]:
    """All figures of a trace, JSON-ready, keys as in CONTRACT `impakt trace describe`.

    `requests`, `span_s` (first to last arrival), `rate_per_s` ((n-1)/span), `cv`
    (population standard deviation of the gaps over their mean), `burstiness`
    ((cv-1)/(cv+1)), `dispersion` (variance over mean of counts per window),
    `prompt_tokens` and `output_tokens`, `classes`, `prefix_reuse`, `sessions`,
    `warnings`; None with an entry in `reasons` where undefined.
    """
    reasons: dict[str, str] = {}
    times = arrival_times(trace)
    figures: dict[str, Any] = {"requests": len(times), "span_s": float(times[-1] - times[0])}
    figures |= _pace(times, reasons)
    figures["dispersion"] = {key: dispersion(times, width) for key, width in WINDOWS.items()}
    for key, value in figures["dispersion"].items():
        if value is None:
            reasons[f"dispersion.{key}"] = "fewer than two full windows"
    figures["prompt_tokens"] = prompt_lengths(trace.requests)
    figures["output_tokens"] = output_lengths(trace.requests)
    figures["classes"] = class_shares(trace.requests)
    figures["prefix_reuse"] = prefix_reuse(trace.requests)
    if figures["prefix_reuse"] is None:
        reasons["prefix_reuse"] = "no request names prefix blocks"
    figures["sessions"] = sessions(trace.requests)
    if figures["sessions"] is None:
        reasons["sessions"] = "no request belongs to a session"
    figures["warnings"] = _warnings(times, figures)
    figures["reasons"] = reasons
    figures["hashes"] = {
        key: getattr(trace, key) for key in ("trace_hash", "demand_hash", "prompt_hash")
    }
    return figures


def arrival_times(trace: Trace) -> Floats:
    """The arrivals in seconds from trace start, ascending, float64."""
    return np.array([request.at_s for request in trace.requests], dtype=np.float64)


def _pace(times: Floats, reasons: dict[str, str]) -> dict[str, float | None]:
    span = float(times[-1] - times[0])
    rate = (len(times) - 1) / span if span > 0 else None
    cv = gap_cv(times)
    if rate is None:
        reasons["rate_per_s"] = (
            "all requests arrive at one moment" if len(times) > 1 else "one request"
        )
    if cv is None:
        reasons["cv"] = reasons["burstiness"] = (
            "fewer than two gaps between arrivals" if len(times) < 3 else "all gaps are 0"
        )
    return {
        "rate_per_s": rate,
        "cv": cv,
        "burstiness": None if cv is None else (cv - 1) / (cv + 1),
    }


def gap_cv(times: Floats) -> float | None:
    """How irregular the gaps between arrivals are: 0 constant, 1 Poisson, more is bursty.

    Population standard deviation over mean, gaps of 0 included; None below two
    gaps and when every gap is 0.
    """
    gaps = np.diff(times)
    if len(gaps) < 2 or not gaps.any():
        return None
    return float(gaps.std() / gaps.mean())


def dispersion(times: Floats, width_s: float) -> float | None:
    """How much more the counts per window vary than Poisson's (which gives 1).

    Population variance over mean of the arrivals in full windows of `width_s`
    from the first arrival; the partial last one is dropped. None below two full
    windows. It depends on the resolution of the stamps.
    """
    # Nanoseconds absorb the rounding of a difference of decimals: 2.3 - 0.3 < 2.
    offsets = np.round(times - times[0], 9)
    windows = int(offsets[-1] // width_s)
    if windows < 2:
        return None
    index = (offsets // width_s).astype(np.int64)
    counts = np.bincount(index[index < windows], minlength=windows)
    return float(counts.var() / counts.mean())


def prompt_lengths(requests: Sequence[TraceRequest]) -> dict[str, Any]:
    """The distribution of prompt lengths; `basis` says whether tokens or words were counted."""
    stated = sum(request.prompt_tokens is not None for request in requests)
    basis = "words" if stated == 0 else "tokens" if stated == len(requests) else "tokens and words"
    return distribution([approximate_tokens(r) for r in requests]) | {"basis": basis}


def output_lengths(requests: Sequence[TraceRequest]) -> dict[str, Any]:
    """The distribution of output limits over the requests that state one."""
    stated = [r.max_output_tokens for r in requests if r.max_output_tokens is not None]
    found = distribution(stated)
    return found if stated else found | {"reason": "no request states max_output_tokens"}


def distribution(values: Sequence[int]) -> dict[str, Any]:
    """n, mean, type-7 quantiles, min and max of whole numbers; all but n None when empty."""
    array = np.asarray(values, dtype=np.float64)
    some = array.size > 0
    out: dict[str, Any] = {"n": int(array.size), "mean": float(array.mean()) if some else None}
    out |= {key: quantile(array, p) for key, p in _QUANTILES.items()}
    out |= {
        "min": float(array.min()) if some else None,
        "max": float(array.max()) if some else None,
    }
    return out


def class_shares(requests: Sequence[TraceRequest]) -> dict[str, dict[str, float]]:
    """Requests and share of requests (0 to 1) per service class, by name."""
    counts = Counter(request.service_class for request in requests)
    return {
        name: {"requests": count, "share": count / len(requests)}
        for name, count in sorted(counts.items())
    }


def prefix_reuse(requests: Sequence[TraceRequest]) -> dict[str, Any] | None:
    """How much of the prompts an unlimited prefix cache would have held already.

    In file order, the longest leading run of blocks seen before counts as hit;
    `block_hit_ratio` over all blocks, `token_hit_ratio` over all prompt tokens.
    None when no request names prefix blocks.
    """
    seen: set[str] = set()
    blocks = hits = hit_tokens = 0
    for request in requests:
        leading = True
        for block in request.prefix or ():
            leading = leading and block["id"] in seen
            blocks += 1
            hits += leading
            hit_tokens += block["tokens"] if leading else 0
        seen.update(block["id"] for block in request.prefix or ())
    if not blocks:
        return None
    total = sum(approximate_tokens(request) for request in requests)
    return {
        "blocks": blocks,
        "unique_blocks": len(seen),
        "hit_blocks": hits,
        "block_hit_ratio": hits / blocks,
        "token_hit_ratio": hit_tokens / total if total else None,
    }


def sessions(requests: Sequence[TraceRequest]) -> dict[str, Any] | None:
    """How many sessions there are and how many requests each has; None without sessions."""
    turns = Counter(request.session for request in requests if request.session is not None)
    if not turns:
        return None
    lengths = list(turns.values())
    return {
        "count": len(lengths),
        "requests": sum(lengths),
        "turns_mean": sum(lengths) / len(lengths),
        "turns_max": max(lengths),
    }


def _warnings(times: Floats, figures: dict[str, Any]) -> list[str]:
    """What a reader of the figures must know before trusting them, as sentences."""
    found = [_silence(times), _coarse(times)]
    basis = figures["prompt_tokens"]["basis"]
    if basis != "tokens":
        found.append(
            f"prompt lengths are counted in {basis}: approximate until a server counts them"
        )
    unstated = len(times) - figures["output_tokens"]["n"]
    if unstated:
        found.append(f"{unstated} of {len(times)} requests state no max_output_tokens")
    if len(figures["classes"]) == 1:
        found.append("one service class only: it cannot carry a batching or scheduling decision")
    return [sentence for sentence in found if sentence]


def _silence(times: Floats) -> str | None:
    gaps = np.diff(times)
    long = gaps[gaps > _SILENCE_S]
    if not long.size:
        return None
    return (
        f"gaps over {_SILENCE_S:.0f} s: {long.size}, together {long.sum():.0f} s of "
        f"{times[-1] - times[0]:.0f} s; they dominate cv"
    )


def _coarse(times: Floats) -> str | None:
    distinct = len(np.unique(times))
    if len(times) < 2 or 1 - distinct / len(times) <= _SAME_STAMP_SHARE:
        return None
    return (
        f"{len(times) - distinct} of {len(times)} requests share their stamp with another: the "
        "clock is coarse, so cv and short-window dispersion describe the clock"
    )
