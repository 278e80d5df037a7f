"""The worked example's trace has real arrivals and cases made by rules anyone can repeat."""

from __future__ import annotations

import csv
import hashlib
import math
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from records.errors import BadInput
from records.evidence.workload import read_workload
from records.traces.describe import describe
from records.traces.reading import parse_trace, trace_bytes
from records.traces.sup_sum_01 import (
    ARRIVALS_PATH,
    BACKGROUND_ABOVE_TOKENS,
    FOLDER,
    WORKLOAD_PATH,
    build_trace,
)
from records.traces.tickets import case_prompt

SAMPLE = Path(__file__).parents[2] / "samples" / "azure2023" / "conv_first_600s.csv"


def cut_rows() -> list[dict[str, str]]:
    with ARRIVALS_PATH.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_cut_is_the_attributed_one():
    """The bytes are those whose hash ATTRIBUTION.md states, and the samples' own."""
    data = ARRIVALS_PATH.read_bytes()
    assert data == SAMPLE.read_bytes()
    text = (FOLDER / "ATTRIBUTION.md").read_text()
    assert hashlib.sha256(data).hexdigest() in text
    assert "CC-BY-4.0" in text


def test_the_class_limit_is_the_75th_percentile_of_the_cut():
    """The number in the rule is computed, not chosen."""
    generated = [int(row["GeneratedTokens"]) for row in cut_rows()]
    assert np.percentile(generated, 75) == BACKGROUND_ABOVE_TOKENS


def test_each_request_follows_from_its_row_alone():
    """Arrival, class, limits and length repeat the stated rules, without our importer."""
    rows = cut_rows()
    stamps = [datetime.fromisoformat(row["TIMESTAMP"][:26]) for row in rows]
    trace = build_trace(20, start_s=100)
    for request in trace.requests:
        number = int(request.case.removeprefix("C"))
        row = rows[number - 1]
        offset = (stamps[number - 1] - stamps[0]).total_seconds()
        assert request.at_s == pytest.approx(offset - 100, abs=1e-6)
        generated = int(row["GeneratedTokens"])
        assert request.service_class == ("background" if generated > 405 else "interactive")
        asked = min(120, max(30, generated))
        assert re.findall(r"at most (\d+) words", request.prompt) == [str(asked)]
        assert request.max_output_tokens == math.ceil(1.5 * asked)
        length = min(1200, max(80, int(row["ContextTokens"])))
        assert len(request.prompt.split()) == length
    inside = [s for s in stamps if 100 <= (s - stamps[0]).total_seconds() < 120]
    assert len(trace.requests) == len(inside)


def test_evidence_lines_are_numbered_from_e1():
    """Every line between the frame begins with the next id and says something."""
    for request in build_trace(10).requests:
        lines = request.prompt.split("\n")
        assert lines[1] == "Evidence:"
        for number, line in enumerate(lines[2:-1], start=1):
            assert re.fullmatch(rf"\[E{number}\] \S+ \S.*", line)
        assert len(lines) >= 5


def test_prompts_share_no_long_beginning():
    """The case number stands third, so a prefix cache finds nothing by accident."""
    starts = [tuple(r.prompt.split()[:3]) for r in build_trace(60).requests]
    assert len(set(starts)) == len(starts)


def test_the_same_arguments_give_the_same_trace():
    """Case texts hang on the seed; demand does not."""
    one, again, other = build_trace(5), build_trace(5), build_trace(5, seed=2)
    assert one.trace_hash == again.trace_hash != other.trace_hash
    assert one.demand_hash == other.demand_hash
    assert build_trace(5, start_s=200).demand_hash != one.demand_hash


def test_twice_the_rate_is_twice_the_stretch_in_the_same_time():
    """Scaling divides gaps: the requests of 20 s arrive within 10 s, in the same mix."""
    plain, scaled = build_trace(20), build_trace(10, rate_scale=2)
    assert [r.id for r in scaled.requests] == [r.id for r in plain.requests]
    assert [r.at_s for r in scaled.requests] == pytest.approx([r.at_s / 2 for r in plain.requests])
    assert scaled.header["changes"][-1] == "every arrival is divided by 2"


def test_the_trace_replays_and_tells_its_origin():
    """It passes the checks of any trace; the header attributes and lists the rules."""
    trace = build_trace(10)
    assert parse_trace(trace_bytes(trace.header, trace.requests), "t").requests == trace.requests
    assert "CC-BY-4.0" in trace.header["attribution"]
    assert {"class", "summary_words", "max_output_tokens", "prompt_words"} == set(
        trace.header["rules"]
    )
    assert set(describe(trace)["classes"]) == {"interactive", "background"}


@pytest.mark.parametrize(
    ("window_s", "kwargs"), [(601, {}), (400, {"rate_scale": 2}), (9, {"rate_scale": 0})]
)
def test_a_window_beyond_the_cut_is_refused(window_s, kwargs):
    """Ten minutes are shipped; arrivals are never invented."""
    with pytest.raises(BadInput, match=r"window|rate_scale"):
        build_trace(window_s, **kwargs)


def test_the_workload_fits_the_trace():
    """Both classes and a rubric of two automatic checks; objectives come from calibration."""
    workload = read_workload(WORKLOAD_PATH)
    shares = describe(build_trace(500))["classes"]
    assert set(workload["classes"]) == set(shares)
    for name, part in workload["classes"].items():
        assert part["share"] == pytest.approx(shares[name]["share"], abs=0.03)
        assert "objective" not in part
    checks = {c["id"]: c for c in workload["rubric"]["criteria"]}
    pattern = checks["length"]["params"]["max_words_from_prompt"]
    assert all(re.search(pattern, r.prompt) for r in build_trace(5).requests)
    assert checks["citations"]["params"] == {"min": 1}


def test_a_case_too_short_for_its_frame_is_refused():
    """80 words hold the frame and evidence; fewer would be cut in silence."""
    assert len(case_prompt("C1", 80, 30, "s").split()) == 80
    with pytest.raises(ValueError, match="80 words"):
        case_prompt("C1", 79, 30, "s")
