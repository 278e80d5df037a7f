"""The worked example SUP-SUM-01, measured step by step on this machine.

    calibration    a light run on the baseline, whose record gives the objectives
    campaign       both configurations under load, replicated, compared

Where it stands is read from the registry, so each step can be taken again, by
a second worker or after a restart, and is done once.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from impakt_web.supervisor.endpoints import free_port
from records.models import Campaign, Endpoint, MeasurementRecord, Project, Run, Workload
from records.models.choices import OPEN_STATES, Role, RunState
from records.services import example_campaign as plan
from records.services import tasks
from records.services.campaign import campaign_launch
from records.services.configuration import configuration_create
from records.services.endpoint import endpoint_register
from records.services.numbers import lock
from records.services.run import run_create, run_launch
from records.services.workload import workload_create
from records.traces.sup_sum_01 import WORKLOAD_PATH

ADVANCE_TASK = "impakt_web.tasks.advance_example"
CALIBRATION = "calibration"
CAMPAIGN = "SUP-SUM-01: static against continuous batching"
# Light: about two requests/s, which the baseline serves without a queue building up.
CALIBRATION_SCALE = 0.4
CALIBRATION_S = 5.0
ATTAINMENT_TARGET = 0.9
# Objective = this many times the calibration's median, per class and target. For those
# who wait, the slowdowns Splitwise (ISCA 2024) allows 90 % of requests; for the backlog,
# which nobody waits for, its widest one, and on the whole answer only.
SLOWDOWNS: dict[str, dict[str, float]] = {
    "interactive": {"ttft_s": 3.0, "e2e_s": 1.5},
    "background": {"e2e_s": 5.0},
}


class Step(StrEnum):
    """What `advance` did or found."""

    LAUNCHED = "launched"
    WAITING = "waiting"
    DONE = "done"


def prepare(slug: str) -> None:
    """The example's configurations and endpoints, so that the supervisor can start them."""
    project = Project.objects.get(slug=slug)
    user = _owner(project)
    for name in plan.CONFIGURATIONS:
        profile = plan.PROFILE_PREFIX + name
        if Endpoint.objects.in_project(project).filter(reference_profile=profile).exists():
            continue
        document = plan.configuration_document(name)
        configuration = configuration_create(
            project=project, name=f"{name} batching", document=document, user=user
        )
        endpoint_register(
            project=project,
            user=user,
            name=f"{name.capitalize()} batching",
            url=f"http://127.0.0.1:{free_port()}/v1",
            api="chat",
            model=document["model"],
            configuration=configuration,
            simulated=True,
            reference_profile=profile,
        )


def begin(slug: str) -> None:
    """Have the workers take the example on from where it stands."""
    tasks.enqueue(ADVANCE_TASK, slug, True)


def advance(slug: str, *, retry: bool) -> Step:
    """Take the next step, if it can be taken now.

    `retry` measures again what an earlier life of this installation left
    unfinished; without it a run that failed stays the end of the example.
    """
    project = Project.objects.get(slug=slug)
    with transaction.atomic():
        lock(project)
        calibration = _last_calibration(project)
        if calibration is None or (retry and _ended_without_record(calibration)):
            _calibrate(project)
            return Step.LAUNCHED
        if calibration.state in OPEN_STATES:
            return Step.WAITING
        if _ended_without_record(calibration):
            return Step.DONE
        return _advance_campaign(project, calibration, retry=retry)


def is_measured(slug: str) -> bool:
    """Whether every run of the example's campaign has its record."""
    campaign = Campaign.objects.filter(project__slug=slug, title=CAMPAIGN).first()
    return campaign is not None and _is_whole(campaign)


def outlook(slug: str) -> str:
    """What a start has before it, in a line."""
    if is_measured(slug):
        return f"nothing new: the worked example stands measured in project {slug}"
    runs = plan.REPLICATES * len(plan.CONFIGURATIONS)
    return (
        f"SUP-SUM-01 on two configurations of the simulated endpoint: a calibration and "
        f"{runs} runs, about a minute"
    )


def _owner(project: Project):
    return (
        get_user_model()
        .objects.filter(memberships__project=project, memberships__role=Role.ADMIN)
        .order_by("pk")[0]
    )


def _last_calibration(project: Project) -> Run | None:
    runs = Run.objects.in_project(project).filter(title=CALIBRATION, campaign=None)
    return runs.filter(endpoint=plan.example_endpoints(project)[0]).order_by("-number").first()


def _ended_without_record(run: Run) -> bool:
    return run.state not in OPEN_STATES and run.state != RunState.COMPLETED


def _calibrate(project: Project) -> None:
    user = _owner(project)
    baseline = plan.example_endpoints(project)[0]
    trace = plan.example_trace(
        project=project,
        user=user,
        window_s=CALIBRATION_S,
        rate_scale=CALIBRATION_SCALE,
        name=f"SUP-SUM-01, {CALIBRATION_S:g} s, light",
    )
    document = tomllib.loads(WORKLOAD_PATH.read_text(encoding="utf-8"))
    run = run_create(
        project=project,
        user=user,
        workload=workload_create(project=project, document=document, user=user),
        configuration=baseline.configuration,
        endpoint=baseline,
        trace=trace,
        policies=plan.policies(warmup_s=0.0, window_s=CALIBRATION_S),
        title=CALIBRATION,
    )
    run_launch(run=run, user=user)


def _advance_campaign(project: Project, calibration: Run, *, retry: bool) -> Step:
    campaign = Campaign.objects.in_project(project).filter(title=CAMPAIGN).first()
    if campaign is not None:
        if not retry or _is_whole(campaign):
            return Step.DONE
        if campaign.runs.filter(state__in=OPEN_STATES).exists():
            return Step.WAITING
    user = _owner(project)
    campaign_launch(
        project=project,
        user=user,
        workload=_calibrated_workload(project, user, calibration),
        endpoints=plan.example_endpoints(project),
        trace=plan.campaign_trace(
            project=project, user=user, window_s=plan.WARMUP_S + plan.WINDOW_S
        ),
        replicates=plan.REPLICATES,
        policies=plan.policies(warmup_s=plan.WARMUP_S, window_s=plan.WINDOW_S),
        title=CAMPAIGN,
        seed=plan.SEED,
    )
    # For whoever wants to know more than so short a campaign can tell.
    plan.campaign_trace(
        project=project, user=user, window_s=plan.LONGER_WARMUP_S + plan.LONGER_WINDOW_S
    )
    return Step.DONE


def _is_whole(campaign: Campaign) -> bool:
    return not campaign.runs.exclude(state=RunState.COMPLETED).exists()


def _calibrated_workload(project: Project, user, calibration: Run) -> Workload:
    record = MeasurementRecord.objects.filter(run=calibration).latest().document
    document = tomllib.loads(WORKLOAD_PATH.read_text(encoding="utf-8"))
    return workload_create(
        project=project, document=calibrated(document, record, str(calibration)), user=user
    )


def calibrated(document: dict[str, Any], record: dict[str, Any], run: str) -> dict[str, Any]:
    """The workload with the objectives that a calibration's record gives, and where they are from.

    A target whose median the record does not have is left out: it is unknown.
    """
    classes = {}
    for name, spec in document["classes"].items():
        objective = {
            target: _two_digits(factor * median)
            for target, factor in SLOWDOWNS.get(name, {}).items()
            if (median := _median(record, name, target)) is not None
        }
        if objective:
            objective["attainment_target"] = ATTAINMENT_TARGET
        classes[name] = spec | {"objective": objective}
    rule = "; ".join(f"{name} {_factors(by)}" for name, by in SLOWDOWNS.items())
    labels = [*document["labels"], f"objectives: medians of calibration {run}, {rule}"]
    return document | {"classes": classes, "labels": labels}


def _factors(by: dict[str, float]) -> str:
    return ", ".join(f"{target[:-2].upper()} x{factor:g}" for target, factor in by.items())


def _median(record: dict[str, Any], class_name: str, target: str) -> float | None:
    figures = record["classes"].get(class_name, {}).get("latency", {}).get(target) or {}
    median = figures.get("p50") or {}
    value = median.get("value")
    return value if isinstance(value, int | float) and value > 0 else None


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")
