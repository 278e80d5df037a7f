"""Latency counts from the intended arrival, per token and per request as METHODS 1 defines it."""

from __future__ import annotations

import numpy as np
import pytest

from records.analysis.distribution import Sample, distribution

near = pytest.approx


def test_times_of_one_request_are_those_of_the_vector(made):
    # METHODS 1: a = 0, tokens at 0.50 0.55 0.60 0.90 0.95.
    latency = made.record(made.row("a", 0, [0.50, 0.55, 0.60, 0.90, 0.95]))["latency"]
    assert latency["ttft_s"]["mean"] == near(0.5)
    # (0.95 - 0.50) / 4 = 0.1125
    assert latency["tpot_s"]["mean"] == near(0.1125)
    assert latency["e2e_s"]["mean"] == near(0.95)


def test_mean_tpot_and_mean_itl_answer_different_questions(made):
    # METHODS 1: A has 2 tokens, gap 0.1; B 101 tokens, gaps 0.02.
    a = made.row("a", 0, [1.0, 1.1])
    b = made.row("b", 0, [1 + 0.02 * i for i in range(101)])
    latency = made.record(a, b)["latency"]
    # (0.1 + 0.02) / 2 = 0.06
    assert latency["tpot_s"]["mean"] == near(0.06)
    # (1 * 0.1 + 100 * 0.02) / 101 = 0.0207921
    assert latency["itl_s"]["mean"] == near(0.0207921, abs=1e-7)
    assert latency["itl_s"]["n"] == 101


def test_a_chunk_of_k_tokens_gives_k_samples_of_its_share(made):
    # Gap 0.4 holds 4 tokens: 4 x 0.1; gap 0.1 holds 1; the first chunk's 3 give none.
    latency = made.record(made.row("a", 0, [0.5, 0.9, 1.0], per_chunk=[3, 4, 1]))["latency"]
    assert latency["itl_s"]["n"] == 5
    assert latency["itl_s"]["mean"] == near(0.1)
    assert latency["itl_s"]["max"] == near(0.1)
    assert latency["chunk_gap_s"]["n"] == 2
    assert latency["chunk_gap_s"]["max"] == near(0.4)
    assert latency["itl_basis"] == "token"
    # TPOT: 0.5 / (8 - 1)
    assert latency["tpot_s"]["mean"] == near(0.5 / 7)


def test_unknown_token_counts_make_the_basis_chunk(made):
    latency = made.record(
        made.row("a", 0, [0.5, 0.9, 1.0], per_chunk=None, n=12), made.row("b", 0, [1.0, 1.1])
    )["latency"]
    assert latency["itl_basis"] == "chunk"
    assert latency["itl_s"]["n"] == 3
    assert latency["tpot_s"]["n"] == 2


def test_a_chunk_that_is_said_to_hold_no_token_is_unknown_not_infinite(made):
    latency = made.record(made.row("a", 0, [0.5, 0.9], per_chunk=[1, 0], n=2))["latency"]
    assert latency["itl_basis"] == "chunk"
    assert latency["itl_s"]["max"] == near(0.4)


@pytest.mark.parametrize(
    "row",
    [
        {"tokens": [0.5]},
        {"tokens": [0.5], "per_chunk": [5]},
        {"tokens": [0.5, 0.6], "per_chunk": None, "n": None},
    ],
)
def test_tpot_without_two_tokens_at_two_known_times_is_absent_not_zero(made, row):
    tpot = made.record(made.row("a", 0, **row))["latency"]["tpot_s"]
    assert (tpot["n"], tpot["mean"], tpot["p50"]["value"]) == (0, None, None)
    assert tpot["reason"]


def test_an_answer_in_one_chunk_has_a_first_token_and_no_itl(made):
    latency = made.record(made.row("a", 0, [0.5], per_chunk=[5]))["latency"]
    assert latency["ttft_s"]["mean"] == near(0.5)
    assert latency["itl_s"]["n"] == 0
    assert latency["itl_basis"] is None


def test_a_trailing_chunk_moves_the_end_not_the_answer(made):
    # The last token came at 0.6, the usage chunk and [DONE] at 0.9.
    latency = made.record(made.row("a", 0, [0.5, 0.6], end=0.9))["latency"]
    assert latency["e2e_s"]["mean"] == near(0.6)


def test_an_answer_that_was_not_streamed_ends_with_its_last_byte(made):
    latency = made.record(made.row("a", 0, end=0.9, n=7))["latency"]
    assert latency["e2e_s"]["mean"] == near(0.9)
    assert latency["ttft_s"]["reason"] == "no token time was seen: not streamed"


def test_late_sending_is_in_the_latency_and_shown_apart(made):
    latency = made.record(made.row("a", 1.0, [1.5, 1.6], sent=1.2))["latency"]
    assert latency["ttft_s"]["mean"] == near(0.5)
    assert latency["ttft_from_send_s"]["mean"] == near(0.3)
    assert latency["client_wait_s"]["mean"] == near(0.2)


def test_failures_have_no_latency_of_a_completion_but_their_own(made):
    latency = made.record(
        made.row("a", 0, [0.5, 0.6]),
        made.row("b", 1.0, [1.2], outcome="failed", end=3.0),
        made.row("c", 1.0, outcome="timed_out", end=5.0),
        made.row("d", 1.0, outcome="cancelled", end=9.0),
    )["latency"]
    assert latency["ttft_s"]["n"] == 1
    # 3 - 1 and 5 - 1; the user who left is no failure.
    assert latency["time_to_failure_s"]["n"] == 2
    assert latency["time_to_failure_s"]["mean"] == near(3.0)


def test_requests_outside_the_window_are_not_in_its_latency(made):
    latency = made.record(made.row("a", 0, [0.5], in_window=False), made.row("b", 1, [1.1]))
    assert latency["latency"]["ttft_s"]["n"] == 1


def test_percentiles_are_type_seven_with_order_statistic_limits():
    # METHODS 2 and 6: p99 of 1..100 is 99.01; n = 100 p50 has ranks 40, 61.
    q = distribution(np.arange(1.0, 101.0))
    assert q.p99.value == near(99.01)
    assert (q.p50.low, q.p50.high) == (40, 61)
    # No upper limit of p99 exists below n = 368.
    assert (q.p99.high, q.p99.supported) == (None, False)
    assert "368" in str(q.p99.reason)
    # n = 1000: p99 has ranks 983, 997.
    q = distribution(np.arange(1.0, 1001.0))
    assert (q.p99.low, q.p99.high, q.p99.supported) == (983, 997, True)


def test_weighted_samples_equal_samples_written_out():
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 400):
        values, weights = rng.integers(1, 30, n) / 7, rng.integers(1, 9, n)
        whole = np.repeat(values, weights)
        sample = Sample(values, weights)
        assert sample.n == whole.size
        for p in (0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0):
            assert sample.quantile(p) == np.quantile(whole, p)
        for k in range(1, whole.size + 1):
            assert sample.rank(k) == np.sort(whole)[k - 1]
