"""Figures of a trace follow their definitions; what is undefined is None with its reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

from records.traces.describe import describe, dispersion, gap_cv
from records.traces.points import length_histogram, points_of, rate_series
from records.traces.reading import Trace, parse_trace


def trace_of(*lines: dict) -> Trace:
    full = ({"prompt_tokens": 10, "max_output_tokens": 5, **line} for line in lines)
    return parse_trace("\n".join(json.dumps(line) for line in full).encode(), "t")


def at(*times: float) -> Trace:
    return trace_of(*({"at_s": time} for time in times))


def test_rate_is_gaps_over_span():
    """Four arrivals in 6 s leave three gaps: 0.5 a second."""
    figures = describe(at(0, 1, 2, 6))
    assert (figures["requests"], figures["span_s"], figures["rate_per_s"]) == (4, 6.0, 0.5)


def test_cv_and_burstiness_by_hand():
    """Gaps 1, 1, 4: mean 2, population deviation sqrt(2), cv .707107, B -.171573."""
    # ((1-2)^2 + (1-2)^2 + (4-2)^2) / 3 = 2; (cv - 1) / (cv + 1) = -.292893 / 1.707107
    figures = describe(at(0, 1, 2, 6))
    assert figures["cv"] == pytest.approx(2**0.5 / 2)
    assert figures["burstiness"] == pytest.approx(-0.171573, abs=1e-6)


def test_a_constant_rate_has_cv_0_and_burstiness_minus_1():
    """Equal gaps are the least bursty there is."""
    figures = describe(at(0, 1, 2, 3))
    assert (figures["cv"], figures["burstiness"]) == (0.0, -1.0)


def test_dispersion_by_hand():
    """Windows of 1 s hold 3, 0, 1 (the fourth is partial): variance 14/9 over mean 4/3."""
    # mean 4/3; ((5/3)^2 + (4/3)^2 + (1/3)^2) / 3 = 42/27 = 14/9; ratio 7/6
    assert dispersion(np.array([0, 0.2, 0.4, 2.5, 3.2]), 1.0) == pytest.approx(7 / 6)


def test_windows_start_at_the_first_arrival_whatever_the_float_rounding():
    """2.3 - 0.3 is a hair below 2, but the third window begins there."""
    # counts 1, 1 in [0.3, 1.3) and [1.3, 2.3); without rounding 1, 2 in a shorter span
    assert dispersion(np.array([0.3, 1.3, 2.3]), 1.0) == 0.0


def test_one_request_has_no_rate():
    """Null and a reason, not 0."""
    figures = describe(at(2))
    for key in ("rate_per_s", "cv", "burstiness"):
        assert figures[key] is None
        assert figures["reasons"][key]
    assert figures["dispersion"] == {"1s": None, "10s": None, "60s": None}
    assert figures["reasons"]["rate_per_s"] == "one request"
    json.dumps(figures, allow_nan=False)


def test_arrivals_at_one_moment_have_no_rate_either():
    """Three requests at once: no span, gaps of 0."""
    figures = describe(at(1, 1, 1))
    assert figures["rate_per_s"] is None
    assert figures["reasons"]["cv"] == "all gaps are 0"
    assert gap_cv(np.array([0.0, 5.0])) is None


def test_lengths_are_type_7():
    """p95 of 1..5 lies at 4.8: (5 - 1) * .95 = 3.8 past the first."""
    lines = [{"at_s": 0, "prompt_tokens": n, "max_output_tokens": 9} for n in (5, 3, 1, 2, 4)]
    found = describe(trace_of(*lines))["prompt_tokens"]
    assert found["p95"] == pytest.approx(4.8)
    assert (found["n"], found["mean"], found["min"], found["max"]) == (5, 3.0, 1.0, 5.0)
    assert found["basis"] == "tokens"


def test_prompts_given_as_text_are_counted_in_words_and_say_so():
    """Words stand in for tokens until a server counts; the warning says it."""
    text = {"at_s": 0, "prompt_tokens": None, "prompt": "one two  three"}
    chat = {"role": "user", "content": [{"type": "text", "text": "four five"}]}
    figures = describe(trace_of(text, {**text, "prompt": None, "messages": [chat]}))
    assert (figures["prompt_tokens"]["min"], figures["prompt_tokens"]["max"]) == (2.0, 3.0)
    assert figures["prompt_tokens"]["basis"] == "words"
    assert any("counted in words" in text for text in figures["warnings"])


def test_output_limits_that_nobody_states_are_unknown():
    """No limit is not a limit of 0."""
    figures = describe(trace_of({"at_s": 0, "max_output_tokens": None}))
    assert figures["output_tokens"]["mean"] is None
    assert figures["output_tokens"]["reason"] == "no request states max_output_tokens"
    assert any("1 of 1 requests state no max_output_tokens" in w for w in figures["warnings"])


def test_classes_have_counts_and_shares():
    """Three of four interactive is a share of .75."""
    lines = [{"at_s": 0, "class": name} for name in ("i", "i", "b", "i")]
    assert describe(trace_of(*lines))["classes"] == {
        "b": {"requests": 1, "share": 0.25},
        "i": {"requests": 3, "share": 0.75},
    }


def test_only_a_leading_run_of_known_blocks_is_reused():
    """[a b], then [a c b]: a is a hit; b is known, but no longer leading after c."""
    blocks = lambda names: [{"id": n, "tokens": 2} for n in names]  # noqa: E731  test shorthand
    first = {"at_s": 0, "prompt_tokens": 4, "prefix": blocks("ab")}
    second = {"at_s": 1, "prompt_tokens": 8, "prefix": blocks("acb")}
    reuse = describe(trace_of(first, second))["prefix_reuse"]
    assert (reuse["blocks"], reuse["unique_blocks"], reuse["hit_blocks"]) == (5, 3, 1)
    assert reuse["block_hit_ratio"] == 0.2
    assert reuse["token_hit_ratio"] == pytest.approx(2 / 12)


def test_without_prefixes_and_sessions_both_are_null_with_reasons():
    """A trace that cannot show reuse does not show reuse of 0."""
    figures = describe(at(0, 1))
    assert figures["prefix_reuse"] is None
    assert figures["sessions"] is None
    assert {"prefix_reuse", "sessions"} <= set(figures["reasons"])


def test_sessions_are_counted():
    """Sessions of 2 and 1 turns: mean 1.5."""
    lines = [{"at_s": 0, "session": name} for name in ("x", "y", "x")]
    assert describe(trace_of(*lines))["sessions"] == {
        "count": 2, "requests": 3, "turns_mean": 1.5, "turns_max": 2,
    }  # fmt: skip


def test_silence_and_a_coarse_clock_are_warned_of():
    """A gap of 100 s and stamps shared by half the requests change what cv means."""
    warnings = describe(at(0, 0, 0, 100, 100, 100))["warnings"]
    assert any(w.startswith("gaps over 30 s: 1, together 100 s of 100 s") for w in warnings)
    assert any(w.startswith("4 of 6 requests share their stamp") for w in warnings)
    assert not any("stamp" in w or "gaps" in w for w in describe(at(0, 1, 2.5))["warnings"])


def test_the_rate_series_adds_up_to_the_requests():
    """Rate times width summed over the bins is every arrival, per class and in all."""
    trace = trace_of({"at_s": 1}, {"at_s": 2, "class": "b"}, {"at_s": 4}, {"at_s": 9}, {"at_s": 11})
    series = rate_series(trace, bins=5)
    assert series["width_s"] == 2.0
    assert series["start_s"] == [1, 3, 5, 7, 9]
    # 1 and 2 | 4 | - | - | 9 and the last arrival, 11, which closes its bin
    assert series["rate_per_s"] == [1.0, 0.5, 0.0, 0.0, 1.0]
    assert series["classes"]["b"] == [0.5, 0.0, 0.0, 0.0, 0.0]
    assert rate_series(at(3)) is None


def test_every_length_is_in_the_histogram():
    """Counts add up for spread, equal and zero lengths; no length means no histogram."""
    for lengths in ((1, 10, 100, 1000), (7, 7, 7), (0, 0), (0, 5)):
        lines = [{"at_s": 0, "prompt_tokens": n, "max_output_tokens": None} for n in lengths]
        found = length_histogram(trace_of(*lines), "prompt", bins=6)
        assert sum(found["counts"]) == len(lengths)
        assert len(found["edges"]) == 7
        assert found["edges"] == sorted(set(found["edges"]))
        assert length_histogram(trace_of(*lines), "output") is None
    json.dumps(points_of(at(0, 1)), allow_nan=False)
