"""Arrivals, concurrency, backlog and generator are shown as they were; validity follows."""

from __future__ import annotations

import pytest

near = pytest.approx


def codes(record):
    return [r["code"] for r in record["invalid_reasons"]]


def test_arrivals_have_their_rate_burstiness_and_peak(made):
    # Gaps 1, 1, 4: mean 2, population variance (1 + 1 + 4) / 3 = 2, cv = sqrt(2) / 2.
    rows = [made.row(str(t), t, [t + 0.1]) for t in (0.0, 1.0, 2.0, 6.0)]
    arrivals = made.record(*rows)["arrivals"]
    cv = 2**0.5 / 2
    assert arrivals["cv"] == near(cv)
    assert arrivals["burstiness"] == near((cv - 1) / (cv + 1))
    assert arrivals["offered_per_s"] == near(0.4)
    assert arrivals["peak_per_s"] == 1
    close = [made.row(str(i), t, [t + 0.1]) for i, t in enumerate((0.0, 0.9, 1.8, 1.85))]
    # Within [0.9, 1.9) lie three, though no whole second holds more than two.
    assert made.record(*close)["arrivals"]["peak_per_s"] == 3


def test_concurrency_is_weighted_by_time_and_clipped_to_the_window(made):
    # In flight: [0,4] and [2,6] in a window of 8 s: 1 for 4 s, 2 for 2 s, 0 for 2 s.
    rows = [made.row("a", 0, [4.0]), made.row("b", 2, [6.0])]
    observed = made.record(*rows, run=made.run((0.0, 8.0)))["concurrency"]["observed"]
    assert observed["mean"] == near(1.0)
    assert (observed["min"], observed["max"], observed["p50"]["value"]) == (0, 2, 1)


def test_littles_law_holds_over_a_window_empty_at_both_ends(made):
    # METHODS 5: arrivals 0 1 2 3, departures 4 5 6 7, T = 7: L = (4/7) * 4 = 2.285714.
    rows = [made.row(str(i), i, [i + 4.0]) for i in range(4)]
    record = made.record(*rows, run=made.run((0.0, 7.0)))
    assert record["concurrency"]["observed"]["mean"] == near(2.285714, abs=1e-6)


def test_backlog_counts_from_the_intended_arrival(made):
    # At the start w is still there; at the end b and the censored c.
    rows = [
        made.row("w", 0, [3.0], in_window=False),
        made.row("a", 2.5, [4.0]),
        made.row("b", 9, [11.0]),
        made.row("c", 9.5, outcome="censored", end=None),
        made.row("d", 5, sent=None, outcome="deferred"),
    ]
    stability = made.record(*rows, run=made.run((2.0, 10.0)))["stability"]
    assert (stability["backlog_start"], stability["backlog_end"]) == (1, 2)
    assert stability["deferred"] == {"default": 1}


def test_a_late_generator_makes_the_run_invalid(made):
    rows = [made.row(str(i), i, [i + 0.5], sent=i + 0.02) for i in range(10)]
    record = made.record(*rows)
    assert not record["valid"]
    assert codes(record) == ["generator_behind"]
    assert "20.0 ms" in record["invalid_reasons"][0]["text"]
    limit = {"cpu_s": 1.0, "wall_s": 10.0, "loop_stall_max_s": 0.0, "lag_limit_s": 0.05}
    assert made.record(*rows, run=made.run(generator=limit))["valid"]


def test_waiting_for_the_concurrency_limit_is_not_lag(made):
    # Limit 1: b arrives at 1 while a is in flight to 3, is sent at 3: policy, not lag.
    rows = [made.row("a", 0, [3.0]), made.row("b", 1, [4.0], sent=3.0), made.row("c", 5, [6.0])]
    capped = made.run(policies={"max_concurrency": 1})
    record = made.record(*rows, run=capped)
    assert record["valid"]
    assert record["generator"]["schedule_lag_s"]["n"] == 2
    assert record["generator"]["schedule_lag_s"]["max"] == 0
    assert record["latency"]["client_wait_s"]["max"] == near(2.0)
    # Without the limit the same lateness is the generator's.
    assert codes(made.record(*rows)) == ["generator_behind"]


def test_a_late_send_into_a_free_slot_is_lag_also_under_a_limit(made):
    rows = [made.row("a", 0, [1.0], sent=0.5)]
    assert codes(made.record(*rows, run=made.run(policies={"max_concurrency": 4}))) == [
        "generator_behind"
    ]


@pytest.mark.parametrize("state", ["interrupted", "failed", "stopped", "running"])
def test_a_run_that_did_not_end_well_is_not_valid(made, state):
    record = made.record(made.row("a", 0, [0.5]), run=made.run(state=state))
    assert codes(record) == [state]


def test_a_window_cut_short_is_not_divided_by_its_whole_length(made):
    rows = [made.row(str(i), i, [i + 0.5]) for i in range(5)]
    cut = made.run((0.0, 60.0), state="interrupted", end={"ended_s": 5.0, "text": "Ctrl-C"})
    record = made.record(*rows, run=cut)
    assert record["window"]["end_s"] == 5
    assert record["arrivals"]["offered_per_s"] == near(1.0)
    assert any("ends at 5.000 s" in note for note in record["notes"])
    # After kill -9 nobody wrote the end: the last thing seen is it.
    killed = made.record(*rows, run=cut | {"end": None})
    assert killed["window"]["end_s"] == near(4.5)


def test_no_arrival_and_unsent_requests_are_named(made):
    assert codes(made.record()) == ["no_requests"]
    rows = [made.row("a", 0, [0.5]), made.row("b", 1, sent=None, outcome="interrupted")]
    record = made.record(*rows)
    assert codes(record) == ["delivered_short"]
    assert record["generator"]["missed"] == 1


def test_load_that_came_too_slowly_is_short_of_what_was_asked(made):
    # 200 asked for within 1 s, the last of them sent at 1.6 s: 200 / 1.6 = 125/s of 200/s.
    # One request in 200 is beyond p99, so the schedule lag does not show it.
    rows = [made.row(str(i), i / 200, [2.0]) for i in range(199)]
    rows.append(made.row("late", 1.0, [2.0], sent=1.6))
    record = made.record(*rows, run=made.run((0.0, 1.0)))
    assert record["arrivals"]["sent_per_s"] == near(125)
    assert codes(record) == ["delivered_short"]
    assert "0.6 s after the window: 125 of 200" in record["invalid_reasons"][0]["text"]


def test_a_short_window_allows_the_lag_that_the_limit_allows(made):
    # 4 ms late in a window of 20 ms is a fifth of the rate, and within 10 ms.
    rows = [made.row(str(i), i / 100, [1.0], sent=i / 100 + 0.004) for i in range(3)]
    assert made.record(*rows, run=made.run((0.0, 0.02)))["valid"]


def test_a_server_that_refuses_connections_is_no_fault_of_the_generator(made):
    refused = {"sent_s": None, "error_kind": "connect"}
    rows = [made.row("a", 0, outcome="failed", end=0.1, attempt=refused)]
    record = made.record(*rows)
    assert record["valid"]
    assert (record["counts"]["failed"], record["counts"]["attempts"]) == (1, 1)


def test_work_our_policies_held_back_is_not_short_delivery(made):
    rows = [made.row("a", 0, [0.5]), made.row("b", 1, sent=None, outcome="shed")]
    assert made.record(*rows)["valid"]


def test_the_longest_stall_is_all_that_was_recorded(made):
    stall = made.record(made.row("a", 0, [0.5]))["generator"]["loop_stall_s"]
    assert (stall["max"], stall["n"], stall["mean"]) == (0.001, None, None)
    assert stall["reason"] == "only the longest was recorded"


def test_cached_tokens_lie_inside_the_prompt(made):
    # 6 of 10 and 0 of 10 prompt tokens: 6/20.
    rows = [made.row(i, 0, [0.5], attempt={"cached_tokens": c}) for i, c in (("a", 6), ("b", 0))]
    cache = made.record(*rows)["cache"]
    assert (cache["declared"], cache["observed_hit_ratio"]) == ("warm", near(0.3))
    rows.append(made.row("c", 0, [0.5]))
    assert made.record(*rows)["cache"]["observed_hit_ratio"] is None
