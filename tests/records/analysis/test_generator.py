"""Who read the clock, how the loop stalled, what this host can do: shown, and judged by it."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from records.analysis.record import analyze_folder
from records.analysis.shape import check_shape
from records.analysis.summary import record_text
from records.errors import BadEvidence
from records.evidence.manifest import write_manifest

near = pytest.approx
STALL = {"n": 500, "mean": 0.001, "min": 0.0, "max": 0.03, "p50": 0.001, "p90": 0.002,
         "p95": 0.004, "p99": 0.006, "p99_9": 0.02}  # fmt: skip
LEVEL = {
    "events_per_s": 20_000.0, "requests": 400, "cpu_fraction": 0.4,
    "ttft_error_s": {"n": 400, "median": 0.00002, "p99": 0.00008, "max": 0.001},
    "itl_error_s": {"n": 39_600, "median": 0.0, "p99": 0.00004, "max": 0.001},
    "e2e_error_s": {"n": 400, "median": 0.00002, "p99": 0.00009, "max": 0.001},
    "schedule_lag_s": {"n": 400, "median": 0.00003, "p99": 0.0003},
}  # fmt: skip
CALIBRATION = {
    "schema": "impakt.calibration/1", "date": "2026-01-01T00:00:00Z", "age_s": 3600.0,
    "host": {"cpu_model": "x", "cores": 2, "transport": "fast", "stamp_source": "kernel"},
    "error_bound_s": 0.001, "levels": {"light": LEVEL, "half": None, "full": LEVEL},
    "ceiling": {"events_per_s": 20_000.0, "bounded_by": "client_cpu", "text": "its core"},
    "cpu": {"us_per_token": 9.5, "us_per_request": 80.0, "n": 5},
}  # fmt: skip


def codes(record):
    return [r["code"] for r in record["invalid_reasons"]]


def of_stall(made, source, **over):
    """The record of one request by stamps of `source`, under stalls of `over`."""
    stall = STALL | over
    generator = {"cpu_s": 1.0, "wall_s": 10.0, "loop_stall_max_s": stall["max"],
                 "loop_stall_s": stall, "lag_limit_s": 0.01}  # fmt: skip
    row = made.row("a", 0, [0.5, 0.6], attempt={"stamp_source": source})
    return made.record(row, run=made.run(generator=generator))


def test_recorded_quantiles_of_stalls_are_shown_without_limits(made):
    record = of_stall(made, "kernel")
    stall = record["generator"]["loop_stall_s"]
    assert (stall["n"], stall["max"], stall["grade"]) == (500, 0.03, "measured")
    assert (stall["p99"]["value"], stall["p99"]["low"]) == (0.006, None)
    assert stall["p99"]["reason"]
    assert record["generator"]["stamp_source"] == "kernel"


@pytest.mark.parametrize("odd", ["much", [1], {"n": 3}, {**STALL, "p99": "late"}])
def test_quantiles_of_another_form_are_as_good_as_none(made, odd):
    generator = {"loop_stall_max_s": 0.002, "loop_stall_s": odd}
    record = made.record(made.row("a", 0, [0.5]), run=made.run(generator=generator))
    stall = record["generator"]["loop_stall_s"]
    assert (stall["max"], stall["n"]) == (0.002, None)


def test_a_stall_does_not_falsify_what_the_kernel_stamped(made):
    # p99 of 15 ms, limit 10 ms: late reading of times that were right.
    assert of_stall(made, "kernel", p99=0.015)["valid"]
    for source in ("user", None):
        record = of_stall(made, source, p99=0.015)
        assert codes(record) == ["generator_behind"]
        (reason,) = record["invalid_reasons"]
        assert "15.0 ms, limit 10.0 ms" in reason["text"]
        assert reason["figure"] == "generator.loop_stall_s.p99"


def test_a_few_attempts_stamped_in_user_space_do_not_decide(made):
    """1 of 100 is 1 %: judged as the kernel's; 2 of 100 are not."""
    stall = STALL | {"p99": 0.015}
    run = made.run((0.0, 100.0), generator={"loop_stall_max_s": 0.03, "loop_stall_s": stall})
    for few, valid in ((1, True), (2, False)):
        rows = [
            made.row(str(i), i, [i + 0.5],
                     attempt={"stamp_source": "user" if i < few else "kernel"})
            for i in range(100)
        ]  # fmt: skip
        assert made.record(*rows, run=run)["valid"] is valid


def test_a_loop_that_stood_still_for_over_a_second_sent_a_burst(made):
    assert of_stall(made, "kernel", max=0.99)["valid"]
    record = of_stall(made, "kernel", max=1.5)
    assert codes(record) == ["generator_behind"]
    assert "stalled for 1.50 s, limit 1 s" in record["invalid_reasons"][0]["text"]


def test_attempts_that_differ_are_mixed(made):
    rows = [
        made.row(s, 0, [0.5], attempt={"stamp_source": s}) for s in ("kernel", "user")
    ]  # fmt: skip
    assert made.record(*rows)["generator"]["stamp_source"] == "mixed"


def test_evidence_that_recorded_none_of_it_still_analyses(made):
    record = made.record(made.row("a", 0, [0.5, 0.6]), run=made.run(transport=None))
    generator = record["generator"]
    assert (generator["stamp_source"], generator["transport"]) == (None, None)
    assert set(generator["reasons"]) >= {"stamp_source", "transport", "calibration"}
    assert record["latency"]["chunks_per_receive"]["reason"] == "receives were not recorded"
    assert record["latency"]["first_token_bound_s"]["n"] == 0
    assert record["valid"]


def test_evidence_without_the_later_columns_still_analyses(made, tmp_path):
    """attempts.parquet as an earlier version wrote it."""
    folder = tmp_path / "old"
    made.folder(folder, made.row("a", 0, [0.5, 0.6]))
    path = folder / "attempts.parquet"
    later = ["stamp_source", "receives", "first_token_after_s"]
    pq.write_table(pq.read_table(path).drop_columns(later), path)
    (folder / "manifest.json").unlink()
    write_manifest(folder)
    assert analyze_folder(folder)["generator"]["stamp_source"] is None


def test_the_transport_and_what_it_told(made):
    generator = {"transport": {"stamp_source": "kernel", "new": 3, "clock_step_s": None}}
    record = made.record(
        made.row("a", 0, [0.5]), run=made.run(transport="fast", generator=generator)
    )
    told = record["generator"]["transport"]
    assert told == {"name": "fast", "stamp_source": "kernel", "new": 3}


def test_the_calibration_stands_beside_the_run_once(made):
    record = made.record(made.row("a", 0, [0.5]), run=made.run(calibration=CALIBRATION))
    told = record["generator"]["calibration"]
    assert told["levels"]["full"]["ttft_error_s"] == {"n": 400, "median": 0.00002, "p99": 0.00008}
    assert told["levels"]["half"] is None
    assert told["levels"]["reasons"]["half"]
    assert told["ceiling"]["events_per_s"] == 20_000
    of_class = record["classes"]["default"]["generator"]
    assert of_class["calibration"] is None
    assert "generator.calibration" in of_class["reasons"]["calibration"]
    check_shape(record, "record")


@pytest.mark.parametrize(
    "odd",
    [{}, {"levels": 3}, {"levels": {"full": []}}, {"levels": {"full": {"ttft_error_s": "none"}}},
     {"ceiling": {"events_per_s": True}}, {"host": {"cores": {}}, "date": 5, "cpu": [1]}],
)  # fmt: skip
def test_a_calibration_of_another_form_has_nulls(made, odd):
    record = made.record(made.row("a", 0, [0.5]), run=made.run(calibration=odd))
    json.dumps(record, allow_nan=False)
    check_shape(record, "record")
    assert record["generator"]["calibration"]["ceiling"]["events_per_s"] is None
    assert "ceiling –" in record_text(record)


def test_a_record_with_a_misshapen_calibration_is_refused(made):
    record = made.record(made.row("a", 0, [0.5]), run=made.run(calibration=CALIBRATION))
    record["generator"]["calibration"]["levels"]["full"]["ttft_error_s"]["p99"] = "small"
    with pytest.raises(BadEvidence, match=r"levels\.full\.ttft_error_s\.p99"):
        check_shape(record, "record")


def test_the_printed_record_says_how_it_was_timed(made):
    assert "not calibrated: run impakt calibrate" in record_text(of_stall(made, "user"))
    run = made.run(calibration=CALIBRATION, transport="fast")
    text = record_text(made.record(made.row("a", 0, [0.5]), run=run))
    assert "transport fast; time stamps –; schedule lag p99 0 ms, n 1; loop stall max 1 ms" in text
    assert "TTFT p99 0.08 ms, ITL p99 0.04 ms, E2E p99 0.09 ms, ceiling 20,000 events/s" in text


def test_what_the_load_generator_noted_reaches_the_reader(made):
    run = made.run(notes=["think_s is not followed", 3])
    assert made.record(made.row("a", 0, [0.5]), run=run)["notes"][-1] == "think_s is not followed"
    assert made.record(made.row("a", 0, [0.5]), run=made.run(notes="none"))["notes"]


@pytest.mark.parametrize(("longest_s", "told"), [(0.09, False), (0.4, True), (None, False)])
def test_a_long_stall_that_is_no_reason_is_a_note(made, longest_s, told):
    run = made.run(generator={"loop_stall_max_s": longest_s})
    notes = made.record(made.row("a", 0, [0.5]), run=run)["notes"]
    assert any("stalled for up to 0.40 s" in note for note in notes) is told
