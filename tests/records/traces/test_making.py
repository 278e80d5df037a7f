"""Made traces are reproducible and keep the rate, the shape and the mix they were asked for."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from records.errors import BadInput, FieldError
from records.traces.cutting import cut_window
from records.traces.describe import describe
from records.traces.making import make_trace
from records.traces.processes import PROCESSES, Shape, arrivals
from records.traces.reading import parse_trace, trace_bytes, write_trace
from records.traces.spec import read_spec

SPEC = {
    "name": "two classes",
    "seed": 5,
    "arrivals": {"process": "gamma", "rate_per_s": 5.0, "cv": 2.0, "duration_s": 60},
    "classes": {
        "interactive": {
            "share": 3,
            "prompt_tokens": {"distribution": "lognormal", "median": 400, "sigma": 0.7, "max": 900},
            "output_tokens": {"distribution": "uniform", "min": 10, "max": 19},
            "timeout_s": 30,
        },
        "background": {"share": 1, "prompt_tokens": 64, "output_tokens": 32},
    },
}


def changed(**parts: object) -> dict:
    return {**SPEC, **parts}


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def test_the_same_specification_gives_the_same_bytes():
    """A trace is made twice alike, and another seed makes another."""
    first, again = make_trace(SPEC, "s"), make_trace(json.loads(json.dumps(SPEC)), "s")
    assert trace_bytes(first.header, first.requests) == trace_bytes(again.header, again.requests)
    assert make_trace(changed(seed=6), "s").trace_hash != first.trace_hash


def test_these_bytes_do_not_move_between_versions_and_platforms():
    """The hash of a made trace is pinned: published traces can be made again."""
    assert make_trace(SPEC, "s").trace_hash[:16] == "3770a6acda678d6e"


def test_a_made_trace_is_a_valid_trace():
    """It reads back under the same checks as any other."""
    trace = make_trace(SPEC, "s")
    assert parse_trace(trace_bytes(trace.header, trace.requests), "t").requests == trace.requests


def test_changing_a_length_leaves_arrivals_and_classes_alone():
    """Each purpose draws from its own stream."""
    other = json.loads(json.dumps(SPEC))
    other["classes"]["background"]["output_tokens"] = 99
    a, b = make_trace(SPEC, "s").requests, make_trace(other, "s").requests
    assert [(r.at_s, r.service_class, r.prompt_tokens) for r in a] == [
        (r.at_s, r.service_class, r.prompt_tokens) for r in b
    ]


def test_constant_arrivals_by_hand():
    """4 a second for 1 s: .25, .5, .75 (1.0 is no longer before the end)."""
    got = arrivals("constant", Shape(rate_per_s=4), generator(), duration_s=1)
    assert got.tolist() == [0.25, 0.5, 0.75]
    assert arrivals("constant", Shape(rate_per_s=4), generator(), count=2).tolist() == [0.25, 0.5]


@pytest.mark.parametrize(("process", "cv"), [("poisson", 1.0), ("gamma", 0.5), ("gamma", 2.5)])
def test_gaps_follow_the_named_distribution(process: str, cv: float):
    """20000 gaps pass a Kolmogorov-Smirnov test against SciPy's gamma of that mean and cv."""
    # The gaps themselves: stamps are rounded to 1 us, and 4 % of gaps at cv 2.5 are shorter.
    draw, _ = PROCESSES[process]
    gaps = draw(Shape(rate_per_s=0.05, cv=cv), generator().random(20_000))
    shape = 1 / cv**2
    assert stats.kstest(gaps, stats.gamma(shape, scale=20.0 / shape).cdf).pvalue > 0.01
    assert gaps.mean() == pytest.approx(20.0, rel=4 * cv / 20_000**0.5)


def test_poisson_counts_vary_as_poisson():
    """Counts of 400 runs have variance over mean near 1: the rate is not rescaled away."""
    random = generator(3)
    counts = [
        len(arrivals("poisson", Shape(rate_per_s=10), random, duration_s=10)) for _ in range(400)
    ]
    # three standard errors of a variance ratio at 400 runs: 3 * sqrt(2/400) = .21
    assert np.mean(counts) == pytest.approx(100, abs=1.5)
    assert np.var(counts) / np.mean(counts) == pytest.approx(1.0, abs=0.21)


def test_shares_and_lengths_are_as_asked():
    """3 to 1 is 75 %; lengths keep their bounds and their median."""
    big = changed(arrivals={"process": "poisson", "rate_per_s": 10, "count": 8000})
    trace = make_trace(big, "s")
    figures = describe(trace)
    # three standard errors of a share at 8000: .0145
    assert figures["classes"]["interactive"]["share"] == pytest.approx(0.75, abs=0.0145)
    chosen = [r for r in trace.requests if r.service_class == "interactive"]
    assert {r.max_output_tokens for r in chosen} == set(range(10, 20))
    assert {r.timeout_s for r in chosen} == {30.0}
    prompts = [r.prompt_tokens for r in chosen]
    assert max(prompts) == 900
    assert np.median(prompts) == pytest.approx(400, rel=0.05)
    others = [r for r in trace.requests if r.service_class == "background"]
    assert {(r.prompt_tokens, r.max_output_tokens, r.timeout_s) for r in others} == {(64, 32, None)}


@pytest.mark.parametrize(
    ("spec", "field", "expected"),
    [
        ([], None, "a table"),
        ({"arrival": {}}, "arrival", "one of name, seed, arrivals, classes"),
        ({}, "arrivals", "a table"),
        (changed(arrivals={"process": "weibull"}), "arrivals.process", ", ".join(PROCESSES)),
        (changed(arrivals={"process": "poisson"}), "arrivals.rate_per_s", "above 0"),
        (
            changed(arrivals={"process": "poisson", "rate_per_s": 1, "cv": 2, "count": 3}),
            "arrivals.cv",
            "no such parameter",
        ),
        (
            changed(arrivals={"process": "gamma", "rate_per_s": 1, "count": 3}),
            "arrivals.cv",
            "above 0",
        ),
        (
            changed(arrivals={"process": "poisson", "rate_per_s": 1}),
            "arrivals",
            "one of count and duration_s",
        ),
        (
            changed(arrivals={"process": "poisson", "rate_per_s": 1e6, "duration_s": 1e6}),
            "arrivals.duration_s",
            "at most 5000000 requests",
        ),
        (
            changed(arrivals={"process": "poisson", "rate_per_s": 1, "count": 0}),
            "arrivals.count",
            "1 to 5000000 requests",
        ),
        (
            changed(arrivals={"process": "constant", "rate_per_s": 1, "duration_s": 0.5}),
            "arrivals",
            "none came",
        ),
        (changed(classes={"a": {"share": -1}}), "classes.a.share", "above 0"),
        (changed(classes={"a": {"share": 0}}), "classes", "more than 0"),
        (changed(classes={"a": {"tokens": 1}}), "classes.a.tokens", "one of share"),
        (changed(classes={"a": {"prompt_tokens": -1}}), "classes.a.prompt_tokens", "whole number"),
        (
            changed(classes={"a": {"output_tokens": {"distribution": "zipf"}}}),
            "classes.a.output_tokens.distribution",
            "one of fixed, uniform, lognormal",
        ),
        (
            changed(
                classes={"a": {"output_tokens": {"distribution": "uniform", "min": 5, "max": 2}}}
            ),
            "classes.a.output_tokens.min",
            "at most max",
        ),
    ],
)
def test_a_wrong_specification_names_its_field(spec, field, expected):
    """Every mistake is one line with the path of the field."""
    with pytest.raises(FieldError) as caught:
        make_trace(spec, "s.toml")
    assert caught.value.field == field
    assert str(caught.value).startswith("s.toml: ")
    assert expected in str(caught.value)


def test_specifications_are_toml_or_json(tmp_path):
    """Both forms give the same document; neither is refused with a reason."""
    (tmp_path / "s.json").write_text(json.dumps(SPEC))
    (tmp_path / "s.toml").write_text(
        '[arrivals]\nprocess = "constant"\nrate_per_s = 1\ncount = 3\n'
    )
    assert read_spec(tmp_path / "s.json") == SPEC
    trace = make_trace(read_spec(tmp_path / "s.toml"), "s.toml")
    assert [r.at_s for r in trace.requests] == [1.0, 2.0, 3.0]
    assert trace.requests[0].service_class == "default"
    (tmp_path / "bad.toml").write_text("= 1")
    with pytest.raises(FieldError, match="TOML"):
        read_spec(tmp_path / "bad.toml")
    with pytest.raises(FieldError, match="a readable"):
        read_spec(tmp_path / "gone.toml")


def test_arrivals_may_come_from_another_trace(tmp_path):
    """The window's stamps stay; classes and lengths are new only where they are given."""
    source = make_trace(changed(arrivals={"process": "constant", "rate_per_s": 1, "count": 9}), "s")
    write_trace(tmp_path / "src.jsonl", source.header, source.requests)
    asked = {"trace": "src.jsonl", "start_s": 3, "end_s": 6}
    spec = tmp_path / "s.toml"
    kept = make_trace({"arrivals": asked}, str(spec))
    assert [(r.id, r.at_s) for r in kept.requests] == [("3", 0.0), ("4", 1.0), ("5", 2.0)]
    assert [r.prompt_tokens for r in kept.requests] == [
        r.prompt_tokens for r in source.requests[2:5]
    ]
    new = make_trace({"arrivals": asked, "classes": {"x": {"prompt_tokens": 7}}}, str(spec))
    assert {(r.service_class, r.prompt_tokens) for r in new.requests} == {("x", 7)}
    assert new.header["cuts"][0]["parent_trace_hash"] == source.trace_hash


def test_a_cut_starts_at_0_and_keeps_its_lineage():
    """From 2 s on and before 4 s: the arrival at 4 s is out, the first is at 0.5 s."""
    lines = [{"at_s": at_s, "prompt": "a"} for at_s in (0, 2.5, 3.9, 4.0)]
    trace = parse_trace("\n".join(map(json.dumps, lines)).encode(), "t")
    cut = cut_window(trace, 2, 4)
    assert [(r.id, r.at_s) for r in cut.requests] == [("2", 0.5), ("3", 1.9)]
    assert cut.header["cuts"] == [{"start_s": 2, "end_s": 4, "parent_trace_hash": trace.trace_hash}]
    assert cut_window(cut, 1, 2).header["cuts"][1]["parent_trace_hash"] == cut.trace_hash


@pytest.mark.parametrize(
    "window", [(4, 2), (-1, 2), (0, float("inf")), (float("nan"), 2), (50, 60)]
)
def test_a_window_without_requests_is_refused(window):
    """Backwards, negative, endless and empty windows say what was wrong."""
    trace = parse_trace(b'{"at_s": 0, "prompt": "a"}', "t")
    with pytest.raises(BadInput, match=r"^window: "):
        cut_window(trace, *window)


def test_a_session_that_began_before_the_window_is_named():
    """Its later turns are in, its first is not; the header says so."""
    lines = [{"at_s": at_s, "prompt": "a", "session": "s"} for at_s in (0, 5)]
    trace = parse_trace("\n".join(map(json.dumps, lines)).encode(), "t")
    assert (
        cut_window(trace, 4, 6)
        .header["changes"][0]
        .startswith("sessions that began before the window: 1")
    )
    assert cut_window(trace, 0, 6).header["changes"] == []
