"""Where a reader lands: what needs them, what runs, what came last."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from records.models import Alert, Project, Run, Workload
from records.models.choices import AlertKind
from records.selectors import registry
from records.selectors import run as run_selectors
from records.selectors.project import projects_for
from records.services import alert as alert_services
from records.web import format as fmt
from records.web.access import in_project, may, require
from records.web.format import Shown
from records.web.pages.progress import progress_of
from records.web.pages.run_story import Event, story
from records.web.pages.trend import Spark, spark

LATEST = 8
TREND = 12
# What a page needs of the many small things the audit trail holds.
_QUIET = ("evidence.ingest", "judgments.ingest", "run.create", "record.store", "comparison.refresh")
ALERT_LOOKS = {
    AlertKind.DECISION_EXPIRES: ("caution", "clock"),
    AlertKind.TRIGGER_FIRED: ("attention", "requal"),
    AlertKind.RUN_FAILED: ("negative", "failed"),
    AlertKind.RUN_INTERRUPTED: ("caution", "interrupted"),
    AlertKind.EVIDENCE_DIFFERS: ("negative", "invalid"),
}


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that needs a person."""

    alert: Alert
    tone: str
    icon: str


@dataclass(frozen=True, slots=True)
class WorkloadLine:
    """A workload with its newest valid run and how its goodput moved."""

    workload: Workload
    run: Run | None
    rate: Shown
    trend: Spark | None


@login_required
def home(request: HttpRequest) -> HttpResponse:
    """The reader's first project; without any, what to do about it."""
    project = projects_for(request.user).order_by("name").first()
    if project is not None:
        return redirect("project", project.slug)
    return render(request, "no_project.html")


@in_project
def project(request: HttpRequest, project: Project) -> HttpResponse:
    """The start page of a project."""
    alerts = registry.alert_list(project, open_only=True)
    entries = registry.audit_list(project).exclude(action__in=_QUIET)[:LATEST]
    comparisons = list(registry.comparison_list(project).defer(None)[:4])
    context = {
        "needs": [Need(a, *ALERT_LOOKS[AlertKind(a.kind)]) for a in alerts],
        "running": [(run, progress_of(run)) for run in registry.open_runs(project)],
        "events": _events(entries),
        "workloads": [_line(w) for w in _newest(project)],
        "comparisons": comparisons,
        "any_run": Run.objects.in_project(project).exists(),
        "can_launch": may(request, "launch"),
    }
    return render(request, "project.html", context)


def _events(entries) -> list[tuple[Event, str]]:
    events = story(entries)
    numbers = {
        str(pk): number
        for pk, number in Run.objects.filter(
            pk__in=[int(e.object_id) for e in events if e.object_type == "run"]
        ).values_list("pk", "number")
    }
    return [(e, numbers.get(e.object_id, "") if e.object_type == "run" else "") for e in events]


def _newest(project: Project) -> list[Workload]:
    seen: dict[str, Workload] = {}
    for workload in registry.workload_list(project):
        seen.setdefault(workload.name, workload)
    return list(seen.values())


def _line(workload: Workload) -> WorkloadLine:
    filters = {"workload": workload.pk, "valid": "true"}
    runs = list(run_selectors.run_list(project=workload.project, filters=filters)[:TREND])
    newest = runs[0] if runs else None
    if newest is None:
        rate = fmt.unknown("no valid run of this workload yet", word="not yet")
    else:
        rate = fmt.plain(
            newest.accepted_per_s, fmt.PER_S, low=newest.accepted_per_s_low,
            high=newest.accepted_per_s_high, reason="no completion of its newest run is judged",
        )  # fmt: skip
    same = [r for r in runs if newest and r.configuration_id == newest.configuration_id]
    return WorkloadLine(workload, newest, rate, spark(list(reversed(same))))


@require_POST
@in_project
def alert_resolve(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """A person has seen to it."""
    require(request, "launch")
    try:
        alert = registry.alert_get(project, pk)
    except Alert.DoesNotExist as error:
        raise Http404("No such alert") from error
    alert_services.alert_resolve(alert=alert, user=request.user)
    messages.success(request, f"Seen to: {alert.title}")
    return redirect("project", project.slug)
