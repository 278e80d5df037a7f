"""Whether a run's figures may be used at all, and what a reader must know about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from records.analysis.figures import Absent, Distribution
from records.analysis.frames import Frames, Window, column
from records.analysis.metrics.generator import kernel_share, missed

LAG_LIMIT_S = 0.010
# One stall of the event loop above this and all that was due in it left in one burst.
STALL_LIMIT_S = 1.0
# Shorter ones every busy machine has, and the bounds of tokens that share a receive show them.
STALL_NOTED_S = 0.1
# With this share of attempts stamped by the kernel, the others do not move a p99.
KERNEL_SHARE = 0.99
# The share of the offered rate that must be sent.
DELIVERED_SHARE = 0.95
_STATES = {
    "interrupted": "the run was interrupted: the worker ended or was stopped by its user",
    "failed": "the run failed",
    "stopped": "a person stopped the run before its end",
    "running": "the run is not over",
}
INDEPENDENCE = (
    "limits of percentiles and fractions assume independent requests; requests that share"
    " a batch are not, so compare configurations over replicates"
)
SIMULATED = "simulated endpoint: proves the instrument, nothing about an engine"


def invalid_reasons(
    frames: Frames,
    run: Mapping[str, Any],
    generator: Mapping[str, Any],
    arrivals: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Why the run is not valid: {code, text, figure} each; empty when it is."""
    out = []
    state = str(run.get("state"))
    if state in _STATES:
        told = (run.get("end") or {}).get("text")
        out.append(_reason(state, _STATES[state] + (f" ({told})" if told else ""), "run.state"))
    if frames.arrived.empty:
        text = "no request arrived in the measurement window"
        out.append(_reason("no_requests", text, "counts.attempted"))
        return out
    by_kernel = kernel_share(frames.tries) >= KERNEL_SHARE
    behind = _generator_behind(run, generator, by_kernel)
    return out + behind + _delivered_short(frames, run, arrivals)


def _reason(code: str, text: str, figure: str) -> dict[str, Any]:
    return {"code": code, "text": text, "figure": figure}


def lag_limit_s(run: Mapping[str, Any]) -> float:
    """The p99 schedule lag the run allows: as recorded, else 10 ms."""
    limit = (run.get("generator") or {}).get("lag_limit_s")
    return LAG_LIMIT_S if limit is None else float(limit)


def _generator_behind(
    run: Mapping[str, Any], generator: Mapping[str, Any], by_kernel: bool
) -> list[dict[str, Any]]:
    limit, p99 = lag_limit_s(run), generator["schedule_lag_s"].p99.value
    if p99 is not None and p99 > limit:
        text = (
            f"the load generator was behind: p99 schedule lag {p99 * 1e3:.1f} ms,"
            f" limit {limit * 1e3:.1f} ms"
        )
        return [_reason("generator_behind", text, "generator.schedule_lag_s.p99")]
    return _stalled(limit, generator["loop_stall_s"], by_kernel)


def _stalled(limit: float, stall: Distribution, by_kernel: bool) -> list[dict[str, Any]]:
    """A stalled loop, judged by what it can falsify.

    It delays sends, which their own lag shows, unless it is so long that all that
    was due in it left at once. Times of the kernel do not see it; times read in user
    space are late by it, so they are held to the limit of the sends.
    """
    if stall.max is not None and stall.max > STALL_LIMIT_S:
        text = (
            f"the event loop stalled for {stall.max:.2f} s, limit {STALL_LIMIT_S:.0f} s:"
            " nothing could be sent meanwhile"
        )
        return [_reason("generator_behind", text, "generator.loop_stall_s.max")]
    p99 = stall.p99.value
    if by_kernel or p99 is None or p99 <= limit:
        return []
    text = (
        f"the event loop was behind: p99 stall {p99 * 1e3:.1f} ms, limit {limit * 1e3:.1f} ms,"
        " and times read in user space are late by it"
    )
    return [_reason("generator_behind", text, "generator.loop_stall_s.p99")]


def _delivered_short(
    frames: Frames, run: Mapping[str, Any], arrivals: Mapping[str, Any]
) -> list[dict[str, Any]]:
    unsent = missed(frames)
    if unsent and run.get("state") not in _STATES:
        text = f"{unsent} of {len(frames.arrived)} due requests were never sent"
        return [_reason("delivered_short", text, "generator.missed")]
    capped = (run.get("policies") or {}).get("max_concurrency") is not None
    held = frames.arrived["outcome"].isin(("shed", "deferred", "cancelled", "timed_out")).any()
    window = frames.window
    late = float(np.nanmax(column(frames.arrived, "sent_s"), initial=-np.inf)) - window.end_s
    # The lag limit is allowed also where the window is so short that it is a large share.
    allowed = window.duration_s * (1 / DELIVERED_SHARE - 1) + lag_limit_s(run)
    if capped or held or unsent or late <= allowed:
        return []
    offered, sent = (arrivals[key] for key in ("offered_per_s", "sent_per_s"))
    rates = "" if isinstance(sent, Absent) else f": {sent:.3g} of {offered:.3g} requests/s"
    text = f"the last request left {late:.3g} s after the window{rates}"
    return [_reason("delivered_short", text, "arrivals.sent_per_s")]


def notes(
    frames: Frames,
    run: Mapping[str, Any],
    targets: Mapping[str, Mapping[str, float]],
    concurrency: Distribution,
) -> list[str]:
    """What a reader must know beside the figures, in a fixed order."""
    out = [INDEPENDENCE]
    if run.get("simulated"):
        out.append(SIMULATED)
    if concurrency.max is not None and concurrency.max <= 1:
        out.append("point sample: one unloaded run, never more than one request in flight")
    if (run.get("policies") or {}).get("max_concurrency") is not None:
        out.append(
            "schedule lag is judged over requests that found a free slot; waiting for the"
            " concurrency limit is client wait"
        )
    out += _stall(run) + _one_token(frames, targets)
    return out + _clipped(frames.window, run) + _told(run)


def _stall(run: Mapping[str, Any]) -> list[str]:
    """A stall that is no reason against the run, and yet longer than what it allows sends."""
    longest, limit = (run.get("generator") or {}).get("loop_stall_max_s"), lag_limit_s(run)
    if longest is None or longest <= max(limit, STALL_NOTED_S):
        return []
    return [
        f"the load generator stalled for up to {longest:.2f} s: what came to one connection"
        " meanwhile has one time, its last"
    ]


def _told(run: Mapping[str, Any]) -> list[str]:
    """What the load generator noted of the run before it: what it does not do, what it found."""
    told = run.get("notes")
    return [note for note in told if isinstance(note, str)] if isinstance(told, list) else []


def _one_token(frames: Frames, targets: Mapping[str, Mapping[str, float]]) -> list[str]:
    done = frames.completed
    limited = [c for c, t in targets.items() if "tpot_s" in t or "itl_s" in t]
    short = done["class"].isin(limited).to_numpy() & (column(done, "output_tokens") == 1)
    n = int(np.count_nonzero(short))
    if not n:
        return []
    return [f"{n} answers of one token: a TPOT or ITL target does not apply to them"]


def _clipped(window: Window, run: Mapping[str, Any]) -> list[str]:
    declared = float(run["window"]["end_s"])
    if window.end_s >= declared:
        return []
    return [f"the window ends at {window.end_s:.3f} s with the run, not at {declared:.3f} s"]
