"""Numbers on pages follow the design's rules, each by an example worked by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from records.web import format as fmt

MINUS, NBSP = "\u2212", "\u00a0"


def interval(value, low, high, **more):
    return {"value": value, "low": low, "high": high, "n": 10, "grade": "measured", **more}


def test_decimals_end_at_the_first_digit_of_the_half_width():
    """(4.78 - 4.67) / 2 = 0.055: first digit 5 in the second decimal, so 2."""
    shown = fmt.figure(interval(4.7316, 4.6721, 4.7786), fmt.PER_S)
    assert (shown.text, shown.low, shown.high) == ("4.73", "4.67", "4.78")


def test_a_first_digit_of_one_takes_one_more():
    """(1.13 - 0.76) / 2 = 0.185 as a fraction, 18.5 %: first digit 1 of tens, so units."""
    shown = fmt.figure(interval(0.9503, 0.7611, 1.1289), fmt.PERCENT, signed=True)
    assert (shown.text, shown.brackets) == ("+95", "[+76, +113]")


def test_rounding_goes_left_of_the_point():
    """(6.3 - 5.3) / 2 s = 500 ms: first digit 5 of hundreds, so hundreds."""
    shown = fmt.figure(interval(5.8123, 5.2987, 6.3041), fmt.MS)
    assert (shown.with_unit, shown.span) == (f"5,800{NBSP}ms", "5,300 to 6,300")


@pytest.mark.parametrize(
    ("low", "high", "places"),
    [(4.67, 4.78, 2), (5300, 6300, -2), (76, 113, 0), (1.475, 1.506, 3), (0, 0.2, 2), (5, 5, None)],
)
def test_decimals_by_hand(low, high, places):
    """Half-widths .055, 500, 18.5, .0155, .1 (digit 1, so one more), none."""
    assert fmt.decimals(low, high) == places


def test_without_an_interval_three_significant_digits_stand():
    assert [fmt.plain(v, fmt.PER_S).text for v in (5.2783, 0.01234, 312.4, 5000)] == [
        "5.28", "0.0123", "312", "5,000",
    ]  # fmt: skip


def test_one_unit_per_column():
    """ms while every value is below 10 s, else s; unknown values do not decide."""
    assert fmt.time_unit([0.5, 9.99, None]) is fmt.MS
    assert fmt.time_unit([0.5, 10.0]) is fmt.S
    assert fmt.time_unit([None]) is fmt.MS


def test_minus_is_the_real_one_and_differences_carry_a_sign():
    assert fmt.number(-5, 1, signed=True) == f"{MINUS}5.0"
    assert fmt.number(3, signed=True) == "+3"


def test_a_rounded_zero_has_no_sign():
    assert fmt.number(-0.004, 2, signed=True) == "0.00"
    assert fmt.number(0.004, 2, signed=True) == "0.00"


def test_counts_are_whole_with_commas_and_a_measured_zero_is_zero():
    assert fmt.count(3166).text == "3,166"
    assert fmt.count(0).text == "0"


def test_unknown_is_a_word_with_its_reason_never_a_number():
    shown = fmt.figure({"value": None, "reason": "not computed by analysis_version 1"}, fmt.S)
    assert (shown.known, shown.word, shown.text) == (False, "not yet", "")
    assert shown.reason == "not computed by analysis_version 1"
    assert fmt.count(None, "no completion is judged").word == "unjudged"
    assert fmt.figure(None, fmt.S, reason="not streamed").word == "not observable"


def test_an_unsupported_percentile_is_too_few_even_when_it_has_a_value():
    reason = "no 95 % upper limit from 100 samples: at least 368 are needed"
    shown = fmt.figure(
        {"value": 9.1, "low": 8.0, "high": None, "supported": False, "reason": reason}, fmt.S
    )
    assert (shown.word, shown.reason) == ("too few", reason)


def test_both_sides_take_the_decimals_of_their_difference():
    """Difference -0.24 [-0.26, -0.21]: half-width .025, so two decimals on both sides."""
    sides = fmt.pair(4.7416, 4.5012, {"low": -0.26, "high": -0.21}, fmt.PER_S)
    assert sides == ("4.74", "4.50")


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (999, "999 B"),
        (6100, "6.1 KB"),
        (301_400, "301 KB"),
        (5_240_000, "5.2 MB"),
        (999_600, "1.0 MB"),
    ],
)
def test_sizes(n, text):
    assert fmt.size(n).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.5, "3.5 s"), (34, "34 s"), (245, "4 min 5 s"), (7800, "2 h 10 min")]
)
def test_durations(seconds, text):
    assert fmt.duration(seconds).replace(NBSP, " ") == text


def test_money_goes_per_thousand_where_cents_would_vanish():
    assert str(fmt.money(0.01025)).replace(NBSP, " ") == "10.25 USD per 1,000"
    assert str(fmt.money(12.5)).replace(NBSP, " ") == "12.50 USD"


def test_times_of_day():
    at = datetime(2026, 3, 2, 14, 4, tzinfo=UTC)
    assert (fmt.moment(at), fmt.short_moment(at)) == ("2 Mar 2026, 14:04", "2 Mar 14:04")
