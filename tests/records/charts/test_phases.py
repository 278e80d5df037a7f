"""The phase chart stacks each class's mean seconds in time order and says which phase dominates."""

from __future__ import annotations

from records.charts.figure import Scene
from records.charts.phases import PHASES, phases

SCENE = Scene(classes=["interactive", "background"])
BARS = [
    {"class": "background", "band": "median", "seconds": {"queue": 0.5, "decode": 1.5}},
    {
        "class": "interactive",
        "band": "tail",
        "seconds": {"client": 0.1, "queue": 3.0, "decode": 0.9},
    },
    {
        "class": "interactive",
        "band": "median",
        "seconds": {"client": 0.0, "queue": 0.2, "decode": 0.8},
    },
]


def test_phases_stand_in_time_order_and_absent_ones_are_left_out():
    figure = phases(BARS, SCENE)
    assert [t["name"] for t in figure.data] == ["client wait", "queue", "decode"]
    assert [key for key, _ in figure.key] == ["client", "queue", "decode"]
    assert list(PHASES).index("client") < list(PHASES).index("queue") < list(PHASES).index("decode")


def test_rows_follow_the_workload_and_the_median_comes_before_the_tail():
    """Rows: interactive median, interactive tail, background median."""
    figure = phases(BARS, SCENE)
    queue = next(t for t in figure.data if t["name"] == "queue")
    assert queue["x"] == [0.2, 3.0, 0.5]
    # A row per class name, so the bars stand at 1, 2 and 4.
    assert queue["y"] == [1, 2, 4]


def test_totals_and_shares_by_hand():
    """Interactive tail: 0.1 + 3.0 + 0.9 = 4.0 s, of which queue 75 %."""
    figure = phases(BARS, SCENE)
    assert figure.rows[1] == ["interactive", "tail", 0.1, 3.0, 0.9, 4.0]
    assert "Queue in the tail: 75\u00a0% for interactive." in figure.finding
    queue = next(t for t in figure.data if t["name"] == "queue")
    assert queue["text"][1] == "queue 75 %"


def test_one_dominant_phase_is_named_once():
    same = [
        {"class": "a", "band": "median", "seconds": {"queue": 1.0, "decode": 3.0}},
        {"class": "b", "band": "median", "seconds": {"queue": 1.0, "decode": 1.5}},
    ]
    finding = phases(same, Scene(classes=["a", "b"])).finding
    assert finding == "Decode at the median: 75\u00a0% for a, 60\u00a0% for b."


def test_hatched_phases_carry_a_pattern_and_the_others_none():
    """Client and residual are hatched, backoff against the grain, undivided time is striped."""
    seconds = dict.fromkeys(PHASES, 1.0)
    figure = phases([{"class": "a", "band": "median", "seconds": seconds}], Scene(classes=["a"]))
    patterns = {t["name"]: t["marker"].get("pattern", {}).get("shape") for t in figure.data}
    assert patterns["client wait"] == patterns["residual"] == "/"
    assert patterns["backoff"] == "\\"
    assert patterns["queue + prefill, undivided"] == "/"
    assert patterns["queue"] is patterns["decode"] is None


def test_the_axis_names_its_unit():
    assert phases(BARS, SCENE).layout["xaxis"]["title"]["text"].endswith(", s")


def test_without_bars_there_is_no_chart():
    assert phases([], SCENE) is None
