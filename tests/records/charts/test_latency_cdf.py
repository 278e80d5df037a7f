"""A latency chart draws each class's samples, names its axes with units and marks objectives."""

from __future__ import annotations

import math

from records.charts.figure import Scene
from records.charts.latency_cdf import latency_cdf, share_within, value_at

CURVES = {
    "interactive": {"value_s": [0.1, 0.2, 0.4, 2.0], "share": [0.25, 0.5, 0.75, 1.0]},
    "background": {"value_s": [1.0, 3.0], "share": [0.5, 1.0]},
}
SCENE = Scene(classes=["interactive", "background"], objectives={"interactive": {"ttft_s": 0.5}})


def test_one_step_line_per_class_in_the_workloads_order():
    figure = latency_cdf("ttft_s", CURVES, SCENE)
    assert [trace["name"] for trace in figure.data] == ["interactive", "background"]
    first = figure.data[0]
    assert (first["x"], first["y"]) == ([0.1, 0.2, 0.4, 2.0], [25.0, 50.0, 75.0, 100.0])
    assert first["line"]["shape"] == "hv"


def test_a_class_keeps_its_colour_when_another_is_missing():
    """background is the workload's second class, so its colour is --cl-2 alone as well."""
    alone = latency_cdf("ttft_s", {"background": CURVES["background"]}, SCENE)
    assert alone.data[0]["line"]["color"] == "var(--cl-2)"


def test_axes_have_titles_with_units():
    layout = latency_cdf("e2e_s", CURVES, SCENE).layout
    assert "ms or s" in layout["xaxis"]["title"]["text"]
    assert "%" in layout["yaxis"]["title"]["text"]
    assert layout["xaxis"]["type"] == "log"


def test_the_objective_is_a_dashed_line_at_its_place_and_in_the_finding():
    """3 of 4 interactive samples are at or below 0.5 s: 75 %."""
    figure = latency_cdf("ttft_s", CURVES, SCENE)
    (line,) = figure.layout["shapes"]
    assert (line["x0"], line["line"]["dash"]) == (0.5, "dash")
    (note,) = [n for n in figure.layout["annotations"] if "objective" in n["text"]]
    assert note["x"] == math.log10(0.5)
    assert figure.finding.startswith("75\u00a0% of completed interactive requests")


def test_bands_are_drawn_only_where_limits_are_given():
    banded = {
        "interactive": CURVES["interactive"] | {"low": [0, 0.2, 0.5, 0.9], "high": [0.5, 0.8, 1, 1]}
    }
    figure = latency_cdf("ttft_s", banded, SCENE)
    assert len(figure.data) == 3
    assert figure.data[1]["fillcolor"] == "var(--cl-1) / 0.2"
    assert figure.note == "Bands: 95 %, pointwise"
    assert latency_cdf("ttft_s", CURVES, SCENE).note == ""


def test_without_a_sample_there_is_no_chart():
    assert latency_cdf("ttft_s", {}, SCENE) is None
    assert latency_cdf("ttft_s", {"a": {"value_s": [], "share": []}}, SCENE) is None


def test_reading_a_curve():
    curve = CURVES["interactive"]
    assert share_within(curve, 0.3) == 0.5
    assert share_within(curve, 0.05) == 0.0
    assert value_at(curve, 0.6) == 0.4
