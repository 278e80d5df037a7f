"""Whatever the evidence holds, the record is JSON, its outcomes add up and its shares sum to 1."""

from __future__ import annotations

import random

import pytest

from records.analysis.comparison import compare
from records.analysis.record import assemble
from records.analysis.series import run_series
from records.evidence.canonical import canonical_bytes
from records.evidence.columns import OUTCOMES
from records.evidence.judgments import Judgments, Verdict


def maybe(rng, value, share=0.15):
    return None if rng.random() < share else value


def random_row(made, rng, i):
    """A request with any outcome and any of its observations missing."""
    at = rng.choice([0.0, rng.uniform(0, 12)])
    n = rng.choice([0, 0, 1, 1, 2, 5, 30])
    tokens = [at + 0.1]
    for _ in range(n - 1):
        tokens.append(tokens[-1] + rng.choice([0.0, 1e-6, 0.02, 3.0]))
    tokens = tokens[:n]
    outcome = rng.choice(["completed"] * 6 + list(OUTCOMES))
    counts = [rng.choice([0, 1, 1, 1, 7]) for _ in tokens]
    told = rng.random() < 0.3
    return made.row(
        f"q{i}", at, tokens,
        per_chunk=maybe(rng, counts), n=maybe(rng, rng.choice([0, 1, 2, sum(counts)])),
        outcome=outcome, end=maybe(rng, (tokens[-1] if tokens else at) + rng.random()),
        sent=maybe(rng, at + rng.choice([0.0, 0.001, 2.0])), in_window=at <= 10,
        workflow_id=f"w{rng.randint(0, 9)}" if rng.random() < 0.3 else f"q{i}",
        prompt_tokens=maybe(rng, 10),
        attempt={
            "queue_s": maybe(rng, 0.05) if told else None,
            "prefill_s": 0.02 if told else None,
            "phase_grade": maybe(rng, "derived"),
            "cached_tokens": maybe(rng, 3), "tool_calls": maybe(rng, 1),
            "token_count_source": maybe(rng, rng.choice(["usage", "chunks"])),
        },
        **{"class": maybe(rng, rng.choice("abc"))},
    )  # fmt: skip


def random_evidence(made, seed):
    rng = random.Random(seed)
    rows = [random_row(made, rng, i) for i in range(rng.choice([1, 3, 12, 40]))]
    targets = {"ttft_s": 1.0, "tpot_s": 0.5, "itl_s": 0.5, "e2e_s": 5.0}
    classes = {
        name: {"objective": dict(rng.sample(sorted(targets.items()), rng.randint(1, 4)))}
        for name in rng.choice(["", "ab", ["a", "b", "c", "default"]])
    }
    rubric = rng.choice([None, {"criteria": [{"id": "x", "check": "human"}]}])
    work = made.workload(classes=classes, rubric=rubric, name="fuzz")
    verdicts = {
        row[0]["workflow_id"]: Verdict(
            rubric_passed=rng.choice([True, True, False, None]),
            severe_failure=rng.random() < 0.1, review_minutes=maybe(rng, 1.5),
        )
        for row in rows
    }  # fmt: skip
    said = Judgments(verdicts, [], has_rubric=rubric is not None, reason=None if rubric else "none")
    run = made.run(
        (0.0, 10.0),
        policies={"max_concurrency": maybe(rng, 2)},
        state=rng.choice(["completed", "completed", "interrupted"]),
        end=maybe(rng, {"ended_s": 7.0}),
    )
    return made.evidence(*rows, run=run, workload=work, judgments=said)


def near_one(shares):
    return not shares or sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(20))
def test_any_evidence_gives_a_record_that_adds_up(made, seed):
    evidence = random_evidence(made, seed)
    record = assemble(evidence, [], f"sha256:{seed}")
    # Refuses NaN and infinities, wherever they stand.
    canonical_bytes(record)
    canonical_bytes(run_series(evidence, record))
    for block in [record, *record["classes"].values()]:
        counts, goodput = block["counts"], block["goodput"]
        assert counts["attempted"] == sum(counts[o] for o in OUTCOMES)
        if counts["accepted"] is not None:
            assert counts["accepted"] + counts["unjudged"] <= counts["workflows"]
        for name in ("completed_fraction", "slo_attainment", "accepted_fraction"):
            estimate = goodput[name]
            if estimate["value"] is not None:
                assert 0 <= estimate["low"] <= estimate["value"] <= estimate["high"] <= 1
        phases = {k: p for k, p in block["phases"].items() if k != "dominant"}
        assert near_one([p["share"] for p in phases.values() if p["share"] is not None])
        for figure in block["latency"].values():
            ordered_percentiles(figure)
    for name in ("attempted", "completed", "workflows", "attempts"):
        total = sum(block["counts"][name] for block in record["classes"].values())
        assert total <= record["counts"][name]
        if name in ("attempted", "completed"):
            assert total == record["counts"][name]


def ordered_percentiles(figure):
    if not isinstance(figure, dict) or not figure.get("n"):
        return
    points = [figure[p]["value"] for p in ("p50", "p90", "p95", "p99", "p99_9")]
    assert [figure["min"], *points, figure["max"]] == sorted(
        [figure["min"], *points, figure["max"]]
    )
    for name in ("p50", "p90", "p95", "p99", "p99_9"):
        low, value, high = (figure[name][k] for k in ("low", "value", "high"))
        assert low is None or low <= value
        assert high is None or value <= high
        assert figure[name]["supported"] == (low is not None and high is not None)


@pytest.mark.parametrize("seed", range(0, 20, 5))
def test_any_records_can_be_compared(made, seed):
    records = [assemble(random_evidence(made, seed + k), [], f"s{k}") for k in range(4)]
    document = compare(candidates=records[:2], baselines=records[2:])
    canonical_bytes(document)
    assert document["verdict"] in ("adopt", "do_not_adopt", "not_enough_evidence")
