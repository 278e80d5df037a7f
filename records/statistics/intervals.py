"""Intervals of proportions, means and differences: numbers in, numbers out.

Every interval is two-sided. What the sample cannot give is None, never 0.
Formulas and their vectors: METHODS 6, docs/methods/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

Numbers = Sequence[float] | npt.NDArray[np.floating] | npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Interval:
    """Two limits in the unit of what they enclose; None where a limit does not exist."""

    low: float | None
    high: float | None


UNKNOWN = Interval(None, None)


class Estimate(NamedTuple):
    """A value with its limits, all in one unit; None where it does not exist."""

    value: float | None
    low: float | None
    high: float | None


def wilson(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Between which fractions a proportion lies when k of n were seen.

    Wilson's score interval: (p + z²/2n ± z√(p(1-p)/n + z²/4n²)) / (1 + z²/n).
    Both limits None when n is 0. ValueError unless 0 <= k <= n.
    """
    _check_counts(k, n)
    if n == 0:
        return UNKNOWN
    z = float(special.ndtri(1.0 - (1.0 - confidence) / 2.0))
    p = k / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # At k = 0 and k = n the limit is exactly 0 and 1; rounding must not miss it.
    low = 0.0 if k == 0 else max(0.0, (centre - half) / scale)
    high = 1.0 if k == n else min(1.0, (centre + half) / scale)
    return Interval(low, high)


def clopper_pearson(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Between which fractions a proportion lies, with coverage never below nominal.

    Beta quantiles: B(alpha/2; k, n-k+1) and B(1-alpha/2; k+1, n-k). Wider than
    `wilson`. Both limits None when n is 0. ValueError unless 0 <= k <= n.
    """
    _check_counts(k, n)
    if n == 0:
        return UNKNOWN
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1.0 - tail))
    return Interval(low, high)


def mean_interval(values: Numbers, confidence: float = 0.95) -> Interval:
    """Between which limits the true mean lies, by Student's t on n - 1 degrees.

    In the unit of the values. Both limits None below two values: one replicate
    says nothing about its own spread. Equal values give an interval of width 0.
    """
    array = _finite(values)
    if array.size < 2:
        return UNKNOWN
    mean = float(array.mean())
    half = _t(confidence, array.size - 1) * float(array.std(ddof=1)) / math.sqrt(array.size)
    return Interval(mean - half, mean + half)


def welch_difference(
    baseline: Numbers,
    candidate: Numbers,
    confidence: float = 0.95,
    least: tuple[float, float] = (0.0, 0.0),
) -> Estimate:
    """How much larger the candidate's mean is than the baseline's: (difference, low, high).

    mean(candidate) - mean(baseline), unpaired, unequal variances (Welch), in the
    unit of the values; the values are replicates, not requests. `least` is the
    smallest squared standard error to believe of each mean (baseline, candidate):
    two replicates that happen to agree say little about their spread. The
    difference is None when a side is empty, the limits when a side has fewer
    than two.
    """
    a, b = _finite(baseline), _finite(candidate)
    if not a.size or not b.size:
        return Estimate(None, None, None)
    difference = float(b.mean() - a.mean())
    if min(a.size, b.size) < 2:
        return Estimate(difference, None, None)
    parts = (
        max(float(a.var(ddof=1)) / a.size, least[0]),
        max(float(b.var(ddof=1)) / b.size, least[1]),
    )
    half = _welch_half(parts, (a.size, b.size), confidence)
    return Estimate(difference, difference - half, difference + half)


def relative_change(
    baseline: Numbers,
    candidate: Numbers,
    confidence: float = 0.95,
    least: tuple[float, float] = (0.0, 0.0),
) -> Estimate:
    """By which fraction the candidate's mean differs from the baseline's (0.1 is 10 % more).

    mean(candidate) / mean(baseline) - 1; limits by Welch's t on the logarithm of
    the ratio (delta method: each side's variance over its squared mean); `least`
    as in `welch_difference`. None
    when a side is empty or a mean is not above 0; the limits are None when a
    side has fewer than two values.
    """
    a, b = _finite(baseline), _finite(candidate)
    if not a.size or not b.size or a.mean() <= 0 or b.mean() <= 0:
        return Estimate(None, None, None)
    ratio = float(b.mean() / a.mean())
    if min(a.size, b.size) < 2:
        return Estimate(ratio - 1, None, None)
    parts = (
        max(float(a.var(ddof=1)) / a.size, least[0]) / float(a.mean()) ** 2,
        max(float(b.var(ddof=1)) / b.size, least[1]) / float(b.mean()) ** 2,
    )
    half = _welch_half(parts, (a.size, b.size), confidence)
    return Estimate(ratio - 1, ratio * math.exp(-half) - 1, ratio * math.exp(half) - 1)


def _welch_half(parts: tuple[float, float], sizes: tuple[int, int], confidence: float) -> float:
    """Half the width of a Welch interval from the two squared standard errors."""
    total = parts[0] + parts[1]
    if total == 0.0:
        return 0.0
    # As shares of the total: squares of tiny variances would underflow to 0/0.
    shares = (parts[0] / total, parts[1] / total)
    degrees = 1.0 / sum(s * s / (n - 1) for s, n in zip(shares, sizes, strict=True))
    return _t(confidence, degrees) * math.sqrt(total)


def _t(confidence: float, degrees: float) -> float:
    return float(special.stdtrit(degrees, 1.0 - (1.0 - confidence) / 2.0))


def _finite(values: Numbers) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("values must be finite; leave absent values out")
    return array


def _check_counts(k: int, n: int) -> None:
    if not 0 <= k <= n:
        raise ValueError(f"0 <= k <= n is needed, not k={k}, n={n}")
