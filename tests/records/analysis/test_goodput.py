"""Goodput is what met its objective over what was attempted; accepted work counts whole."""

from __future__ import annotations

import pytest

from records.analysis.metrics.fairness import jain
from records.evidence.judgments import Judgments, Verdict

near = pytest.approx
TARGET = {"ttft_s": 0.5}
RUBRIC = {"criteria": [{"id": "good", "check": "human"}]}


def work(made, rubric=None, **classes):
    targets = classes or {"default": TARGET}
    spec = {name: {"objective": t} if t else {} for name, t in targets.items()}
    return made.workload(classes=spec, rubric=rubric)


def judged(**passed):
    """A verdict per workflow: True, False, or a Verdict."""
    return Judgments(
        {k: v if isinstance(v, Verdict) else Verdict(rubric_passed=v) for k, v in passed.items()},
        [],
    )


def test_late_and_failed_work_stays_in_the_denominator(made):
    # METHODS 3: 100 offered, 5 failed, 5 late, 90 good: 0.90, not 90/95.
    rows = [made.row(f"g{i}", 0, [0.4]) for i in range(90)]
    rows += [made.row(f"l{i}", 0, [0.6]) for i in range(5)]
    rows += [made.row(f"f{i}", 0, outcome="failed", end=0.1) for i in range(5)]
    goodput = made.record(*rows, workload=work(made))["goodput"]
    assert goodput["slo_attainment"]["value"] == near(0.90)
    assert goodput["slo_attainment"]["n"] == 100
    assert goodput["completed_fraction"]["value"] == near(0.95)


def test_fractions_carry_wilson_limits(made):
    # METHODS 6: 93/100 gives .862505, .965681.
    rows = [made.row(f"g{i}", 0, [0.4]) for i in range(93)]
    rows += [made.row(f"l{i}", 0, [0.6]) for i in range(7)]
    interval = made.record(*rows, workload=work(made))["goodput"]["slo_attainment"]
    assert (interval["low"], interval["high"]) == (near(0.862505), near(0.965681))


def test_users_who_left_are_out_of_the_attainment_but_not_of_attempted(made):
    rows = [made.row("a", 0, [0.4]), made.row("b", 0, outcome="cancelled", end=0.2)]
    goodput = made.record(*rows, workload=work(made))["goodput"]
    assert (goodput["slo_attainment"]["value"], goodput["slo_attainment"]["n"]) == (1, 1)
    assert goodput["slo_attainment_of_attempted"]["value"] == near(0.5)


def test_a_total_needs_an_objective_in_every_class(made):
    rows = [made.row("a", 0, [0.4]), made.row("b", 0, [0.4], **{"class": "batch"})]
    record = made.record(*rows, workload=work(made))
    assert record["goodput"]["slo_attainment"]["value"] is None
    assert record["goodput"]["slo_attainment"]["reason"] == "no objective for class batch"
    assert record["classes"]["default"]["goodput"]["slo_attainment"]["value"] == 1


def test_one_token_is_under_no_tpot_target(made):
    rows = [made.row("a", 0, [0.4]), made.row("b", 0, [0.4, 0.9])]
    record = made.record(*rows, workload=work(made, default={"tpot_s": 0.1}))
    # a: one token, the target does not apply; b: 0.5 s per token misses.
    assert record["goodput"]["slo_attainment"]["value"] == near(0.5)
    assert any("1 answers of one token" in note for note in record["notes"])


def test_a_target_nobody_could_observe_gives_no_attainment(made):
    rows = [made.row("a", 0, end=0.4, n=5)]
    estimate = made.record(*rows, workload=work(made))["goodput"]["slo_attainment"]
    assert estimate["value"] is None
    assert "not observable for 1" in estimate["reason"]
    # Missing another target decides whatever is unknown.
    late = work(made, default={"ttft_s": 0.5, "e2e_s": 0.3})
    assert made.record(*rows, workload=late)["goodput"]["slo_attainment"]["value"] == 0


def test_an_itl_target_holds_the_gap_of_95_percent_of_the_tokens(made):
    # 20 gaps: rank ceil(0.95 * 20) = 19 of them must be within 0.1 s.
    one_slow = made.row("a", 0, [0.1 + 0.05 * i for i in range(20)] + [3.0])
    two_slow = made.row("b", 0, [0.1 + 0.05 * i for i in range(19)] + [2.0, 4.0])
    rates = [
        made.record(row, workload=work(made, default={"itl_s": 0.1}))["goodput"]["slo_attainment"]
        for row in (one_slow, two_slow)
    ]
    assert [r["value"] for r in rates] == [1, 0]


def test_an_itl_target_weighs_chunks_by_their_tokens(made):
    # The gap of 1 s holds 10 tokens: 0.1 s each, within; as one gap it would miss.
    row = made.row("a", 0, [0.1, 1.1], per_chunk=[1, 10])
    rate = made.record(row, workload=work(made, default={"itl_s": 0.11}))
    assert rate["goodput"]["slo_attainment"]["value"] == 1


def test_throughput_counts_departures_in_the_window_whenever_they_arrived(made):
    rows = [
        made.row("w", 0, [1.5, 2.5], in_window=False),
        made.row("a", 3, [3.5]),
        made.row("b", 11, [11.5, 12.5]),
        made.row("f", 4, outcome="failed", end=4.5),
    ]
    record = made.record(*rows, run=made.run((2.0, 12.0)))
    # Departures in [2, 12]: w, a, f; b leaves at 12.5. 10 s of window.
    assert record["goodput"]["attempted_per_s"] == near(0.3)
    assert record["goodput"]["completed_per_s"] == near(0.2)
    # w has 2 tokens, a 1.
    assert record["goodput"]["output_tokens_per_s"] == near(0.3)


def test_accepted_needs_completion_objective_rubric_and_no_violation(made):
    ids = ["ok", "late", "bad", "severe", "authority", "unjudged", "failed"]
    rows = [made.row(i, 0, [0.6 if i == "late" else 0.4]) for i in ids[:-1]]
    rows.append(made.row("failed", 0, outcome="failed", end=0.1))
    said = judged(
        ok=True, late=True, bad=False,
        severe=Verdict(rubric_passed=True, severe_failure=True),
        authority=Verdict(rubric_passed=True, authority_violation=True),
    )  # fmt: skip
    record = made.record(*rows, workload=work(made, RUBRIC), judgments=said)
    counts, goodput = record["counts"], record["goodput"]
    assert (counts["accepted"], counts["unjudged"], counts["workflows"]) == (1, 1, 7)
    assert (counts["severe_failures"], counts["authority_violations"]) == (1, 1)
    assert goodput["accepted_fraction"]["value"] == near(1 / 7)
    # Per second of the 10 s window, limits those of the fraction times 0.7/s.
    assert goodput["accepted_per_s"]["value"] == near(0.1)
    assert goodput["accepted_per_s"]["low"] == near(goodput["accepted_fraction"]["low"] * 0.7)


@pytest.mark.parametrize(
    ("rubric", "said", "objective", "reason"),
    [
        (None, None, TARGET, "the workload has no rubric"),
        (RUBRIC, Judgments({}, [], reason="no judgment set"), TARGET, "no judgment set"),
        (RUBRIC, judged(b=True), TARGET, "no completion is judged"),
        (RUBRIC, judged(a=True), None, "no objective for class default"),
    ],
)
def test_accepted_is_absent_with_its_reason_where_it_is_not_defined(
    made, rubric, said, objective, reason
):
    record = made.record(
        made.row("a", 0, [0.4]), workload=work(made, rubric, default=objective), judgments=said
    )
    assert record["counts"]["accepted"] is None
    assert record["counts"]["reasons"]["accepted"] == reason
    assert record["goodput"]["accepted_per_s"]["reason"] == reason


def test_nothing_completed_is_nothing_accepted_and_that_is_a_fact(made):
    none = Judgments({}, [], reason="no judgment set")
    record = made.record(
        made.row("a", 0, outcome="failed", end=1.0), workload=work(made, RUBRIC), judgments=none
    )
    assert (record["counts"]["accepted"], record["counts"]["unjudged"]) == (0, 0)


def test_requests_of_one_workflow_count_once_by_the_whole_of_them(made):
    rows = [
        made.row("a1", 0, [0.4], workflow_id="a"),
        made.row("a2", 2, [2.9], workflow_id="a"),  # late: 0.9 > 0.5
        made.row("b1", 0, [0.4], workflow_id="b"),
        made.row("b2", 2, outcome="failed", end=2.5, workflow_id="b"),
        made.row("c1", 0, [0.4], workflow_id="c"),
        made.row("c2", 2, [2.4], workflow_id="c"),
    ]
    record = made.record(
        *rows, workload=work(made, RUBRIC), judgments=judged(a=True, b=True, c=True)
    )
    assert record["counts"]["attempted"] == 6
    assert (record["counts"]["workflows"], record["counts"]["accepted"]) == (3, 1)


def test_attempts_per_request_show_as_amplification_not_as_work(made):
    again = {"request_id": "a", "attempt": 1, "sent_s": 0.0, "end_s": 0.1, "outcome": "failed"}
    record = made.record(
        made.row("a", 0, [0.4], attempts=2, attempt={"attempt": 2}),
        made.row("b", 0, [0.4]),
        more_attempts=[again],
    )
    assert record["goodput"]["amplification"] == near(1.5)
    assert (record["counts"]["attempts"], record["counts"]["retries"]) == (3, 1)
    assert record["counts"]["attempted"] == 2


def test_jain_is_that_of_the_vectors_and_fairness_shows_the_minimum(made):
    # METHODS 7.
    assert jain([1, 2, 3]) == near(0.857143)
    assert jain([1, 1, 1]) == 1
    assert jain([1, 0, 0]) == near(1 / 3)
    assert jain([0, 0]) is None
    assert jain([0.95, 0.92, 0.40]) == near(0.899803)
    rows = [made.row(f"a{i}", 0, [0.4], **{"class": "a"}) for i in range(4)]
    rows += [made.row(f"b{i}", 0, [0.4 if i else 0.9], **{"class": "b"}) for i in range(2)]
    fairness = made.record(*rows, workload=work(made, a=TARGET, b=TARGET))["fairness"]
    # a: 4/4, b: 1/2. Jain of 1 and .5: 2.25 / (2 * 1.25) = .9
    assert (fairness["min_class_attainment"], fairness["max_class_attainment"]) == (0.5, 1)
    assert fairness["jain"] == near(0.9)
