"""Quantiles follow type 7 and their limits the order statistics of METHODS 2 and 6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from records.statistics.intervals import UNKNOWN, Interval
from records.statistics.quantiles import (
    quantile,
    quantile_interval,
    quantile_ranks,
    smallest_n_for_upper,
)

FINITE = st.floats(-1e9, 1e9, allow_nan=False)
SAMPLES = st.lists(FINITE, min_size=1, max_size=60)


def test_p99_of_one_to_hundred_is_type_7():
    """p99 of 1..100 lies 0.01 above the 99th value, not on a value."""
    # (100 - 1) * 0.99 = 98.01 -> values 99 and 100, 1 % of the way: 99.01
    assert quantile(range(1, 101), 0.99) == pytest.approx(99.01, abs=1e-9)


def test_percent_points_do_not_fall_through_float_rounding():
    """p29 of 0..100 is 29, although int(100 * 0.29) is 28."""
    assert quantile(range(101), 0.29) == pytest.approx(29.0, abs=1e-9)


def test_order_of_the_values_does_not_matter():
    """The median of 5, 1, 3 is 3."""
    assert quantile([5.0, 1.0, 3.0], 0.5) == 3.0


def test_no_values_have_no_quantile():
    """An empty sample answers None, never 0."""
    assert quantile([], 0.5) is None
    assert quantile_interval([], 0.5) == UNKNOWN
    assert quantile_ranks(0, 0.5) == (None, None)


@pytest.mark.parametrize("p", [-0.01, 1.01, math.nan])
def test_a_share_outside_zero_to_one_is_refused(p: float):
    """p is a share, so 95 or -1 is a caller's mistake and says so."""
    with pytest.raises(ValueError, match=r"0\.\.1"):
        quantile([1.0], p)


def test_nan_is_refused():
    """A NaN would silently become the answer; absent values are left out instead."""
    with pytest.raises(ValueError, match="NaN"):
        quantile([1.0, math.nan], 0.5)


@pytest.mark.parametrize(
    ("n", "p", "ranks"),
    [
        (1000, 0.99, (983, 997)),
        (1000, 0.95, (936, 964)),
        (1000, 0.50, (469, 532)),
        (100, 0.50, (40, 61)),
        (200, 0.95, (184, 197)),
    ],
)
def test_ranks_are_those_of_the_methods_reference(n: int, p: float, ranks: tuple[int, int]):
    """The order-statistic ranks equal the published vectors."""
    assert quantile_ranks(n, p) == ranks


def test_coverage_of_the_p99_ranks_of_a_thousand():
    """Ranks 983 and 997 of 1000 enclose p99 with probability .976095."""
    low, high = quantile_ranks(1000, 0.99)
    # enclosed when l <= Bin(1000, .99) <= u - 1
    coverage = stats.binom.cdf(high - 1, 1000, 0.99) - stats.binom.cdf(low - 1, 1000, 0.99)
    assert coverage == pytest.approx(0.976095, abs=1e-6)


def test_a_hundred_values_have_no_upper_limit_for_p99():
    """.99^100 = .366 > .025: even the maximum is too often below p99."""
    assert quantile_ranks(100, 0.99) == (97, None)
    assert quantile_interval(range(1, 101), 0.99) == Interval(97.0, None)


def test_one_value_limits_nothing():
    """A single value has neither limit of its median."""
    assert quantile_interval([7.0], 0.5) == UNKNOWN


@pytest.mark.parametrize(("p", "n"), [(0.95, 72), (0.99, 368), (0.999, 3688)])
def test_smallest_sample_with_an_upper_limit(p: float, n: int):
    """The formula and the ranks agree on where the upper limit first exists."""
    assert smallest_n_for_upper(p) == n
    assert quantile_ranks(n, p)[1] == n
    assert quantile_ranks(n - 1, p)[1] is None


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(n=st.integers(1, 3000), p=st.floats(0.001, 0.999), confidence=st.sampled_from([0.9, 0.95]))
def test_ranks_satisfy_their_definition_and_are_the_tightest(n: int, p: float, confidence: float):
    """l is the largest and u the smallest rank whose tail is at most alpha/2."""
    tail = (1 - confidence) / 2
    low, high = quantile_ranks(n, p, confidence)
    if low is not None:
        assert stats.binom.cdf(low - 1, n, p) <= tail * (1 + 1e-9)
    assert stats.binom.cdf(low or 0, n, p) > tail * (1 - 1e-9)
    if high is not None:
        assert stats.binom.sf(high - 1, n, p) <= tail * (1 + 1e-9)
    assert stats.binom.sf((high or n + 1) - 2, n, p) > tail * (1 - 1e-9)


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(values=SAMPLES, p=st.floats(0, 1))
def test_a_quantile_equals_numpys_and_stays_inside_the_sample(values: list[float], p: float):
    """Between minimum and maximum, and the same as NumPy's linear percentile."""
    got = quantile(values, p)
    assert min(values) <= got <= max(values)
    assert got == pytest.approx(np.percentile(values, 100 * p), rel=1e-9, abs=1e-6)


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(values=SAMPLES, p=st.floats(0, 1))
def test_limits_enclose_the_estimate(values: list[float], p: float):
    """low <= quantile <= high wherever the limits exist."""
    values.sort()
    limits, point = quantile_interval(values, p), quantile(values, p)
    assert limits.low is None or limits.low <= point
    assert limits.high is None or limits.high >= point


@pytest.mark.parametrize(("n", "p"), [(100, 0.5), (200, 0.95), (500, 0.99)])
def test_intervals_cover_the_truth_as_often_as_they_promise(n: int, p: float):
    """Over 2000 exponential samples at least 95 % of the intervals hold the true quantile."""
    truth = -math.log(1 - p)
    samples = np.sort(np.random.default_rng(7).exponential(size=(2000, n)), axis=1)
    hits = 0
    for sample in samples:
        limits = quantile_interval(sample, p)
        hits += limits.low <= truth <= limits.high
    # The method is conservative; three standard errors of 2000 draws are .0146.
    assert 0.95 - 0.0146 <= hits / 2000 <= 0.99
