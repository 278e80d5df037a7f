"""A longer campaign is launched only after its duration was shown and confirmed."""

from __future__ import annotations

import pytest
from django.urls import reverse

from records.models import Campaign, Run
from tests import factories


@pytest.fixture
def asked(project, run):
    """Where to post, and a form for 2 replicates on two endpoints."""
    static = factories.make_configuration(project, "static", batching="static")
    second = factories.make_endpoint(project, configuration=static)
    form = {
        "title": "Does static batching hold?", "trace": run.trace_id, "baseline": run.endpoint_id,
        "candidates": [second.pk], "replicates": 2, "warmup_s": 1, "window_s": 4, "drain_s": 5,
    }  # fmt: skip
    return reverse("campaign_launch", args=[project.slug, run.workload_id]), form


def test_the_first_answer_names_the_time_and_launches_nothing(as_alice, asked):
    """2 replicates x 2 sides = 4 runs of 1 + 4 = 5 s: 20 s, with drains at most 40 s."""
    page = as_alice.post(*asked)
    text = page.content.decode().replace("\u00a0", " ")
    assert "Launch 4 runs?" in text
    assert "They take 20 s of load" in text
    assert "at most 40 s with every drain" in text
    assert not Campaign.objects.exists()
    assert Run.objects.count() == 1


def test_confirming_queues_every_run(as_alice, asked, run):
    address, form = asked
    page = as_alice.post(address, form | {"confirm": "1"}, follow=True)
    campaign = Campaign.objects.get()
    assert campaign.runs.count() == 4
    assert set(campaign.runs.values_list("state", flat=True)) == {"queued"}
    policies = campaign.runs.first().policies
    assert (policies["window_s"], policies["warmup_s"], policies["drain_s"]) == (4, 1, 5)
    assert policies["timeout_s"] == run.policies["timeout_s"]
    assert b"4 runs queued" in page.content


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"window_s": 60}, "The trace is 10 s long."),
        ({"replicates": 0}, "greater than or equal to 1"),
        ({"candidates": []}, "This field is required"),
        ({"title": ""}, "This field is required"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(as_alice, asked, change, said):
    address, form = asked
    page = as_alice.post(address, form | change | {"confirm": "1"})
    assert page.status_code == 422
    assert said in page.content.decode()
    assert not Campaign.objects.exists()


def test_a_trace_that_is_too_busy_is_said_beside_the_trace(as_alice, asked, settings):
    settings.MAX_RATE_PER_S = 0.5
    address, form = asked
    page = as_alice.post(address, form | {"confirm": "1"})
    assert page.status_code == 422
    assert "this installation allows at most 0.5" in page.context["form"].errors["trace"][0]
    assert not Campaign.objects.exists()


def test_the_baseline_is_not_its_own_candidate(as_alice, asked):
    address, form = asked
    page = as_alice.post(address, form | {"candidates": [form["baseline"]]})
    assert b"cannot be its own candidate" in page.content


def test_another_projects_endpoint_cannot_be_chosen(as_alice, asked):
    address, form = asked
    stranger = factories.make_endpoint(factories.make_project())
    page = as_alice.post(address, form | {"candidates": [stranger.pk], "confirm": "1"})
    assert page.status_code == 422


def test_a_viewer_sees_no_form(as_bob, run):
    page = as_bob.get(reverse("workload", args=[run.project.slug, run.workload_id]))
    assert b'id="campaign"' not in page.content
