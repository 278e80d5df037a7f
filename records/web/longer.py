"""The worked example's longer campaign: one button, and nothing twice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from records.errors import BadInput, Conflict, OtherSideFailed
from records.models import Campaign, Comparison, Project, Workload
from records.selectors import registry
from records.services import example_campaign as services
from records.web.access import in_project, may, require


@dataclass(frozen=True, slots=True)
class Offer:
    """What the button launches; `going_on` is the page of a campaign that must end first."""

    workload: Workload
    replicates: int
    window_s: float
    minutes: int
    going_on: Comparison | None


def offer(request: HttpRequest, project: Project, workload: Workload | None) -> Offer | None:
    """The longer campaign, where it can be launched: by this reader, on this workload."""
    if workload is None or not workload.is_example or not may(request, "launch"):
        return None
    # Before its calibration the example has no objectives, so more runs would decide nothing.
    if not any(c.objective for c in workload.classes.all()):
        return None
    try:
        services.example_endpoints(project)
    except BadInput:
        return None
    before = services.campaign_open(workload=workload)
    return Offer(
        workload,
        services.LONGER_REPLICATES,
        services.LONGER_WINDOW_S,
        math.ceil(services.load_s() / 60),
        comparison_of(before) if before else None,
    )


def comparison_of(campaign: Campaign) -> Comparison | None:
    """The page that a campaign is followed on: its first comparison."""
    rows = Comparison.objects.in_project(campaign.project).filter(baselines__campaign=campaign)
    return rows.order_by("number").first()


@require_POST
@in_project
def campaign_longer(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """Launches it and goes to its comparison, or to that of the one that still goes on."""
    require(request, "launch")
    try:
        found = registry.workload_get(project, pk)
    except Workload.DoesNotExist as error:
        raise Http404("No such workload") from error
    try:
        made = services.campaign_longer(
            project=project, user=request.user, workload=found,
            window_s=services.LONGER_WINDOW_S, replicates=services.LONGER_REPLICATES,
        )  # fmt: skip
        messages.success(
            request, f"{made}: {made.runs.count()} runs queued, their order drawn at random."
        )
    except (Conflict, BadInput, OtherSideFailed) as error:
        messages.warning(request, str(error))
        made = services.campaign_open(workload=found)
    shown = comparison_of(made) if made else None
    if shown is None:
        return redirect("workload", project.slug, pk)
    return redirect("comparison", project.slug, shown.number)
