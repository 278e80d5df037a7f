"""Backlog, trace preview and goodput difference draw what they are given; every figure is JSON."""

from __future__ import annotations

import json
from pathlib import Path

import plotly.graph_objects as go
import pytest

from records.charts.backlog import backlog
from records.charts.catalog import CHARTS
from records.charts.figure import Scene, colour, linear_ticks, log_ends, log_ticks
from records.charts.goodput_difference import goodput_difference
from records.charts.trace_preview import trace_lengths, trace_rate

SCENE = Scene(classes=["a", "b"], window=(10.0, 70.0))
SERIES = {
    "cdf": {
        name: {"a": {"value_s": [0.01, 0.02], "share": [0.5, 1.0]}}
        for name in ("ttft_s", "itl_s", "e2e_s")
    },
    "phases": [{"class": "a", "band": "median", "seconds": {"decode": 1.0}}],
    "backlog": {"at_s": [10.0, 20.0, 50.0], "count": [0, 5, 2]},
}
RATE = {
    "start_s": [0.0, 1.0], "width_s": 1.0, "rate_per_s": [3.0, 1.0],
    "classes": {"b": [1.0, 0.0], "a": [2.0, 1.0]},
}  # fmt: skip


def test_backlog_counts_from_the_windows_start_and_names_the_peak():
    """20 s on the run's clock is 10 s into a window that starts at 10 s."""
    figure = backlog(SERIES["backlog"], SCENE)
    assert figure.data[0]["x"] == [0.0, 10.0, 40.0, 60.0]
    assert figure.data[0]["y"] == [0, 5, 2, 2]
    assert figure.finding == (
        "At most 5 in the system, 10\u00a0s into the window; 0 at its start, 2 at its end."
    )
    assert backlog({}, SCENE) is None


def test_trace_rate_stacks_classes_in_the_workloads_order():
    figure = trace_rate(RATE, SCENE)
    assert [t["name"] for t in figure.data] == ["a", "b"]
    assert figure.data[0]["y"] == [2.0, 1.0, 1.0]
    assert figure.finding == "2.00\u00a0/s on average, 3.0\u00a0/s in the busiest 1\u00a0s."
    assert trace_rate(None, SCENE) is None


def test_trace_lengths_leave_out_what_is_not_stated():
    histogram = {"edges": [10.0, 20.0, 40.0], "counts": [3, 1]}
    figure = trace_lengths({"prompt_tokens": histogram, "output_tokens": None}, SCENE)
    assert [t["name"] for t in figure.data] == ["prompt"]
    assert figure.rows == [["prompt", 10.0, 3], ["prompt", 20.0, 1]]
    assert trace_lengths({}, SCENE) is None


def test_a_difference_whose_interval_holds_0_has_no_tone():
    """[-1 %, +7 %] spans 0; [+24 %, +31 %] is better; [-6 %, -4 %] is worse."""
    rows = [
        {"name": "All", "value": 0.03, "low": -0.01, "high": 0.07},
        {"name": "a", "value": 0.27, "low": 0.24, "high": 0.31},
        {"name": "b", "value": -0.05, "low": -0.06, "high": -0.04},
        {"name": "unknown", "value": None, "low": None, "high": None},
    ]
    figure = goodput_difference(rows, SCENE, margin=0.02)
    dots = [t for t in figure.data if t["mode"] == "markers"]
    assert [d["name"] for d in dots] == ["All", "a", "b"]
    assert [d["marker"]["color"] for d in dots] == [
        "var(--st-neutral)", "var(--st-positive)", "var(--st-negative)",
    ]  # fmt: skip
    assert figure.layout["shapes"][0]["x0"] == 2.0


def test_a_difference_without_an_interval_has_no_whiskers():
    figure = goodput_difference([{"name": "All", "value": 0.1, "low": None, "high": None}], SCENE)
    assert [t["mode"] for t in figure.data] == ["markers"]
    assert goodput_difference([{"name": "All", "value": None}], SCENE) is None


@pytest.mark.parametrize("name", list(CHARTS))
def test_every_chart_of_a_run_is_a_plotly_figure_with_titled_axes(name):
    """Plotly's own checks accept the data and layout, and both axes name what they show."""
    figure = CHARTS[name](SERIES, SCENE)
    assert figure.layout["xaxis"]["title"]["text"]
    assert figure.layout["yaxis"]["title"]["text"]
    json.dumps(figure.plotly(), allow_nan=False)
    plain = _without_tokens({"data": figure.data, "layout": figure.layout})
    go.Figure(plain)


@pytest.mark.parametrize("name", list(CHARTS))
def test_a_run_without_series_has_no_charts(name):
    assert CHARTS[name]({}, SCENE) is None


def test_every_colour_a_chart_names_is_a_token():
    """A name that tokens.css does not have would be drawn black."""
    tokens = (Path(__file__).parents[3] / "static" / "css" / "tokens.css").read_text()
    figures = [build(SERIES, SCENE) for build in CHARTS.values()]
    figures += [trace_rate(RATE, SCENE)]
    named = set()
    for figure in figures:
        _collect({"data": figure.data, "layout": figure.layout}, named)
    assert named
    assert [n for n in sorted(named) if f"{n}:" not in tokens] == []


def test_ticks():
    assert log_ticks(0.05, 1.0) == pytest.approx([0.05, 0.1, 0.2, 0.5, 1.0])
    assert log_ends([0.06, 7.0]) == pytest.approx((0.05, 10.0))
    assert linear_ticks(-12.0, 23.0) == pytest.approx([-10, -5, 0, 5, 10, 15, 20])
    assert colour("--ink", 0.2) == "var(--ink) / 0.2"


def _without_tokens(value):
    if isinstance(value, dict):
        return {k: _without_tokens(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_tokens(v) for v in value]
    if isinstance(value, str) and value.startswith("var("):
        return "#000000"
    return value


def _collect(value, into):
    if isinstance(value, dict):
        for item in value.values():
            _collect(item, into)
    elif isinstance(value, list):
        for item in value:
            _collect(item, into)
    elif isinstance(value, str) and value.startswith("var("):
        into.add(value[4 : value.index(")")])
