"""Campaigns queue everything or nothing, in a drawn order; comparisons fill when all is known."""

from __future__ import annotations

import pytest

from records.errors import BadInput, FieldError, NotPermitted
from records.models import Campaign, Comparison, Run
from records.services import campaign, comparison, evidence, record
from tests import factories


def _launched(project, endpoints, replicates=2, seed=1, **fields) -> Campaign:
    given = {
        "user": factories.owner_of(project), "workload": factories.make_workload(project),
        "trace": factories.make_trace(project), "policies": {"window_s": 5.0}, "title": "Static?",
    }  # fmt: skip
    return campaign.campaign_launch(
        project=project, endpoints=endpoints, replicates=replicates, seed=seed, **given | fields
    )


def _endpoints(project, count=2):
    return [
        factories.make_endpoint(
            project, name=f"e{i}", configuration=factories.make_configuration(project, kernels=i)
        )
        for i in range(count)
    ]


def test_a_campaign_queues_each_replicate_on_each_endpoint(project):
    """3 endpoints, 2 replicates: 6 queued runs and 2 comparisons with the first endpoint."""
    endpoints = _endpoints(project, 3)
    made = _launched(project, endpoints)
    runs = list(made.runs.order_by("number"))
    assert {(r.endpoint_id, r.replicate) for r in runs} == {
        (e.pk, n) for e in endpoints for n in (1, 2)
    }
    assert {r.state for r in runs} == {"queued"}
    assert all(r.configuration_id == r.endpoint.configuration_id for r in runs)
    assert [r.replicate for r in runs] == [1, 1, 1, 2, 2, 2]
    found = Comparison.objects.order_by("number")
    assert [c.title for c in found] == ["e1 against e0", "e2 against e0"]
    for one, other in zip(found, endpoints[1:], strict=True):
        assert {r.endpoint for r in one.baselines.all()} == {endpoints[0]}
        assert {r.endpoint for r in one.candidates.all()} == {other}
        assert (one.document, one.verdict) == (None, "")


def test_the_order_is_drawn_from_the_seed(project):
    """The same seed gives the same order; among many seeds both orders of a pair occur."""
    pair = _endpoints(project)

    def order(seed: int) -> tuple[str, ...]:
        made = _launched(project, pair, seed=seed)
        return tuple(r.endpoint.name for r in made.runs.order_by("number"))

    assert order(3) == order(3)
    assert {order(seed)[0] for seed in range(8)} == {"e0", "e1"}


def test_a_campaign_that_cannot_be_whole_leaves_nothing(project):
    """The second endpoint allows too little: no run, no campaign, no number used."""
    slow = factories.make_endpoint(project, max_rate_per_s=0.1)
    with pytest.raises(BadInput, match="allows at most"):
        _launched(project, [*_endpoints(project, 1), slow])
    assert not Run.objects.exists()
    assert not Campaign.objects.exists()
    assert (
        _launched(project, _endpoints(project, 0) or [factories.make_endpoint(project)]).number == 1
    )


def test_wrong_campaigns_are_refused(project, bob):
    """No endpoint, one twice, none to repeat, one without configuration, a viewer."""
    one = factories.make_endpoint(project)
    for endpoints, replicates in (([], 1), ([one, one], 1), ([one], 0), ([one], 201)):
        with pytest.raises(BadInput):
            _launched(project, endpoints, replicates)
    bare = factories.make_endpoint(project, configuration=None)
    with pytest.raises(FieldError, match="configuration"):
        _launched(project, [bare])
    with pytest.raises(NotPermitted):
        _launched(project, [one], user=bob)


@pytest.fixture
def measured(project, tmp_path):
    """Two runs with evidence of their own."""

    def make(name: str, **changes) -> Run:
        folder = factories.sample_folder(tmp_path, name=name, run_id=name, **changes)
        return factories.make_run(project, folder=folder)

    return make


def test_a_comparison_of_measured_runs_is_there_at_once(project, alice, measured):
    """Both have records, so the document is computed with the row."""
    made = comparison.comparison_create(
        project=project, user=alice, title="t", baselines=[measured("a")],
        candidates=[measured("b")], workload=None,
    )  # fmt: skip
    assert made.document["schema"] == "impakt.comparison/1"
    assert made.verdict == made.document["verdict"]
    before = made.sha256
    assert comparison.comparison_refresh(comparison=made).sha256 == before


def test_a_comparison_fills_when_the_last_run_has_its_record(project, alice, measured, tmp_path):
    """Empty while one record is missing, filled by the analysis that completes it."""
    waiting = factories.make_run(project)
    made = comparison.comparison_create(
        project=project, user=alice, title="t", baselines=[measured("a")], candidates=[waiting],
        workload=waiting.workload,
    )  # fmt: skip
    assert made.document is None
    folder = factories.sample_folder(tmp_path, name="b", run_id="b")
    evidence.evidence_ingest(run=waiting, folder=folder)
    record.run_analyse(run=waiting)
    made.refresh_from_db()
    assert made.document is not None
    assert made.verdict


def test_wrong_comparisons_are_refused(project, alice, bob, mallory):
    """An empty side, one run on both sides, another project's run, people who may not."""
    one, two = factories.make_run(project), factories.make_run(project)
    foreign = factories.make_run()

    def compare(baselines, candidates, user=alice):
        return comparison.comparison_create(
            project=project, user=user, title="t", baselines=baselines, candidates=candidates,
            workload=None,
        )  # fmt: skip

    for sides in (([], [one]), ([one], []), ([one], [one]), ([one], [foreign])):
        with pytest.raises(BadInput):
            compare(*sides)
    for person in (bob, mallory):
        with pytest.raises(NotPermitted):
            compare([one], [two], person)
    assert not Comparison.objects.exists()
