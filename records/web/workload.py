"""Workloads: classes, objectives and rubric, what ran, and the next campaign."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from records.charts.figure import Scene
from records.errors import BadInput, FieldError, OtherSideFailed
from records.models import Campaign, Project, Workload
from records.selectors import registry
from records.selectors import run as run_selectors
from records.services import campaign as services
from records.web import format as fmt
from records.web.access import in_project, may, require
from records.web.format import Shown
from records.web.forms import CampaignForm
from records.web.longer import offer
from records.web.run_rows import run_rows

_TARGETS = (("ttft_s", "TTFT"), ("itl_s", "ITL p95"), ("tpot_s", "TPOT"), ("e2e_s", "E2E"))
_WEIGHTS = (
    ("severe", "failing it is a severe failure"),
    ("authority", "failing it breaks the authority boundary"),
)
# Policies that a new campaign takes over from the workload's newest run.
_KEPT = ("max_concurrency", "retries", "timeout_s", "warmup_s", "drain_s", "transport")


@in_project
def workloads(request: HttpRequest, project: Project) -> HttpResponse:
    """Every workload in its newest version."""
    seen: dict[str, Workload] = {}
    for found in registry.workload_list(project):
        seen.setdefault(found.name, found)
    return render(request, "workloads.html", {"workloads": list(seen.values())})


@in_project
def workload(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """One version of a workload."""
    found = _get(project, pk)
    form = CampaignForm(project=project, initial=_initial(project, found))
    return render(request, "workload.html", _context(request, project, found, form))


@require_POST
@in_project
def campaign(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """Asks once more, naming the time it takes; launches when told to."""
    require(request, "launch")
    found = _get(project, pk)
    form = CampaignForm(request.POST, project=project)
    if not form.is_valid():
        context = _context(request, project, found, form)
        return render(request, "workload.html", context, status=422)
    if "confirm" not in request.POST:
        return render(request, "campaign_confirm.html", {"workload": found, "form": form})
    try:
        launched = _launch(request, project, found, form)
    except BadInput as error:
        form.add_error(*_place(form, error))
        context = _context(request, project, found, form)
        return render(request, "workload.html", context, status=422)
    except OtherSideFailed as error:
        messages.warning(request, str(error))
        return redirect("runs", project.slug)
    messages.success(request, f"{launched}: {form.runs} runs queued, their order drawn at random.")
    return redirect("runs", project.slug)


def _launch(
    request: HttpRequest, project: Project, found: Workload, form: CampaignForm
) -> Campaign:
    data = form.cleaned_data
    policies = {k: v for k, v in _policies(project, found).items() if k in _KEPT}
    policies |= {key: data[key] for key in ("warmup_s", "window_s", "drain_s")}
    return services.campaign_launch(
        project=project,
        user=request.user,
        workload=found,
        endpoints=[data["baseline"], *data["candidates"]],
        trace=data["trace"],
        replicates=data["replicates"],
        policies=policies,
        title=data["title"],
        seed=secrets.randbelow(2**31),
    )


def _place(form: CampaignForm, error: BadInput) -> tuple[str | None, str]:
    """The field of the form that an error is about, and what to say there."""
    if isinstance(error, FieldError) and error.field in form.fields:
        return error.field, error.expected
    return None, str(error)


def _policies(project: Project, found: Workload) -> dict[str, Any]:
    newest = run_selectors.run_list(project=project, filters={"workload": found.pk}).first()
    return newest.policies if newest else {}


def _initial(project: Project, found: Workload) -> dict[str, Any]:
    """The sides of the last campaign, on the longest trace there is."""
    before = found.campaigns.order_by("-number").first()
    names = (before.plan.get("endpoints") if before else None) or []
    served = list(registry.endpoint_list(project).exclude(configuration=None))
    ordered = sorted(served, key=lambda e: names.index(e.name) if e.name in names else len(names))
    policies = _policies(project, found)
    traces = sorted(registry.trace_list(project), key=lambda t: -(t.span_s or 0.0))
    return {
        "title": before.title if before else "",
        "trace": traces[0].pk if traces else None,
        "baseline": ordered[0].pk if ordered else None,
        "candidates": [e.pk for e in ordered[1:2]],
        "replicates": 5,
        "warmup_s": _short(policies.get("warmup_s", 0.0)),
        "drain_s": _short(policies.get("drain_s")),
    }


def _short(seconds: float | None) -> float | int | None:
    """10 rather than 10.0 in a field."""
    return int(seconds) if seconds is not None and seconds == int(seconds) else seconds


def _context(
    request: HttpRequest, project: Project, found: Workload, form: CampaignForm
) -> dict[str, Any]:
    document = found.document
    scene = Scene(classes=found.class_names)
    versions = registry.workload_list(project).filter(name=found.name)
    return {
        "workload": found,
        "classes": [_class(c, scene) for c in found.classes.all()],
        "target_heads": [label for _, label in _TARGETS],
        "criteria": _criteria(document),
        "versions": versions,
        "campaigns": registry.campaign_list(project).filter(workload__name=found.name),
        "form": form,
        "can_launch": may(request, "launch"),
        "longer": offer(request, project, found),
        "can_form": form.fields["baseline"].queryset.count() >= 2
        and form.fields["trace"].queryset.exists(),
        **run_rows(project, workload=found.pk),
    }


def _class(found: Any, scene: Scene) -> dict[str, Any]:
    objective = found.objective or {}
    return {
        "name": found.name,
        "tone": scene.tone(found.name),
        "targets": [_target(objective.get(key)) for key, _ in _TARGETS],
        "attainment": _set(
            objective.get("attainment_target"), fmt.PERCENT, "no share is asked for"
        ),
        "timeout": Shown(text=fmt.duration(found.timeout_s))
        if found.timeout_s
        else fmt.unknown("no timeout of its own", word="not set"),
        "share": _set(found.share, fmt.PERCENT, "not declared"),
    }


def _target(seconds: float | None) -> Shown:
    if seconds is None:
        return fmt.unknown("this class has no such target", word="no target")
    return Shown(text=fmt.exact(seconds, fmt.time_unit([seconds])))


def _set(value: float | None, unit: fmt.Unit, reason: str) -> Shown:
    """A number somebody set, without its unit, which the heading names."""
    if value is None:
        return fmt.unknown(reason, word="not set")
    return Shown(text=fmt.exact(value, unit).split(fmt.NBSP)[0])


def _criteria(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    rubric = document.get("rubric") or {}
    out = []
    for criterion in rubric.get("criteria") or []:
        params = criterion.get("params") or {}
        rest = [f"{k.replace('_', ' ')}: {v}" for k, v in params.items()]
        rest += [text for key, text in _WEIGHTS if criterion.get(key)]
        detail = ", ".join(rest)
        out.append((criterion.get("title") or criterion["id"], criterion["check"], detail))
    return out


def _get(project: Project, pk: int) -> Workload:
    try:
        return registry.workload_get(project, pk)
    except Workload.DoesNotExist as error:
        raise Http404("No such workload") from error
