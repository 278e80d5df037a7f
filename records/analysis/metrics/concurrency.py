"""How many requests were in flight, weighted by time."""

from __future__ import annotations

import math

import numpy as np

from records.analysis.distribution import no_distribution
from records.analysis.figures import PERCENTILES, Distribution, Percentile, distribution_of
from records.analysis.frames import Floats, Frames, Window, column

NO_LIMITS = "time-weighted over the whole window: a description, not a sample"


def steps(starts: Floats, ends: Floats, window: Window) -> tuple[Floats, Floats]:
    """A counting step function on the window: times at which it changes, count from then on.

    The first time is the window's start. A start or end that did not happen is
    NaN: without a start nothing counts, without an end it counts to the last.
    """
    on = ~np.isnan(starts)
    begin, end = starts[on], np.where(np.isnan(ends[on]), np.inf, ends[on])
    at = np.concatenate([begin, end[np.isfinite(end)]])
    change = np.concatenate([np.ones(begin.size), -np.ones(int(np.isfinite(end).sum()))])
    base = float(((begin <= window.start_s) & (end > window.start_s)).sum())
    inside = (at > window.start_s) & (at <= window.end_s)
    times, where = np.unique(at[inside], return_inverse=True)
    moves = np.bincount(where, weights=change[inside], minlength=times.size)
    counts = base + np.concatenate([[0.0], np.cumsum(moves)])
    return np.concatenate([[window.start_s], times]), counts


def concurrency_observed(frames: Frames) -> Distribution:
    """Attempts in flight (sent to end), weighted by the time they lasted in the window.

    `n` is the attempts that were in flight at some time of the window. There
    are no limits: nothing was sampled. Absent when the window has no length.
    """
    window = frames.window
    sent, end = column(frames.attempts, "sent_s"), column(frames.attempts, "end_s")
    if window.duration_s <= 0:
        return no_distribution("the window has no length")
    times, counts = steps(sent, end, window)
    lengths = np.diff(times, append=window.end_s)
    times, counts, lengths = times[lengths > 0], counts[lengths > 0], lengths[lengths > 0]
    order = np.argsort(counts, kind="stable")
    ordered, ends = counts[order], np.cumsum(lengths[order])
    figures = {}
    for name, p in PERCENTILES.items():
        at = min(int(np.searchsorted(ends, p * ends[-1], side="left")), ordered.size - 1)
        figures[name] = Percentile(float(ordered[at]), None, None, True, NO_LIMITS)
    seen = (sent <= window.end_s) & ~(end < window.start_s)
    mean = math.fsum(counts * lengths) / window.duration_s
    moments = (mean, float(counts.min()), float(counts.max()))
    return distribution_of(int(seen.sum()), moments, figures, "measured")
