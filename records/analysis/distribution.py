"""From samples to a distribution with order-statistic limits.

Samples may carry whole-number weights, so that a gap in which eight tokens came
counts as eight samples without being written out eight times; every figure is
exactly what `numpy.repeat` followed by a sort would give.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from records.analysis.figures import PERCENTILES, Distribution, Percentile, distribution_of
from records.statistics.quantiles import quantile_ranks, smallest_n_for_upper

Floats = npt.NDArray[np.float64]
_ranks = lru_cache(maxsize=4096)(quantile_ranks)


class Sample:
    """Sorted values with weights; answers ranks and type-7 quantiles."""

    def __init__(self, values: Floats, weights: npt.NDArray[np.int64] | None = None) -> None:
        if weights is None:
            self.values, self._ends = np.sort(values), None
            self.n = int(values.size)
        else:
            order = np.argsort(values)
            self.values = values[order]
            self._ends = np.cumsum(weights[order])
            self.n = int(self._ends[-1]) if values.size else 0

    def rank(self, k: int) -> float:
        """The k-th smallest sample, from 1."""
        at = k - 1 if self._ends is None else int(np.searchsorted(self._ends, k, side="left"))
        return float(self.values[at])

    def quantile(self, p: float) -> float:
        """Type 7, in the same arithmetic as NumPy's linear method. Needs n >= 1."""
        position = (self.n - 1) * p
        below = math.floor(position)
        low, high = self.rank(below + 1), self.rank(min(below + 2, self.n))
        share = position - below
        # The form NumPy takes above one half; it keeps q(1) exactly the maximum.
        if share >= 0.5:
            return high - (high - low) * (1 - share)
        return low + (high - low) * share

    def percentile(self, p: float) -> Percentile:
        """The quantile `p` with the limits this sample supports."""
        low_rank, high_rank = _ranks(self.n, p)
        value = self.quantile(p)
        # Beyond the ends of a tiny sample a rank can miss the interpolated value.
        low = None if low_rank is None else min(value, self.rank(low_rank))
        high = None if high_rank is None else max(value, self.rank(high_rank))
        if low is not None and high is not None:
            return Percentile(value, low, high, True)
        missing = "upper" if high is None else "lower"
        need = smallest_n_for_upper(p if high is None else 1 - p)
        reason = f"no 95 % {missing} limit from {self.n} samples: at least {need} are needed"
        return Percentile(value, low, high, False, reason)


def distribution(
    values: Floats,
    *,
    weights: npt.NDArray[np.int64] | None = None,
    total: float | None = None,
    grade: str = "measured",
    absent: str = "no sample",
) -> Distribution:
    """How `values` are spread; NaN values are samples that did not happen and are left out.

    `weights` says how many samples each value stands for, `total` their exact
    sum when the caller knows it. Without any sample every figure is None with
    the reason `absent`.
    """
    if weights is None:
        values = values[~np.isnan(values)]
    sample = Sample(values, weights)
    if sample.n == 0:
        return no_distribution(absent)
    if total is None:
        # fsum is correctly rounded: the same figure whatever the order or the machine.
        total = math.fsum(sample.values if weights is None else values * weights)
    figures = {name: sample.percentile(p) for name, p in PERCENTILES.items()}
    moments = (total / sample.n, float(sample.values[0]), float(sample.values[-1]))
    return distribution_of(sample.n, moments, figures, grade)


def no_distribution(reason: str, n: int | None = 0) -> Distribution:
    """A distribution that was not observed, and why."""
    nothing = {name: Percentile(None, None, None, False, reason) for name in PERCENTILES}
    return distribution_of(n, (None, None, None), nothing, "not_observable", reason)
