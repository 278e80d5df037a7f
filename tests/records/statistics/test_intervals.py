"""Intervals of proportions, means and differences equal the vectors and SciPy's answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from records.statistics.intervals import (
    UNKNOWN,
    Estimate,
    clopper_pearson,
    mean_interval,
    relative_change,
    welch_difference,
    wilson,
)

BASELINE = [1.0, 1.2, 0.9, 1.5, 1.1, 1.3]
CANDIDATE = [0.8, 1.1, 0.9, 1.2, 1.0, 1.1]
COUNTS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (93, 100, 0.862505, 0.965681),
        (0, 50, 0.0, 0.071348),
        (50, 50, 0.928652, 1.0),
        (19, 20, 0.763869, 0.991119),
    ],
)
def test_wilson_vectors(k: int, n: int, low: float, high: float):
    """The Wilson limits equal the published ones, the exact 0 and 1 included."""
    limits = wilson(k, n)
    assert limits.low == pytest.approx(low, abs=1e-6)
    assert limits.high == pytest.approx(high, abs=1e-6)


def test_clopper_pearson_vector():
    """The exact limits of 93 of 100 equal the published ones."""
    limits = clopper_pearson(93, 100)
    assert limits.low == pytest.approx(0.861080, abs=1e-6)
    assert limits.high == pytest.approx(0.971395, abs=1e-6)


def test_no_trials_say_nothing():
    """0 of 0 has no interval, not 0 to 1."""
    assert wilson(0, 0) == UNKNOWN
    assert clopper_pearson(0, 0) == UNKNOWN


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (0, -1)])
def test_impossible_counts_are_refused(k: int, n: int):
    """More successes than trials is a caller's mistake."""
    with pytest.raises(ValueError, match="k <= n"):
        wilson(k, n)


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(COUNTS)
def test_proportions_agree_with_scipy(pair: tuple[int, int]):
    """Both intervals equal SciPy's and enclose k/n within 0..1."""
    k, n = pair
    for ours, method in ((wilson(k, n), "wilson"), (clopper_pearson(k, n), "exact")):
        theirs = stats.binomtest(k, n).proportion_ci(method=method)
        assert ours.low == pytest.approx(theirs.low, abs=1e-9)
        assert ours.high == pytest.approx(theirs.high, abs=1e-9)
        assert 0 <= ours.low <= k / n <= ours.high <= 1


def test_mean_interval_of_the_paired_vector():
    """The paired differences of METHODS 6 have mean -.15 in [-.260066, -.039934]."""
    limits = mean_interval([b - a for a, b in zip(BASELINE, CANDIDATE, strict=True)])
    assert limits.low == pytest.approx(-0.260066, abs=1e-6)
    assert limits.high == pytest.approx(-0.039934, abs=1e-6)


def test_one_replicate_has_no_interval():
    """A single value knows its mean but not its spread."""
    assert mean_interval([3.0]) == UNKNOWN
    assert mean_interval([]) == UNKNOWN
    assert welch_difference([1.0], [3.0, 4.0]) == Estimate(2.5, None, None)
    assert welch_difference([], [3.0]) == Estimate(None, None, None)


def test_the_difference_is_candidate_minus_baseline():
    """A candidate that is .15 lower has a difference of -.15."""
    # means 7.0/6 and 6.1/6: -0.9/6 = -0.15
    value, low, high = welch_difference(BASELINE, CANDIDATE)
    assert value == pytest.approx(-0.15, abs=1e-9)
    theirs = stats.ttest_ind(CANDIDATE, BASELINE, equal_var=False).confidence_interval()
    assert (low, high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_equal_replicates_give_a_difference_without_width():
    """Without any spread the interval is the difference itself, not NaN."""
    assert welch_difference([1.0, 1.0], [2.0, 2.0]) == Estimate(1.0, 1.0, 1.0)


@settings(deadline=None)  # a loaded machine is slow, not wrong
@given(VALUES, VALUES)
def test_swapping_the_sides_turns_the_difference_round(a: list[float], b: list[float]):
    """difference(a, b) = -difference(b, a), limits mirrored, value inside."""
    there, back = welch_difference(a, b), welch_difference(b, a)
    assert there.value == pytest.approx(-back.value)
    assert there.low == pytest.approx(-back.high)
    assert there.low <= there.value <= there.high


def test_relative_change_by_hand():
    """Means 10 and 12 are a change of +20 %, with a symmetric interval of the logarithm."""
    # var 2 each of n 2: 1/100 + 1/144 = .0169444; se .1301708
    # degrees: 1 / ((.590164^2 + .409836^2) / 1) = 1.937013
    value, low, high = relative_change([9.0, 11.0], [11.0, 13.0])
    half = stats.t.ppf(0.975, 1.937013) * 0.1301708
    assert value == pytest.approx(0.2)
    assert low == pytest.approx(1.2 * math.exp(-half) - 1, rel=1e-5)
    assert high == pytest.approx(1.2 * math.exp(half) - 1, rel=1e-5)


def test_relative_change_needs_a_baseline_above_zero():
    """Nothing is a fraction of 0."""
    assert relative_change([0.0, 0.0], [1.0, 2.0]) == Estimate(None, None, None)
    assert relative_change([2.0], [1.0]) == Estimate(-0.5, None, None)


def test_absent_values_are_refused():
    """NaN and infinity are not values."""
    with pytest.raises(ValueError, match="finite"):
        mean_interval([1.0, math.nan])


def test_intervals_cover_the_truth_as_often_as_they_promise():
    """Of 2000 Wilson intervals of p = .9, n = 60 and of Welch's, about 95 % hold the truth."""
    random = np.random.default_rng(11)
    seen = random.binomial(60, 0.9, size=2000)
    limits = [wilson(int(k), 60) for k in seen]
    assert np.mean([i.low <= 0.9 <= i.high for i in limits]) == pytest.approx(0.95, abs=0.02)
    a = random.normal(5, 1, size=(2000, 4))
    b = random.normal(6, 3, size=(2000, 8))
    welch = [welch_difference(x, y) for x, y in zip(a, b, strict=True)]
    assert np.mean([w.low <= 1 <= w.high for w in welch]) == pytest.approx(0.95, abs=0.015)
