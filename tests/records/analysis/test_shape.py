"""A record from elsewhere is taken only in the shape that lists and pages read."""

from __future__ import annotations

import copy

import pytest

from records.analysis.record import analyze_folder
from records.analysis.shape import check_shape
from records.errors import BadEvidence
from tests import factories


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return analyze_folder(factories.sample_folder(tmp_path_factory.mktemp("shape")))


def changed(record, path, value):
    out = copy.deepcopy(record)
    *inner, last = path.split(".")
    at = out
    for key in inner:
        at = at[key]
    at[last] = value
    return out


def test_our_own_records_have_it(ours):
    check_shape(ours, "record.json")


@pytest.mark.parametrize("key", ["latency.ttft_s", "stability", "classes", "notes", "cost"])
def test_what_is_not_known_may_be_null(ours, key):
    check_shape(changed(ours, key, None), "record.json")


def test_keys_of_other_versions_are_left_alone(ours):
    check_shape(changed(ours, "latency.of_the_future", [1, "x"]), "record.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("latency", "fast"),
        ("latency.ttft_s", 0.5),
        ("latency.ttft_s.p95", 0.5),
        ("latency.ttft_s.p95.value", {}),
        ("latency.ttft_s.p95.supported", "yes"),
        ("latency.ttft_s.grade", "guessed"),
        ("latency.ttft_s.n", 1e300),
        ("goodput.accepted_per_s", 1.0),
        ("goodput.accepted_per_s.low", "x"),
        ("goodput.attempted_per_s", 10**40),
        ("goodput.attempted_per_s", float("inf")),
        ("counts", None),
        ("counts.completed", None),
        ("counts.completed", 2**31),
        ("counts.completed", True),
        ("counts.reasons", {"accepted": 1}),
        ("invalid_reasons", {"code": "x"}),
        ("invalid_reasons", [{"code": "x"}]),
        ("invalid_reasons", [None]),
        ("notes", [{}]),
        ("valid", None),
        ("valid", 1),
        ("run.policies", [1]),
        ("phases.decode.share", "much"),
        ("phases.dominant.tail", "decode"),
        ("stability.bursts", [1]),
        ("classes", [1]),
        ("classes.interactive", {}),
        ("classes.interactive.latency.e2e_s", []),
    ],
)
def test_what_no_page_can_show_is_refused_by_name(ours, path, value):
    with pytest.raises(BadEvidence) as refused:
        check_shape(changed(ours, path, value), "record.json")
    assert refused.value.field.startswith(path)
