"""The example's longer campaign is one button away, launched once, and followed to its verdict."""

from __future__ import annotations

import uuid

import pytest
from django.urls import reverse

from records.models import Campaign, Comparison, Run
from records.services import example_campaign as plan
from tests import factories


@pytest.fixture
def example(project):
    """The calibrated workload, with both endpoints of the worked example."""
    for name in plan.CONFIGURATIONS:
        factories.make_endpoint(
            project, name=f"{name.capitalize()} batching",
            reference_profile=plan.PROFILE_PREFIX + name,
            configuration=factories.make_configuration(
                project, f"{name} batching", batching=name, kernels="example"
            ),
        )  # fmt: skip
    return factories.make_workload(project)


@pytest.fixture
def button(example):
    return reverse("campaign_longer", args=[example.project.slug, example.pk])


def test_the_workload_page_has_the_button_and_says_what_it_costs(as_alice, example, button):
    """2 sides x 5 replicates x (5 + 60) s = 650 s, rounded up to 11 minutes."""
    page = as_alice.get(reverse("workload", args=[example.project.slug, example.pk]))
    text = page.content.decode().replace("\u00a0", " ")
    assert f'action="{button}"' in text
    assert "5 replicates per side, 60 s windows, about 11 minutes" in text


def test_one_click_queues_ten_runs_and_leads_to_their_comparison(as_alice, button):
    page = as_alice.post(button, follow=True)
    made = Comparison.objects.get()
    assert page.redirect_chain[-1][0].endswith(f"/comparisons/{made.number}/")
    assert made.title == "Continuous batching against static batching"
    runs = Campaign.objects.get().runs.all()
    assert len(runs) == 10
    assert {(r.state, r.policies["window_s"]) for r in runs} == {("queued", 60.0)}
    text = page.content.decode()
    assert "0 of 10 measured, 10 queued" in text
    assert 'data-refresh="2"' in text


def test_a_second_click_launches_nothing_and_leads_to_the_first(as_alice, button, example):
    first = as_alice.post(button)
    page = as_alice.post(button, follow=True)
    assert Campaign.objects.count() == 1
    assert Run.objects.count() == 10
    assert page.redirect_chain[-1][0] == first["Location"]
    assert b"still going on; nothing was launched" in page.content
    page = as_alice.get(reverse("workload", args=[example.project.slug, example.pk]))
    assert b"Campaign in progress" in page.content
    assert f'action="{button}"' not in page.content.decode()


def test_a_viewer_has_no_button_and_is_refused(as_bob, button, example):
    page = as_bob.get(reverse("workload", args=[example.project.slug, example.pk]))
    assert button not in page.content.decode()
    assert as_bob.post(button).status_code == 403
    assert not Run.objects.exists()


def test_a_project_without_the_example_has_no_button(as_alice, run):
    """The general form for other traces is there all the same."""
    page = as_alice.get(reverse("workload", args=[run.project.slug, run.workload_id]))
    assert page.context["longer"] is None
    assert b'id="campaign"' in page.content


def test_another_projects_workload_cannot_be_launched(as_alice, project, button):
    stranger = factories.make_workload(factories.make_project())
    assert as_alice.post(
        reverse("campaign_longer", args=[project.slug, stranger.pk])
    ).status_code == 404  # fmt: skip


def test_the_page_counts_what_is_done_running_and_queued(as_alice, button):
    """One of ten is measured, one is half through: (1 + 0.5) / 10 = 15 %."""
    address = as_alice.post(button)["Location"]
    numbers = list(Campaign.objects.get().runs.order_by("number").values_list("pk", flat=True))
    Run.objects.filter(pk=numbers[0]).update(state="completed", valid=True)
    Run.objects.filter(pk=numbers[1]).update(
        state="running", lease=uuid.uuid4(),
        progress={"planned": 20, "due": 10, "elapsed_s": 30.0},
    )  # fmt: skip
    page = as_alice.get(address)
    assert "1 of 10 measured, 1 running, 8 queued" in page.content.decode()
    assert page.context["percent"] == 15.0
    # 8 x 65 s and 35 s of the one that runs: 555 s, less than 10 minutes.
    assert page.context["left"] == "about 10\u00a0min of load left"


def test_runs_without_a_record_are_named_as_what_prevents_the_verdict(as_alice, button):
    address = as_alice.post(button)["Location"]
    page = as_alice.post(f"{address}stop", follow=True)
    text = page.content.decode()
    assert "10 runs are asked to stop" in text
    assert "This comparison cannot be computed." in text
    assert "data-refresh" not in text
    # The way on stands on the same page.
    assert f'action="{button}"' in text
    assert not Run.objects.filter(state="queued").exists()
    assert as_alice.post(button)["Location"] != address


def test_a_viewer_cannot_stop_it(as_alice, as_bob, button):
    address = as_alice.post(button)["Location"]
    assert as_bob.post(f"{address}stop").status_code == 403
    assert Run.objects.filter(state="queued").count() == 10
