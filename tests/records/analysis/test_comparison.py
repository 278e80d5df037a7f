"""Runs compare only when the same was asked of them; the verdict follows from the gates."""

from __future__ import annotations

import copy
import itertools
import json

import pytest

from records.analysis.comparison import compare
from records.analysis.comparison_text import comparison_text
from records.analysis.gates import GATES
from records.analysis.gates.base import at_least, at_most, improvement
from records.analysis.gates.verdict import verdict
from records.errors import BadInput
from records.evidence.judgments import Judgments, Verdict

near = pytest.approx
_place = itertools.count()
NOISE = (-0.001, 0.0, 0.001)


@pytest.fixture
def base(made):
    """A valid record of one class, with everything judged."""
    rows = [made.row(f"q{i}", i / 10, [i / 10 + 0.2, i / 10 + 0.5]) for i in range(20)]
    work = made.workload(
        classes={"default": {"objective": {"ttft_s": 0.5}}},
        rubric={"criteria": [{"id": "a", "check": "human"}]},
    )
    said = Judgments({f"q{i}": Verdict(rubric_passed=True) for i in range(20)}, [])
    return made.record(*rows, workload=work, judgments=said)


def within(value, half=0.0001):
    """A figure whose run is as good as certain of it."""
    return {"value": value, "low": value - half, "high": value + half}


def like(base, accepted=1.0, e2e_p95=1.0, lowest=0.95, configuration="new", **run):
    """A record as `base`, with other figures."""
    record = copy.deepcopy(base)
    for block in (record, record["classes"]["default"]):
        block["goodput"]["accepted_per_s"] |= within(accepted)
        block["latency"]["e2e_s"]["p95"] |= within(e2e_p95)
        block["goodput"]["slo_attainment"] |= within(lowest)
    record["fairness"]["min_class_attainment"] = lowest
    record["run"] |= {
        "configuration": {"model": "m", "runtime": {"name": "x", "version": configuration}},
        "configuration_fingerprint": configuration,
        "evidence_location": f"sha256:{next(_place)}",
    }
    record["run"] |= run
    return record


def side(base, n=3, configuration="new", spread=1.0, **figures):
    """Replicates whose figures spread by about a thousandth, times `spread`."""
    return [
        like(
            base,
            configuration=configuration,
            **{k: v * (1 + spread * NOISE[i % 3]) for k, v in figures.items()},
        )
        for i in range(n)
    ]


def compared(base, n=3, spread=1.0, old_figures=None, **figures):
    old = side(base, n, "old", spread, **(old_figures or {}))
    document = compare(candidates=side(base, n, "new", spread, **figures), baselines=old)
    json.dumps(document, allow_nan=False)
    return document


def result(document, gate):
    return [g["result"] for g in document["gates"] if g["name"] == gate]


FIGURES = {"accepted": 1.0, "e2e_p95": 1.0, "lowest": 0.95}
BETTER = FIGURES | {"accepted": 1.1}


def test_what_no_gate_judges_yet_keeps_the_verdict_open(base):
    """Every figure passes, and still nothing is adopted: severe failures stand unjudged."""
    document = compared(base, old_figures=FIGURES, **BETTER)
    assert {g["result"] for g in document["gates"] if g["name"] != "completeness"} == {"pass"}
    assert (document["verdict"], document["refused"]) == ("not_enough_evidence", False)
    assert "severe failures" in document["not_judged"]


def test_all_gates_passed_is_adopt(base, monkeypatch):
    """With nothing left unjudged, passing every gate is adopt."""
    monkeypatch.setattr("records.analysis.gates.completeness.NOT_JUDGED", ())
    document = compared(base, old_figures=FIGURES, **BETTER)
    assert {g["result"] for g in document["gates"]} == {"pass"}
    assert (document["verdict"], document["refused"]) == ("adopt", False)


def test_replicates_that_agree_are_no_more_certain_than_their_runs(base):
    """Equal replicates: the interval is as wide as the requests within the runs say."""
    # Each run: 1.0 and 1.2 with limits 0.196 apart each way, so a standard error of
    # 0.1; a mean of two has 0.1 / sqrt(2), their difference 0.1; Welch with one degree
    # a side of equal parts has 2 degrees: half = t(2, .975) * 0.1 = 4.302653 * 0.1
    wide = {"low": 1.0 - 0.1959964, "high": 1.0 + 0.1959964}
    old, new = [like(base, configuration="old") for _ in "ab"], [like(base) for _ in "ab"]
    for record in old + new:
        record["goodput"]["accepted_per_s"] |= wide
    for record in new:
        record["goodput"]["accepted_per_s"]["value"] = 1.2
    found = compare(candidates=new, baselines=old)["differences"][0]
    assert (found["metric"], found["class"]) == ("accepted_per_s", None)
    assert (found["difference"], found["low"]) == (near(0.2), near(0.2 - 0.4302653))


def test_no_spread_at_all_gives_no_interval(base):
    """Equal replicates whose runs tell no spread either: no limits, and the reason."""
    runs = [like(base, configuration=c) for c in ("old", "old", "new", "new")]
    for record in runs:
        record["latency"]["e2e_s"]["p50"] |= {"value": 1.0, "low": None, "high": None}
    document = compare(candidates=runs[2:], baselines=runs[:2])
    (found,) = (d for d in document["differences"] if d["metric"] == "e2e_p50" and not d["class"])
    assert (found["difference"], found["low"], found["high"]) == (0, None, None)
    assert "spread" in found["reason"]


@pytest.mark.parametrize(
    ("accepted", "spread", "expected"),
    [(1.10, 1, "pass"), (1.00, 1, "fail"), (1.02, 20, "not_enough_evidence")],
)
def test_accepted_goodput_must_clear_its_margin_whole(base, accepted, spread, expected):
    document = compared(base, spread=spread, old_figures={"accepted": 1.0}, accepted=accepted)
    assert result(document, "accepted_goodput_improves") == [expected]


@pytest.mark.parametrize(
    ("p95", "spread", "expected"),
    [(1.05, 1, "pass"), (1.20, 1, "fail"), (1.10, 20, "not_enough_evidence")],
)
def test_the_tail_of_each_class_is_guarded(base, p95, spread, expected):
    document = compared(base, spread=spread, old_figures={"e2e_p95": 1.0}, e2e_p95=p95)
    assert result(document, "tail_latency") == [expected]
    assert [g["class"] for g in document["gates"] if g["name"] == "tail_latency"] == ["default"]


@pytest.mark.parametrize(
    ("lowest", "spread", "expected"),
    [(0.95, 1, "pass"), (0.90, 1, "fail"), (0.94, 20, "not_enough_evidence")],
)
def test_the_lowest_class_is_guarded_in_points(base, lowest, spread, expected):
    document = compared(base, spread=spread, old_figures={"lowest": 0.95}, lowest=lowest)
    assert result(document, "lowest_class_attainment") == [expected]


@pytest.mark.parametrize(("n", "expected"), [(3, "pass"), (2, "not_enough_evidence")])
def test_two_replicates_a_side_are_not_enough(base, n, expected):
    document = compared(base, n=n, old_figures=FIGURES, **BETTER)
    assert result(document, "replicates") == [expected]
    assert document["verdict"] == "not_enough_evidence"


def test_one_replicate_a_side_has_differences_without_intervals(base):
    document = compared(base, n=1, old_figures=FIGURES, **BETTER)
    (found,) = (
        d for d in document["differences"] if d["metric"] == "accepted_per_s" and not d["class"]
    )
    assert found["baseline"] == {"value": near(0.999), "n_replicates": 1}
    assert found["relative"] == near(0.1)
    assert (found["low"], found["relative_high"]) == (None, None)
    assert "2 replicates" in found["reason"]
    assert "2 replicates" in next(
        g["reason"] for g in document["gates"] if g["name"] == "accepted_goodput_improves"
    )


def test_differences_are_welch_over_replicates(base):
    # Variance 0.0001 a side, three replicates each, so 4 degrees of freedom:
    # half = t(4, .975) * sqrt(2 * 0.0001 / 3) = 2.776445 * 0.00816497 = 0.022669
    old = [like(base, accepted=a, configuration="old") for a in (0.99, 1.0, 1.01)]
    new = [like(base, accepted=a) for a in (1.19, 1.2, 1.21)]
    document = compare(candidates=new, baselines=old)
    found = document["differences"][0]
    assert (found["metric"], found["class"], found["better"]) == ("accepted_per_s", None, "higher")
    assert found["difference"] == near(0.2)
    assert (found["low"], found["high"]) == (near(0.177331, abs=1e-6), near(0.222669, abs=1e-6))


@pytest.mark.parametrize(
    ("change", "item"),
    [
        ({"demand_hash": "other"}, "demand_hash"),
        ({"prompt_hash": "other"}, "prompt_hash"),
        ({"objectives_hash": "other"}, "objectives_hash"),
        ({"rubric_hash": "other"}, "rubric_hash"),
        ({"evidence_packet_hash": "other"}, "evidence_packet_hash"),
        ({"case_set_hash": "other"}, "case_set_hash"),
        ({"declared_window": {"start_s": 0, "end_s": 99}}, "window"),
        ({"cache_state": "cold"}, "cache_state"),
        ({"simulated": False}, "simulated"),
        ({"configuration_fingerprint": "third"}, "candidate_configuration"),
    ],
)
def test_what_differs_is_listed_and_the_verdict_refused(base, change, item):
    new, old = side(base, **BETTER), side(base, configuration="old", **FIGURES)
    new[0]["run"] |= change
    document = compare(candidates=new, baselines=old)
    bad = [i["item"] for i in document["comparability"] if i["required"] and not i["same"]]
    assert bad == [item]
    assert (document["verdict"], document["refused"]) == ("not_enough_evidence", True)
    assert document["rerun"]
    assert "pass" not in {
        g["result"] for g in document["gates"] if g["name"] not in ("validity", "replicates")
    }
    assert result(document, "comparability") == ["not_enough_evidence"]
    assert comparison_text(document).splitlines()[1] == "refused: the runs are not comparable"


def test_a_refused_comparison_does_not_fail_a_gate_either(base):
    new, old = side(base, accepted=0.5), side(base, configuration="old", accepted=1.0)
    new[0]["run"]["cache_state"] = "cold"
    document = compare(candidates=new, baselines=old)
    assert document["verdict"] == "not_enough_evidence"


def test_demand_that_nobody_knows_is_not_the_same_demand(base):
    new, old = side(base, **BETTER), side(base, configuration="old", **FIGURES)
    for record in new + old:
        record["run"]["demand_hash"] = None
    document = compare(candidates=new, baselines=old)
    (item,) = (i for i in document["comparability"] if i["item"] == "demand_hash")
    assert item["same"] is None
    assert document["refused"]


def test_prompts_may_differ_only_where_they_are_the_intervention(base):
    new, old = side(base, **BETTER), side(base, configuration="old", **FIGURES)
    for record in new:
        record["run"]["prompt_hash"] = "shorter"
    assert compare(candidates=new, baselines=old)["refused"]
    assert not compare(candidates=new, baselines=old, intervention="context")["refused"]
    assert compare(candidates=new, baselines=old, intervention="batching")["refused"]


def test_an_invalid_run_decides_nothing(base):
    new, old = side(base, **BETTER), side(base, configuration="old", **FIGURES)
    new[1]["valid"] = False
    new[1]["invalid_reasons"] = [{"code": "generator_behind", "text": "", "figure": ""}]
    document = compare(candidates=new, baselines=old)
    assert document["refused"]
    assert result(document, "validity") == ["not_enough_evidence"]
    assert any("generator_behind" in (g["reason"] or "") for g in document["gates"])


def test_a_figure_that_one_run_lacks_is_not_averaged_over_the_others(base):
    new, old = side(base, **BETTER), side(base, configuration="old", **FIGURES)
    new[2]["goodput"]["accepted_per_s"] |= {"value": None, "reason": "no completion is judged"}
    document = compare(candidates=new, baselines=old)
    found = document["differences"][0]
    assert (found["candidate"]["value"], found["reason"]) == (None, "no completion is judged")
    assert result(document, "accepted_goodput_improves") == ["not_enough_evidence"]


def test_a_class_that_one_side_lacks_leaves_its_guard_open(base):
    new, old = side(base, **BETTER), side(base, configuration="old", **FIGURES)
    for record in old:
        record["classes"]["batch"] = copy.deepcopy(record["classes"]["default"])
    document = compare(candidates=new, baselines=old)
    tails = {g["class"]: g for g in document["gates"] if g["name"] == "tail_latency"}
    assert tails["batch"]["result"] == "not_enough_evidence"
    assert "no requests of class batch" in tails["batch"]["reason"]


def test_nothing_accepted_on_a_side_is_undecided_not_an_error(base):
    document = compared(base, old_figures={"accepted": 0.0}, accepted=1.0)
    (gate,) = (g for g in document["gates"] if g["name"] == "accepted_goodput_improves")
    assert gate["result"] == "not_enough_evidence"
    assert "mean of a side is 0" in gate["reason"]


def test_the_configuration_diff_goes_into_nested_fields(base):
    document = compared(base)
    assert document["configuration_diff"] == [
        {"field": "runtime.version", "baseline": "old", "candidate": "new"}
    ]
    assert document["changed_fields"] == 1


def test_one_run_cannot_stand_for_two(base):
    (run,) = side(base, n=1)
    with pytest.raises(BadInput, match="stands twice"):
        compare(candidates=[run], baselines=[run])
    with pytest.raises(BadInput, match="at least one"):
        compare(candidates=[run], baselines=[])


def test_the_text_shows_bad_news_first(base):
    document = compared(base, old_figures=FIGURES, **(FIGURES | {"e2e_p95": 1.5}))
    lines = comparison_text(document).splitlines()
    assert lines[0] == "DO NOT ADOPT"
    gates = lines[lines.index("gates") + 1 :]
    words = [line.split()[0] for line in gates[: len(document["gates"])]]
    assert words == sorted(words, key=["FAIL", "OPEN", "pass"].index)
    assert "E2E p95" in gates[0] or "Accepted" in gates[0]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (["pass", "pass"], "adopt"),
        (["pass", "not_enough_evidence"], "not_enough_evidence"),
        (["not_enough_evidence", "fail"], "do_not_adopt"),
        ([], "not_enough_evidence"),
    ],
)
def test_one_failed_gate_decides_then_one_open_one(results, expected):
    assert verdict(results) == expected


def test_an_interval_that_touches_its_limit_is_inside():
    assert improvement(0.02, 0.05, 0.02) == "pass"
    assert improvement(0.01, 0.02, 0.02) == "not_enough_evidence"
    assert at_most(0.0, 0.1, 0.1) == "pass"
    assert at_most(0.1, 0.2, 0.1) == "not_enough_evidence"
    assert at_least(-0.01, 0.0, -0.01) == "pass"
    assert at_least(-0.02, -0.01, -0.01) == "not_enough_evidence"
    for decide in (improvement, at_most, at_least):
        assert decide(None, None, 0.1) == "not_enough_evidence"


def test_every_gate_stands_in_the_document_once_per_class(base):
    document = compared(base)
    assert [g["name"] for g in document["gates"]] == list(GATES)
