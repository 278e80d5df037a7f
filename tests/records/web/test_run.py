"""The run page tells its figures with intervals, its doubts first, and what happened."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.urls import reverse

from records.models import MeasurementRecord, Run
from tests import factories


@pytest.fixture
def page(as_alice, run):
    return as_alice.get(reverse("run", args=[run.project.slug, run.number]))


def test_tiles_by_hand(page):
    """20 requests, 10 per class; request 3 (background) failed, request 1 (background) does not
    cite. The window of 9.5 s holds all: accepted 18 of 20 = 90 %, 18 / 9.5 s = 1.89 /s."""
    tiles = {t.label: t for t in page.context["tiles"]}
    goodput = tiles["Accepted goodput"]
    assert goodput.value.unit == "/s"
    assert float(goodput.value.text) == pytest.approx(18 / 9.5, abs=0.06)
    assert tiles["Accepted of attempted"].against == "18 of 20"
    attainment = tiles["SLO attainment, interactive"]
    assert (attainment.value.text, attainment.held) == ("100", True)


def test_what_this_analysis_does_not_compute_is_a_word_with_its_reason(page):
    drift = next(t for t in page.context["tiles"] if t.label == "Backlog drift")
    assert drift.value.word == "not yet"
    assert "not computed by analysis_version" in drift.value.reason


def test_a_percentile_that_ten_samples_cannot_support_is_too_few(page):
    """A 95 % upper limit of p95 needs 72 samples; a class here has 10."""
    table = page.context["table"]
    column = [h for h, _ in table.heads].index("TTFT p95")
    cell = table.rows[0].cells[column]
    assert cell.word == "too few"
    assert "at least 72" in cell.reason
    assert b"at least 72" in page.content


def test_outcomes_sum_to_attempted(page):
    outcomes = page.context["outcomes"]
    assert sum(int(r.n.text) for r in outcomes.rows) == 20 == int(outcomes.total[0].text)
    for i, _ in enumerate(outcomes.classes):
        assert sum(int(r.classes[i].text) for r in outcomes.rows) == 10


def test_simulated_and_example_are_said(page):
    text = page.content.decode()
    assert "Simulated endpoint" in text
    assert "proves the instrument" in text
    assert "example objectives" in text


def test_checks_begin_with_what_limits_the_run(page):
    tones = [c.tone for c in page.context["checks"]]
    assert tones == sorted(tones, key=["negative", "caution", "positive"].index)
    titles = {c.title for c in page.context["checks"]}
    assert {"Load generator kept time", "Every completion judged", "p99 is not supported"} <= titles


def test_an_invalid_run_says_why_first(as_alice, project, tmp_path):
    folder = factories.sample_folder(tmp_path, state="interrupted")
    run = factories.make_run(project, folder=folder, state="interrupted")
    page = as_alice.get(reverse("run", args=[project.slug, run.number]))
    first = page.context["checks"][0]
    assert (first.tone, first.title) == ("negative", "The run was interrupted")
    assert page.context["trust"].startswith("Invalid: 1 reason against it")


def test_charts_are_in_the_page_and_their_numbers_as_csv(as_alice, page, run):
    """Every interactive request has its first token 0.1 s after its arrival."""
    drawn = [c.name for c in page.context["charts"] if c.figure]
    assert {"ttft", "e2e", "itl", "backlog", "phases"} <= set(drawn)
    text = page.content.decode()
    assert 'id="chart-ttft" type="application/json"' in text
    answer = as_alice.get(reverse("run_chart_csv", args=[run.project.slug, run.number, "ttft"]))
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    values = [float(r["seconds"]) for r in rows if r["class"] == "interactive"]
    assert values == pytest.approx([0.1] * len(values))


def test_a_chart_that_is_not_there_is_404(as_alice, run):
    address = reverse("run_chart", args=[run.project.slug, run.number, "astrology"])
    assert as_alice.get(address).status_code == 404


def test_the_record_is_handed_out_as_stored(as_alice, run):
    answer = as_alice.get(reverse("run_record", args=[run.project.slug, run.number]))
    assert json.loads(answer.content) == MeasurementRecord.objects.get(run=run).document


def test_a_failed_run_shows_its_reason_and_no_figure(as_alice, project):
    run = factories.make_run(project, state="failed")
    Run.objects.filter(pk=run.pk).update(failure="http://127.0.0.1:9/v1: connection refused")
    page = as_alice.get(reverse("run", args=[project.slug, run.number]))
    text = page.content.decode()
    assert "connection refused" in text
    assert "The run left no evidence" in text
    assert "tiles" not in page.context


def test_what_happened_is_told_in_order(page):
    words = [e.words for e in page.context["events"]]
    assert words.index("Drafted") < words.index("Evidence sealed") < words.index("Analysed")
