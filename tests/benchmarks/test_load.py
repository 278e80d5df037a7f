"""The arithmetic of the load benchmark, and the page that shows it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.load.cpu import Costs, _marginal
from benchmarks.load.floor import timer_lateness_s
from benchmarks.load.many import grown_bytes
from benchmarks.load.measure import marginal_us, stamp_errors_s
from benchmarks.load.page import DOCUMENT, PAGE, render_page
from benchmarks.load.rivals import ttft_errors_s
from benchmarks.load.tools import Reported
from benchmarks.machine import Noise, machine
from benchmarks.table import Row, render, row


def test_marginal_cost_is_between_the_least_of_long_and_short_runs():
    """The least: 1.3 − 0.2 = 1.1 s over 100,000 tokens = 11 us; pairs 1.3 − 0.3, 1.6 − 0.2."""
    assert marginal_us([1.3, 1.6], [0.3, 0.2], 100_000) == pytest.approx([11, 10, 14])


def test_the_cost_of_a_client_is_held_against_the_floor_of_the_same_run():
    """50 streams × 500 tokens more: 0.25 s is 10 us, the floor's 0.2 s is 8 us; 10 / 8 = 1.25."""
    ours = Costs(600, 100, [0.35], [0.1], [0.9])
    floor = Costs(600, 100, [0.3], [0.1], [0.3])
    found = _marginal("ours", ours, floor, most=12.0, ratio_most=1.2)
    assert found.value == pytest.approx(10)
    assert found.ratio == pytest.approx(1.25)
    assert found.met is False
    # 0.9 s over 50 × 600 tokens.
    assert ours.whole_us() == pytest.approx([30])


def test_a_token_is_late_by_our_time_less_the_servers():
    """Ours at 1,000 + 100 us, then 5,000 us on; sent at 1,090 and 6,050 us: 10 and 50 us."""
    sent_ns = np.array([1_090_000, 6_050_000])
    errors = stamp_errors_s(100, np.array([5_000]), 1_000_000, sent_ns)
    assert errors == pytest.approx([10e-6, 50e-6])


def test_chunks_that_are_not_the_tokens_are_not_matched():
    """Two chunks cannot be three tokens."""
    with pytest.raises(ValueError, match="2 chunks for 3 tokens"):
        stamp_errors_s(0, np.array([1]), 0, np.array([1, 2, 3]))


TRUTH = SimpleNamespace(
    ids=["probe", "b", "a"],
    arrived_ns={"probe": 0, "a": 10_000_000, "b": 20_000_000},
    sent_ns={"probe": [1_000_000], "a": [15_000_000], "b": [50_000_000]},
)


def test_reported_ttft_is_held_against_the_servers_by_id():
    """The server took 5 ms for a and 30 ms for b; told were 7 and 31: 2 and 1 ms too much."""
    reported = [Reported(1.0, 0.007, "a"), Reported(0.5, 0.031, "b")]
    assert ttft_errors_s(reported, TRUTH) == pytest.approx([0.002, 0.001])


def test_without_ids_the_first_to_start_is_the_first_to_arrive():
    """The probe came before the two that were reported and is left out."""
    reported = [Reported(9.1, 0.031), Reported(9.0, 0.007)]
    assert ttft_errors_s(reported, TRUTH) == pytest.approx([0.002, 0.001])


def test_memory_of_open_streams_is_the_most_with_all_less_the_last_with_few():
    """1,500 − 1,100 of the sample before the others came; 1,200 came with 10 open again."""
    rss = [(0.1, 10, 1_000), (0.6, 10, 1_100), (1.1, 400, 1_300), (1.6, 1000, 1_500)]
    assert grown_bytes([*rss, (2.1, 10, 1_200)]) == 400
    assert grown_bytes(rss[:3]) is None


def test_a_bare_timer_is_never_early():
    """Three moments, each noted once."""
    late = timer_lateness_s([0.0, 0.002, 0.002])
    assert len(late) == 3
    assert min(late) >= 0


def test_a_row_says_whether_it_reached_its_target():
    """The median of 1, 2, 9 is 2; the best is 1; a rate must be at least its target."""
    assert row("a", [1, 2, 9], "s", most=1.5).met is False
    assert row("a", [1, 2, 9], "s", most=1.5, best=True).met is True
    assert row("a", [70_000], "tokens/s", least=60_000.0).target == "≥ 60,000"
    assert row("a", [1], "s").met is None
    unknown = Row("tool", None, "us/token", note="not installed")
    assert "–" in render("x", [unknown])
    assert "not installed" in render("x", [unknown])


def test_a_busy_machine_is_told():
    """Two cores of others' work, and a tenth taken by the hypervisor."""
    assert Noise(0.1, 0.01, 0.001).text is None
    told = Noise(3.0, 2.0, 0.1).text
    assert told == "busy machine: other processes used 2.0 cores, the hypervisor took 10%"


def _document():
    rows = [
        row("impakt, fast: marginal CPU", [9.0, 9.5], "us/token", ("floor", [8.0]), most=9.0,
            group="cpu"),
        Row("aiperf", None, "us/token", note="not installed", group="rivals"),
        Row("impakt load: CPU, whole run", 40.0, "us/token", group="rivals"),
    ]  # fmt: skip
    return {
        "host": machine(), "noise": vars(Noise(0.5, 0.0, 0.0, 100.0)), "remarks": {},
        "rows": [r.to_json() for r in rows],
    }  # fmt: skip


def test_the_page_says_what_is_missed_and_what_was_not_there():
    """9.25 us where 9 were wanted; the reason comes from the document's remarks."""
    document = _document()
    document["remarks"] = {"impakt, fast: marginal CPU": "parsing is not free"}
    text = render_page(document)
    assert "{{" not in text
    assert "| aiperf | not installed | | | |" in text
    assert "| impakt load | 40 | – | – | – |" in text
    assert "9.25 us/token; wanted ≤ 9. Why: parsing is not free." in text


def test_the_page_is_what_its_document_gives():
    """Edited by hand, or measured anew without `python -m benchmarks.load.page`, it differs."""
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == render_page(document)
