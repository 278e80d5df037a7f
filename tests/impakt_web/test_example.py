"""The worked example goes step by step, once, and its objectives come from its calibration."""

from __future__ import annotations

import json
import time
import tomllib

import pytest

from impakt_web import example, tasks
from impakt_web.example import Step
from records.evidence.workload import check_workload
from records.models import Campaign, Comparison, Configuration, Endpoint, MeasurementRecord, Run
from records.models.choices import RunState
from records.services import example_campaign as plan
from records.traces.sup_sum_01 import FOLDER
from tests import factories

from .test_up import Installation


@pytest.fixture
def queued(monkeypatch) -> list[tuple]:
    """What would have gone to the broker."""
    sent: list[tuple] = []
    monkeypatch.setattr("records.services.tasks.enqueue", lambda *a, **k: sent.append(a))
    return sent


@pytest.fixture
def prepared(project, queued):
    """The project with the example's endpoints."""
    example.prepare(project.slug)
    return project


def _record(ttft_s: float | None, e2e_s: float) -> dict:
    def latency(ttft: float | None, e2e: float) -> dict:
        first = {"p50": {"value": ttft, "supported": True}}
        return {"latency": {"ttft_s": first, "e2e_s": {"p50": {"value": e2e}}}}

    classes = {"interactive": latency(ttft_s, e2e_s), "background": latency(0.2, 1.04)}
    return {"schema": "impakt.record/1", "analysis_version": "1", "classes": classes}


def _end(run: Run, state: str, record: dict | None = None) -> None:
    Run.objects.filter(pk=run.pk).update(state=state)
    if record is not None:
        MeasurementRecord.objects.create(
            project=run.project, run=run, analysis_version="1", sha256="0" * 64, document=record
        )


def test_objectives_are_the_calibrations_medians_times_the_stated_factors():
    """TTFT 3 x and E2E 1.5 x for those who wait, E2E 5 x for the backlog, two digits."""
    document = tomllib.loads((FOLDER / "workload.toml").read_text())
    made = example.calibrated(document, _record(0.62, 1.306), "R-1")
    # 3 * 0.62 = 1.86 -> 1.9; 1.5 * 1.306 = 1.959 -> 2.0; 5 * 1.04 = 5.2
    assert made["classes"]["interactive"]["objective"] == {
        "ttft_s": 1.9,
        "e2e_s": 2.0,
        "attainment_target": 0.9,
    }
    assert made["classes"]["background"]["objective"] == {"e2e_s": 5.2, "attainment_target": 0.9}
    assert made["labels"] == [
        "example",
        "objectives: medians of calibration R-1, interactive TTFT x3, E2E x1.5; background E2E x5",
    ]
    assert made["rubric"] == document["rubric"]
    check_workload(made, "example")


def test_a_median_that_the_record_does_not_have_gives_no_objective():
    """Unknown stays unknown; the target is left out."""
    document = tomllib.loads((FOLDER / "workload.toml").read_text())
    made = example.calibrated(document, _record(None, 1.0), "R-1")
    assert made["classes"]["interactive"]["objective"] == {"e2e_s": 1.5, "attainment_target": 0.9}


def test_tuples_say_what_the_simulator_is_told():
    """Each declared value is the profile's, and the two sides differ in batching alone."""
    sides = {name: plan.configuration_document(name) for name in plan.CONFIGURATIONS}
    for name, document in sides.items():
        profile = tomllib.loads((FOLDER / "profiles" / f"{name}.toml").read_text())
        assert document["batching"] == profile["batching"] == name
        assert document["max_sequences"] == profile["slots"]
        for key in ("model", "max_prefill_tokens"):
            assert document[key] == profile[key]
        assert document["cost_model"].items() <= profile.items()
    differing = {k for k in sides["static"] if sides["static"][k] != sides["continuous"][k]}
    assert differing == {"batching"}


def test_preparing_twice_registers_once(prepared):
    """Two configurations, two endpoints, both marked as simulated."""
    example.prepare(prepared.slug)
    assert Configuration.objects.in_project(prepared).filter(simulated=True).count() == 2
    urls = Endpoint.objects.in_project(prepared).values_list("url", flat=True)
    assert len(set(urls)) == 2
    names = [e.configuration.document["batching"] for e in plan.example_endpoints(prepared)]
    assert names == ["static", "continuous"]


def test_calibration_comes_first_and_once(prepared, queued, django_capture_on_commit_callbacks):
    """One light run on the baseline; while it is open nothing else is launched."""
    with django_capture_on_commit_callbacks(execute=True):
        assert example.advance(prepared.slug, retry=True) == Step.LAUNCHED
        assert example.advance(prepared.slug, retry=True) == Step.WAITING
    run = Run.objects.in_project(prepared).get()
    assert (run.title, run.state) == ("calibration", RunState.QUEUED)
    assert run.endpoint == plan.example_endpoints(prepared)[0]
    assert queued == [("runners.tasks.run_load", run.pk)]


def test_campaign_follows_with_the_calibrated_objectives(prepared):
    """Two replicates of each side over one trace, and one comparison against the baseline."""
    example.advance(prepared.slug, retry=True)
    _end(Run.objects.get(), RunState.COMPLETED, _record(0.62, 1.306))
    assert example.advance(prepared.slug, retry=True) == Step.DONE
    campaign = Campaign.objects.get()
    assert campaign.workload.version == 2
    assert campaign.workload.is_example
    runs = list(campaign.runs.all())
    assert sorted(r.configuration.document["batching"] for r in runs) == [
        *["continuous"] * 2,
        *["static"] * 2,
    ]
    assert len({r.trace.demand_hash for r in runs}) == 1
    comparison = Comparison.objects.get()
    baselines = {r.configuration.document["batching"] for r in comparison.baselines.all()}
    assert baselines == {"static"}
    assert example.advance(prepared.slug, retry=False) == Step.DONE
    assert Campaign.objects.count() == 1


def test_calibration_that_failed_is_the_end_until_the_next_start(prepared):
    """Without `retry` a failure stands; the next start measures again."""
    example.advance(prepared.slug, retry=True)
    _end(Run.objects.get(), RunState.FAILED)
    assert example.advance(prepared.slug, retry=False) == Step.DONE
    assert example.advance(prepared.slug, retry=True) == Step.LAUNCHED
    assert Run.objects.in_project(prepared).filter(title="calibration").count() == 2


def test_unfinished_campaign_is_measured_again_at_the_next_start(prepared):
    """A campaign with an interrupted run is followed by another; a whole one is not."""
    example.advance(prepared.slug, retry=True)
    _end(Run.objects.get(), RunState.COMPLETED, _record(0.62, 1.306))
    example.advance(prepared.slug, retry=True)
    first = Campaign.objects.get()
    assert example.advance(prepared.slug, retry=True) == Step.WAITING
    for run in first.runs.all():
        _end(run, RunState.INTERRUPTED)
    assert not example.is_measured(prepared.slug)
    assert example.advance(prepared.slug, retry=True) == Step.DONE
    second = Campaign.objects.exclude(pk=first.pk).get()
    for run in second.runs.all():
        _end(run, RunState.COMPLETED)
    assert example.is_measured(prepared.slug)
    assert example.advance(prepared.slug, retry=True) == Step.DONE
    assert Campaign.objects.count() == 2


def test_task_comes_again_until_there_is_nothing_to_do(monkeypatch):
    """It asks for itself after each step but the last; what it launched is not retried."""
    again = []
    monkeypatch.setattr(
        tasks.advance_example, "apply_async", lambda args, countdown: again.append(args)
    )
    for step in (Step.WAITING, Step.LAUNCHED, Step.DONE):
        monkeypatch.setattr(example, "advance", lambda slug, retry, step=step: step)
        tasks.advance_example("example", True)
    assert again == [("example", True), ("example", False)]


def test_longer_campaign_has_its_own_trace_and_all_its_runs(prepared):
    """A 20 s window three times on each side: six runs over one trace of 25 s."""
    workload = factories.make_workload(prepared)
    owner = factories.owner_of(prepared)
    campaign = plan.campaign_longer(
        project=prepared, user=owner, workload=workload, window_s=20, replicates=3
    )
    runs = list(campaign.runs.all())
    assert len(runs) == 6
    assert {r.policies["window_s"] for r in runs} == {20}
    assert {r.policies["warmup_s"] for r in runs} == {5.0}
    assert {r.trace.name for r in runs} == {"SUP-SUM-01, 25 s"}


@pytest.mark.parametrize("window_s", [0, -1, 411, float("nan")])
def test_longer_than_the_arrivals_there_are_is_refused(prepared, window_s):
    """(600 - 60) / 1.3 - 5 = 410.4 s is the longest window."""
    workload = factories.make_workload(prepared)
    with pytest.raises(plan.BadInput, match=r"at most 410\.385 s"):
        plan.campaign_longer(
            project=prepared,
            user=factories.owner_of(prepared),
            workload=workload,
            window_s=window_s,
        )


def test_project_without_the_example_says_so(project):
    """The longer campaign needs the example's endpoints."""
    with pytest.raises(plan.BadInput, match="no worked example"):
        plan.example_endpoints(project)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_example_is_really_measured(tmp_path):
    """A first start measures calibration and four runs, each with a record, and compares them."""
    life = Installation(tmp_path)
    try:
        token = {"Authorization": f"Bearer {life.ready['token']}"}

        def rows(path: str) -> list[dict]:
            status, body = life.get(f"/api/v1/{path}/", **token)
            assert status == 200, body
            return json.loads(body)["results"]

        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            runs = rows("runs")
            if len(runs) == 5 and all(r["state"] == "completed" for r in runs):
                break
            assert not any(r["state"] in {"failed", "interrupted"} for r in runs), runs
            time.sleep(1)
        assert [r["state"] for r in runs] == ["completed"] * 5, runs
        assert all(r["attempted"] == r["completed"] > 0 for r in runs), runs
        measured = [r for r in runs if r["title"] != "calibration"]
        assert all(0 < r["accepted"] < r["completed"] for r in measured), runs
        side = {
            name: [r["accepted"] for r in measured if name in r["title"].lower()]
            for name in ("static", "continuous")
        }
        assert max(side["static"]) < min(side["continuous"])
        [comparison] = rows("comparisons")
        assert comparison["verdict"] == "not_enough_evidence"
    finally:
        life.close()
