"""Chart data is small, keeps its extremes, and says what the record says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from records.analysis.record import assemble
from records.analysis.series import run_series, thin_steps


def series_of(made, *rows, **more):
    evidence = made.evidence(*rows, **more)
    series = run_series(evidence, assemble(evidence, [], ""))
    json.dumps(series, allow_nan=False)
    return series


def test_a_cdf_runs_from_the_least_to_the_greatest_and_agrees_with_the_record(made):
    rows = [made.row(str(i), 0, [0.1 + i / 1000, 0.9 + i / 1000]) for i in range(900)]
    evidence = made.evidence(*rows)
    record = assemble(evidence, [], "")
    curve = run_series(evidence, record)["cdf"]["ttft_s"]["default"]
    assert len(curve["share"]) == len(curve["value_s"]) == 500
    ttft = record["latency"]["ttft_s"]
    assert (curve["value_s"][0], curve["value_s"][-1]) == (ttft["min"], ttft["max"])
    assert np.interp(0.5, curve["share"], curve["value_s"]) == pytest.approx(ttft["p50"]["value"])
    assert curve["value_s"] == sorted(curve["value_s"])


def test_figures_without_samples_are_left_out(made):
    series = series_of(made, made.row("a", 0, [0.5]))
    assert {figure for figure, curves in series["cdf"].items() if curves} == {"ttft_s", "e2e_s"}
    assert series["phases"] == []


def test_an_empty_run_has_empty_charts(made):
    series = series_of(made)
    assert not any(series["cdf"].values())
    assert series["backlog"] == {"at_s": [0, 10], "count": [0, 0]}


def test_the_backlog_steps_at_arrivals_and_departures(made):
    series = series_of(made, made.row("a", 1, [4.0]), made.row("b", 2, [3.0]))
    assert series["backlog"] == {"at_s": [0, 1, 2, 3, 4, 10], "count": [0, 1, 2, 1, 0, 0]}


def test_thinning_keeps_every_peak_and_the_ends():
    times = np.arange(10_000.0)
    counts = np.ones(10_000)
    counts[[777, 5003]] = [50, 0]
    thin_times, thin_counts = thin_steps(times, counts, 600)
    assert thin_times.size <= 600
    assert (thin_times[0], thin_times[-1]) == (0, 9999)
    assert thin_counts[thin_times == 777] == [50]
    assert thin_counts[thin_times == 5003] == [0]


def test_phase_bars_sum_to_the_mean_e2e_of_their_band(made):
    rows = [made.row(str(i), 0, [0.1, 1.0 + i]) for i in range(5)]
    (bar,) = series_of(made, *rows)["phases"]
    bars = bar["seconds"]
    assert (bar["class"], bar["band"]) == ("default", "median")
    # Of five, the band of p40 to p60 is the middle one: E2E 3.
    assert sum(bars.values()) == pytest.approx(3.0)
    assert bars["queue_prefill"] == pytest.approx(0.1)


def test_outcomes_are_counted_per_class_and_in_all(made):
    rows = [
        made.row("a", 0, [0.5], **{"class": "x"}),
        made.row("b", 0, outcome="failed", end=1.0, **{"class": "y"}),
    ]
    assert series_of(made, *rows)["outcomes"] == {
        "x": {"completed": 1}, "y": {"failed": 1},
    }  # fmt: skip
