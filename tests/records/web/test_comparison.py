"""A comparison is made from selected runs, and its page says what it does not know."""

from __future__ import annotations

import pytest
from django.urls import reverse

from records.models import Comparison
from tests import factories


@pytest.fixture
def other(run, tmp_path):
    """The same demand on another configuration."""
    static = factories.make_configuration(run.project, "static", batching="static")
    return factories.make_run(
        run.project, workload=run.workload, trace=run.trace,
        endpoint=factories.make_endpoint(run.project, configuration=static),
        folder=factories.sample_folder(
            tmp_path, name="other", run_id="other", configuration=static.document,
            configuration_fingerprint=static.fingerprint,
        ),
    )  # fmt: skip


@pytest.fixture
def address(project):
    return reverse("comparisons", args=[project.slug])


def test_two_configurations_become_two_sides(as_alice, address, run, other):
    answer = as_alice.post(address, {"run": [other.number, run.number]})
    made = Comparison.objects.get()
    assert answer["Location"] == reverse("comparison", args=[run.project.slug, made.number])
    assert list(made.baselines.all()) == [run]
    assert list(made.candidates.all()) == [other]


def test_one_replicate_a_side_is_not_enough_evidence_and_says_why(as_alice, address, run, other):
    page = as_alice.post(address, {"run": [other.number, run.number]}, follow=True)
    text = page.content.decode()
    assert page.context["verdict"]["word"] == "Not enough evidence"
    assert "gates are undecided" in text or "gate is undecided" in text
    assert "a comparison, not signed" in text
    assert "Measured on a simulated endpoint" in text
    assert page.context["unknown_moves"][0][1] == "an interval needs 2 replicates on each side"


def test_gates_begin_with_what_is_not_decided(as_alice, address, run, other):
    page = as_alice.post(address, {"run": [other.number, run.number]}, follow=True)
    results = [name for name, _ in page.context["gates"]]
    assert results == [r for r in ("fail", "not_enough_evidence", "pass") if r in results]
    assert results[0] == "not_enough_evidence"


def test_runs_that_are_not_comparable_name_what_to_run_again(as_alice, address, run, tmp_path):
    static = factories.make_configuration(run.project, "static", batching="static")
    cold = factories.make_run(
        run.project, workload=run.workload, trace=run.trace,
        endpoint=factories.make_endpoint(run.project, configuration=static),
        folder=factories.sample_folder(tmp_path, name="cold", run_id="cold", cache_state="cold"),
    )  # fmt: skip
    page = as_alice.post(address, {"run": [cold.number, run.number]}, follow=True)
    text = page.content.decode()
    assert "These runs cannot be compared: Cache state" in text
    assert "run both sides with the same cache state" in text
    first = page.context["items"][0]
    assert (first["title"], first["word"]) == ("Cache state", "differs")


def test_one_configuration_is_no_comparison(as_alice, address, run):
    answer = as_alice.post(address, {"run": [run.number]}, follow=True)
    assert b"runs of exactly two configurations" in answer.content
    assert not Comparison.objects.exists()


def test_runs_of_another_project_are_not_found(as_alice, address, run, tmp_path):
    stranger = factories.make_run()
    answer = as_alice.post(address, {"run": [run.number, stranger.number + 1000]}, follow=True)
    assert b"exactly two configurations" in answer.content


def test_while_a_record_is_missing_nothing_is_shown(as_alice, address, run, project):
    static = factories.make_configuration(project, "static", batching="static")
    waiting = factories.make_run(
        project, workload=run.workload, trace=run.trace,
        endpoint=factories.make_endpoint(project, configuration=static),
    )  # fmt: skip
    page = as_alice.post(address, {"run": [run.number, waiting.number]}, follow=True)
    assert b"1 of 2 measured, 1 queued" in page.content
    assert "gates" not in page.context


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "-1", "²", "x", ""])
def test_a_number_that_is_no_run_s_is_passed_over(as_alice, address, run, number):
    """As one that is not there: too few runs are left to compare."""
    response = as_alice.post(address, {"run": [str(run.number), number]}, follow=True)
    assert b"Select runs of exactly two configurations" in response.content
