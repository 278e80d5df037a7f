"""The phases of a request sum to its E2E, and the dominant one is named with its share."""

from __future__ import annotations

import pytest

from records.analysis.metrics.tools import exclusive_s, union_s

near = pytest.approx


def test_an_undivided_request_splits_into_client_prefill_and_decode(made):
    # Intended 1.0, sent 1.2, first token 1.7, last 2.0: E2E 1.0.
    phases = made.record(made.row("a", 1.0, [1.7, 2.0], sent=1.2))["phases"]
    assert phases["client"]["total_s"] == near(0.2)
    assert phases["queue_prefill"]["total_s"] == near(0.5)
    assert phases["decode"]["share"] == near(0.3)
    assert phases["residual"]["total_s"] == 0
    assert phases["backoff"] == {
        "total_s": 0, "share": 0, "grade": "measured", "p50_s": 0, "p95_s": 0,
    }  # fmt: skip
    assert phases["queue"]["total_s"] is None
    assert phases["external"]["grade"] == "not_observable"


def test_what_the_server_told_divides_queue_from_prefill(made):
    told = {"queue_s": 0.1, "prefill_s": 0.3, "phase_grade": "measured"}
    phases = made.record(made.row("a", 1.0, [1.5, 2.0], attempt=told))["phases"]
    # E2E 1.0 = 0 client + 0.1 queue + 0.3 prefill + 0.5 decode + 0.1 left over.
    assert (phases["queue"]["share"], phases["prefill"]["share"]) == (near(0.1), near(0.3))
    assert phases["residual"]["share"] == near(0.1)
    assert phases["residual"]["grade"] == "derived"
    assert phases["queue_prefill"]["share"] is None


def test_one_undivided_request_leaves_all_undivided(made):
    told = {"queue_s": 0.1, "prefill_s": 0.3, "phase_grade": "measured"}
    phases = made.record(
        made.row("a", 1.0, [1.5, 2.0], attempt=told), made.row("b", 1.0, [1.5, 2.0])
    )["phases"]
    assert phases["queue"]["share"] is None
    assert phases["queue_prefill"]["share"] == near(0.5)


def test_an_answer_that_was_not_streamed_is_residual_not_zero_decode(made):
    phases = made.record(made.row("a", 0, end=1.0, n=5))["phases"]
    assert phases["decode"]["share"] is None
    assert phases["queue_prefill"]["share"] is None
    assert phases["residual"]["share"] == near(1)


def test_pauses_between_tries_are_backoff(made):
    # First try 0..0.2 failed, second sent at 0.5: 0.3 of backoff; the failed try is residual.
    first = {"request_id": "a", "attempt": 1, "sent_s": 0.0, "end_s": 0.2, "outcome": "failed"}
    row = made.row("a", 0, [0.9, 1.0], attempts=2, attempt={"attempt": 2, "sent_s": 0.5})
    phases = made.record(row, more_attempts=[first])["phases"]
    assert phases["client"]["total_s"] == 0
    assert phases["backoff"]["total_s"] == near(0.3)
    assert phases["residual"]["total_s"] == near(0.2)
    assert phases["queue_prefill"]["total_s"] == near(0.4)


def test_the_tail_can_be_dominated_by_another_phase_than_the_median(made):
    # 36 requests of 0.1 prefill and 0.9 decode; 4 that waited 5 s for a first token.
    rows = [made.row(f"a{i}", 0, [0.1 + i / 1e4, 1.0 + i / 1e4]) for i in range(36)]
    rows += [made.row(f"b{i}", 0, [5.0, 5.9]) for i in range(4)]
    dominant = made.record(*rows)["phases"]["dominant"]
    assert dominant["median"]["phase"] == "decode"
    assert dominant["median"]["share"] == near(0.9, abs=0.01)
    assert dominant["tail"]["phase"] == "queue_prefill"
    # 40 requests: at or above p90 (5.9 from rank 37 on): 5.0 / 5.9.
    assert dominant["tail"]["share"] == near(5.0 / 5.9)


@pytest.mark.parametrize(
    ("n", "median", "tail"), [(4, False, False), (5, True, False), (20, True, True)]
)
def test_bands_need_enough_completions(made, n, median, tail):
    rows = [made.row(str(i), 0, [0.1 + i / 100, 1.0 + i / 10]) for i in range(n)]
    dominant = made.record(*rows)["phases"]["dominant"]
    assert (dominant["median"]["phase"] is not None) is median
    assert (dominant["tail"]["phase"] is not None) is tail


def test_tool_time_counts_only_where_the_model_is_idle(made):
    # METHODS 1: chat [0,2] [4,5] [6,7], tools [2,5] [3,6]: union 4, exclusive 3.
    tool = [(2.0, 5.0), (3.0, 6.0)]
    assert union_s(tool) == 4
    assert exclusive_s([(0.0, 2.0), (4.0, 5.0), (6.0, 7.0)], tool) == 3
    rows = [
        made.row(f"m{i}", begin, [begin + 0.1, end], workflow_id="w")
        for i, (begin, end) in enumerate([(0.0, 2.0), (4.0, 5.0), (6.0, 7.0)])
    ]
    ran = [
        {"workflow_id": "w", "request_id": "m0", "name": "t", "start_s": a, "end_s": b, "ok": ok}
        for (a, b), ok in zip(tool, (True, False), strict=True)
    ]
    record = made.record(*rows, tools=ran)
    assert record["tools"] == {
        "calls": 2, "failed": 1, "completion_fraction": 0.5, "exclusive_s": 3,
    }  # fmt: skip
    assert record["counts"]["tools_failed"] == 1
