"""A record has every key of the contract, a reason for every null, and one byte form."""

from __future__ import annotations

import json

import pytest

from records.analysis.record import analyze_folder, record_bytes
from records.errors import BadEvidence
from records.evidence.columns import OUTCOMES

Q = {"n", "mean", "min", "max", "p50", "p90", "p95", "p99", "p99_9", "grade", "reason"}
BLOCKS = {
    "arrivals": {"offered_per_s", "sent_per_s", "cv", "burstiness", "peak_per_s"},
    "concurrency": {"declared", "observed"},
    "counts": {
        "attempted", "workflows", "completed", "accepted", "unjudged", "severe_failures",
        "authority_violations", "failed", "timed_out", "cancelled", "rejected", "shed",
        "deferred", "interrupted", "censored", "attempts", "retries", "fallbacks",
        "tool_calls", "tools_failed", "review_minutes", "recovery_events",
    },
    "latency": {
        "ttft_s", "ttft_from_send_s", "first_visible_s", "itl_s", "chunk_gap_s", "itl_basis",
        "tpot_s", "e2e_s", "client_wait_s", "time_to_failure_s",
    },
    "goodput": {
        "attempted_per_s", "completed_per_s", "output_tokens_per_s", "completed_fraction",
        "slo_attainment", "slo_attainment_of_attempted", "accepted_fraction",
        "accepted_per_s", "amplification",
    },
    "phases": {
        "client", "backoff", "queue", "prefill", "queue_prefill", "decode", "external",
        "residual", "dominant",
    },
    "stability": {
        "verdict", "backlog_start", "backlog_end", "slope_per_s", "deferred", "bursts",
    },
    "fairness": {
        "min_class_attainment", "max_class_attainment", "jain", "starved",
        "longest_wait_without_service_s", "slowdown_by_size",
    },
    "cache": {"declared", "observed_hit_ratio", "agrees"},
    "tools": {"calls", "failed", "completion_fraction", "exclusive_s"},
    "exceptions": {"handled", "minutes"},
    "generator": {"schedule_lag_s", "cpu_fraction", "missed", "loop_stall_s", "calibration"},
    "lengths": {"prompt_tokens", "output_tokens"},
}  # fmt: skip
PLAIN = {"speculation", "cost", "energy", "diagnosis"}
RUN = {
    "model", "artifact", "runtime", "hardware", "precision", "scheduler", "cache_state",
    "queue_policy", "batch", "owner", "date", "expires", "triggers", "evidence_location",
}  # fmt: skip
OBJECTIVE = {"objective": {"ttft_s": 1.0, "tpot_s": 0.2}}


def nasty(made):
    """Evidence that tempts a division by zero or a NaN, by name."""
    return {
        "no request": [],
        "all failed": [
            made.row("a", 0, outcome="failed", end=1.0),
            made.row("b", 1, outcome="rejected", end=1.1),
        ],
        "one request": [made.row("a", 0, [0.5, 0.6])],
        "one token": [made.row("a", 0, [0.5])],
        "no times at all": [made.row("a", 0, n=None)],
        "never sent": [
            made.row("a", 0, sent=None, outcome="shed"),
            made.row("b", 0, sent=None, outcome="deferred"),
        ],
        "nothing in the window": [made.row("a", 0, [0.5], in_window=False)],
        "all at once": [made.row(str(i), 0, [0.5, 0.5]) for i in range(9)],
        "not streamed": [made.row("a", 0, end=0.9, n=None)],
        "answered at once": [made.row(str(i), 0, [0.0, 0.0]) for i in range(30)],
    }  # fmt: skip


NAMES = list(nasty(type("M", (), {"row": staticmethod(lambda *a, **k: None)})))


def missing_reasons(value, path="$"):
    """Paths of nulls that no reason stands beside."""
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in missing_reasons(v, f"{path}[{i}]")]
    if not isinstance(value, dict):
        return []
    told = value.get("reasons", {})
    shape = {"low", "high", "n", "mean"} & set(value)
    out = []
    for key, item in value.items():
        if (
            item is None
            and key != "reason"
            and not (key in told or (shape and value.get("reason")))
        ):
            out.append(f"{path}.{key}")
        out += missing_reasons(item, f"{path}.{key}")
    return out


@pytest.mark.parametrize("window", [(0.0, 10.0), (0.0, 0.0)])
@pytest.mark.parametrize("name", NAMES)
def test_every_key_is_there_and_every_null_has_its_reason(made, name, window):
    work = made.workload(
        classes={"default": OBJECTIVE}, rubric={"criteria": [{"id": "a", "check": "human"}]}
    )
    rows = nasty(made)[name]
    record = made.record(*rows, workload=work, run=made.run(window))
    for block in [record, *record["classes"].values()]:
        for key, keys in BLOCKS.items():
            assert keys <= set(block[key]), key
        assert set(block) >= PLAIN
    assert set(record["run"]) >= RUN
    assert set(record["latency"]["ttft_s"]) == Q
    # What nobody declares (the tuple, the policies) is the user's own document.
    bare = {k: v for k, v in record["run"].items() if k not in ("configuration", "policies")}
    assert missing_reasons({**record, "run": bare}) == []
    counts = record["counts"]
    assert counts["attempted"] == sum(counts[o] for o in OUTCOMES)
    shares = [
        p["share"]
        for k, p in record["phases"].items()
        if k != "dominant" and p["share"] is not None
    ]
    assert not shares or sum(shares) == pytest.approx(1)


def test_figures_of_a_later_version_say_so(made):
    record = made.record(made.row("a", 0, [0.5, 0.6]))
    assert record["reasons"]["cost"] == "not computed by analysis_version 2"
    assert record["stability"]["reasons"]["verdict"] == "not computed by analysis_version 2"
    assert record["stability"]["slope_per_s"]["reason"] == "not computed by analysis_version 2"
    assert record["run"]["reasons"]["hardware"] == "not declared"


def test_the_same_evidence_gives_the_same_bytes(made, tmp_path):
    rows = [made.row(str(i), i / 10, [i / 10 + 0.3, i / 10 + 0.37]) for i in range(20)]
    for name in ("one", "two"):
        made.folder(tmp_path / name, *rows)
    first = analyze_folder(tmp_path / "one", save=True)
    # Saved records are no evidence; another place is the same evidence.
    again, moved = analyze_folder(tmp_path / "one"), analyze_folder(tmp_path / "two")
    assert record_bytes(first) == record_bytes(again) == record_bytes(moved)
    (saved,) = (tmp_path / "one" / "records").iterdir()
    assert saved.read_bytes() == record_bytes(first)
    assert json.loads(saved.read_bytes()) == first


def test_the_order_of_rows_does_not_matter(made):
    rows = [made.row(str(i), i / 10, [i / 10 + 0.3, i / 10 + 0.37]) for i in range(20)]
    assert record_bytes(made.record(*rows)) == record_bytes(made.record(*rows[::-1]))


def test_inputs_name_every_file_read_with_its_hash(made, tmp_path):
    folder = made.folder(tmp_path / "f", made.row("a", 0, [0.5]))
    record = analyze_folder(tmp_path / "f")
    by_name = {f.name: f.sha256 for f in folder.files()}
    assert [f["name"] for f in record["inputs"]] == [
        "attempts.parquet", "chunks.parquet", "requests.parquet", "run.json", "tools.parquet",
        "workload.json",
    ]  # fmt: skip
    assert all(by_name[f["name"]] == f["sha256"] for f in record["inputs"])
    assert record["run"]["evidence_location"].startswith("sha256:")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"outcome": "vanished"}, "outcome"),
        ({"outcome": None}, "outcome"),
    ],
)
def test_evidence_with_an_unknown_outcome_is_refused(made, change, field):
    with pytest.raises(BadEvidence, match=field):
        made.record(made.row("a", 0, [0.5], **change))


def test_a_request_that_stands_twice_is_refused(made):
    with pytest.raises(BadEvidence, match="request_id"):
        made.record(made.row("a", 0, [0.5]), made.row("a", 1, [1.5]))


def test_chunk_lists_that_do_not_fit_are_refused(made):
    with pytest.raises(BadEvidence, match="one longer than gap_us"):
        made.record(made.row("a", 0, [0.5, 0.6], per_chunk=[1, 1, 1]))


@pytest.mark.parametrize("window", [None, {}, {"start_s": 0}, {"start_s": 2, "end_s": 1}])
def test_a_run_without_a_window_is_refused(made, window):
    with pytest.raises(BadEvidence, match="window"):
        made.record(made.row("a", 0, [0.5]), run=made.run() | {"window": window})
