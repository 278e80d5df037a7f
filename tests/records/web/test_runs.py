"""The run list filters, sorts and pages, and never shows an unknown figure as a number."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from records.models import MeasurementRecord, Run
from records.web import runs as view
from tests import factories


@pytest.fixture
def address(project):
    return reverse("runs", args=[project.slug])


def numbers(response) -> list[int]:
    return [row.run.number for row in response.context["rows"]]


def test_newest_first_and_figures_with_their_interval_drawn(as_alice, address, run):
    queued = factories.make_run(run.project, workload=run.workload, endpoint=run.endpoint)
    response = as_alice.get(address)
    assert numbers(response) == [queued.number, run.number]
    text = response.content.decode()
    assert text.count('class="ivg ') == 1
    assert "Completed" in text
    assert "Queued" in text


def test_a_run_without_a_record_says_not_yet_and_shows_no_number(as_alice, address, project):
    factories.make_run(project)
    row = as_alice.get(address).context["rows"][0]
    for figure in (row.attempted, row.rate, row.attainment, row.ttft, row.e2e):
        assert (figure.known, figure.word) == (False, "not yet")
    assert row.mark is None


def test_a_failed_run_says_that_there_is_no_record(as_alice, address, project):
    factories.make_run(project, state="failed")
    row = as_alice.get(address).context["rows"][0]
    assert row.rate.word == "no record"


def test_filters(as_alice, address, run):
    other = factories.make_configuration(run.project, "static", batching="static")
    second = factories.make_run(
        run.project, workload=run.workload,
        endpoint=factories.make_endpoint(run.project, configuration=other),
    )  # fmt: skip
    for query, wanted in (
        ({"configuration": other.pk}, [second.number]),
        ({"state": "completed"}, [run.number]),
        ({"workload": run.workload_id}, [second.number, run.number]),
        ({"q": f"R-{run.number}"}, [run.number]),
        ({"q": "static"}, [second.number]),
        ({"q": "nothing like it"}, []),
    ):
        assert numbers(as_alice.get(address, query)) == wanted, query


def test_a_filter_that_cannot_be_is_named_and_everything_is_shown(as_alice, address, run):
    response = as_alice.get(address, {"state": "flying"})
    assert numbers(response) == [run.number]
    assert b"filter: state: one of" in response.content


def test_sort_headers_say_their_order(as_alice, address, run):
    text = as_alice.get(address, {"sort": "-accepted_per_s"}).content.decode()
    (header,) = re.findall(r'<th[^>]*aria-sort="(\w+)"', text)
    assert header == "descending"
    assert "?sort=accepted_per_s" in text
    assert "?sort=-ttft_p95" in text


def test_pages_keep_the_filters(as_alice, address, run, monkeypatch):
    monkeypatch.setattr(view, "PAGE_SIZE", 1)
    second = factories.make_run(run.project, workload=run.workload, endpoint=run.endpoint)
    query = {"workload": run.workload_id}
    first = as_alice.get(address, query)
    assert numbers(first) == [second.number]
    assert f"?workload={run.workload_id}&amp;page=2" in first.content.decode()
    assert numbers(as_alice.get(address, query | {"page": 2})) == [run.number]


def test_a_viewer_cannot_select_for_a_comparison(as_bob, address, run):
    assert b"data-select" not in as_bob.get(address).content


def test_only_the_projects_own_runs(as_alice, address, run):
    factories.make_run()
    assert Run.objects.count() == 2
    assert numbers(as_alice.get(address)) == [run.number]


def test_an_empty_project_says_what_to_do(as_alice, address):
    assert b"No run has been measured yet" in as_alice.get(address).content


def test_a_figure_that_the_record_lacks_carries_the_records_reason(as_alice, address, project, run):
    """No objective: neither accepted nor attainment; too few requests for a 95th percentile."""
    workload = factories.make_workload(
        project, classes={"interactive": {"objective": {}}, "background": {"objective": {}}}
    )
    record = run.measurement_records.get()
    why = {"value": None, "reason": "no objective is set, so nothing can meet one"}
    record.document["goodput"] |= {"accepted_per_s": why, "slo_attainment": why}
    MeasurementRecord.objects.bulk_create(
        [
            MeasurementRecord(
                project=project, run=run, analysis_version="1", sha256="b" * 64,
                document=record.document,
            )
        ]
    )  # fmt: skip
    Run.objects.filter(pk=run.pk).update(
        workload=workload, accepted_per_s=None, slo_attainment=None, ttft_p95_s=None
    )
    (row,) = as_alice.get(address).context["rows"]
    assert (row.rate.word, row.attainment.word) == ("no objective", "no objective")
    assert row.rate.reason == "no objective is set, so nothing can meet one"
    assert row.ttft.word == "too few"
    assert b"see run" not in as_alice.get(address).content
