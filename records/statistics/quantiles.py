"""Quantiles and how far the sample supports them.

Percentiles are type 7 (linear, NumPy's default). Their limits are order
statistics, which assume nothing about the distribution; they do assume
independent requests (docs/methods/intervals.md).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from records.statistics.intervals import UNKNOWN, Interval

Numbers = Sequence[float] | npt.NDArray[np.floating] | npt.NDArray[np.integer]


def quantile(values: Numbers, p: float) -> float | None:
    """The value below which a share `p` (0 to 1) of the values lies.

    Type 7: linear between the order statistics around (n - 1)p. In the unit of
    the values, in any order; None when there is no value. ValueError when `p`
    is outside 0..1 or a value is NaN.
    """
    _check_share(p)
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return None
    if np.isnan(array).any():
        raise ValueError("a quantile of NaN is not defined; leave absent values out")
    return float(np.quantile(array, p, method="linear"))


@lru_cache(maxsize=4096)
def quantile_ranks(n: int, p: float, confidence: float = 0.95) -> tuple[int | None, int | None]:
    """Which sorted values (1-based ranks l, u) enclose the true quantile `p`.

    l is the largest rank with P(Bin(n, p) <= l - 1) <= alpha/2, u the smallest
    with P(Bin(n, p) >= u) <= alpha/2. A rank is None where n values cannot give
    that limit (100 values have no upper limit for p99).
    Source: METHODS 6; Hahn and Meeker, Statistical Intervals, ch. 5.
    """
    _check_share(p)
    tail = (1.0 - confidence) / 2.0
    if n <= 0:
        return None, None
    # bdtr is P(Bin <= j), bdtrc P(Bin >= j + 1), each computed in its own tail so
    # that neither loses digits to 1 - x. Bisected: a run has millions of gaps.
    low = bisect_right(range(n), tail, key=lambda j: special.bdtr(j, n, p))
    high_from = bisect_left(range(n), -tail, key=lambda j: -special.bdtrc(j, n, p))
    return (low or None), (high_from + 1 if high_from < n else None)


def quantile_interval(sorted_values: Numbers, p: float, confidence: float = 0.95) -> Interval:
    """The limits of the true quantile `p`, from ascending values.

    In the unit of the values; a limit is None where the sample is too small
    for it (see `quantile_ranks`). The values must already be sorted, so that
    several percentiles of one sample sort once. Beyond the ends of a tiny
    sample (p99.9 of 5 values) the ranks can miss the interpolated estimate;
    the limits are then widened to it, which only adds coverage.
    """
    n = len(sorted_values)
    point = quantile(sorted_values, p)
    if point is None:
        return UNKNOWN
    low, high = quantile_ranks(n, p, confidence)
    return Interval(
        None if low is None else min(point, float(sorted_values[low - 1])),
        None if high is None else max(point, float(sorted_values[high - 1])),
    )


def smallest_n_for_upper(p: float, confidence: float = 0.95) -> int:
    """How many values an upper limit of quantile `p` needs at the least.

    ceil(ln(alpha/2) / ln p): two-sided 95 % needs 72 for p95, 368 for p99,
    3688 for p99.9. ValueError unless 0 < p < 1.
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"p must lie inside 0..1, not {p}")
    tail = (1.0 - confidence) / 2.0
    return max(1, math.ceil(math.log(tail) / math.log(p)))


def _check_share(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must lie in 0..1, not {p}")
