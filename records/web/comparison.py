"""Comparisons: the list, a new one from selected runs, and what one found."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render

from records.errors import BadInput
from records.models import Comparison, Project, Run
from records.selectors import registry
from records.services import comparison as services
from records.web.access import in_project, may, require
from records.web.pages.comparison import comparison_page


@in_project
def comparisons(request: HttpRequest, project: Project) -> HttpResponse:
    """The list; a POST of run numbers makes a comparison of their two configurations."""
    if request.method == "POST":
        return _create(request, project)
    found = registry.comparison_list(project).defer(None)
    return render(request, "comparisons.html", {"comparisons": found})


@in_project
def comparison(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """One comparison."""
    try:
        found = registry.comparison_get(project, number)
    except Comparison.DoesNotExist as error:
        raise Http404("No such comparison") from error
    sides = [
        sorted(side.all(), key=lambda r: r.number) for side in (found.baselines, found.candidates)
    ]
    context = {
        "comparison": found,
        "baselines": sides[0],
        "candidates": sides[1],
        "waiting": [r for r in (*sides[0], *sides[1]) if r.valid is None],
        "can_launch": may(request, "launch"),
        "simulated": any(r.simulated for r in (*sides[0], *sides[1])),
    }
    if found.document is not None:
        context |= comparison_page(found)
    return render(request, "comparison.html", context)


@in_project
def comparison_json(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """The document as it is stored."""
    try:
        found = registry.comparison_get(project, number)
    except Comparison.DoesNotExist as error:
        raise Http404("No such comparison") from error
    if found.document is None:
        raise Http404("Not computed yet")
    response = JsonResponse(found.document)
    response["Content-Disposition"] = f'attachment; filename="{found}.json"'
    return response


def _create(request: HttpRequest, project: Project) -> HttpResponse:
    require(request, "compare")
    numbers = [int(n) for n in request.POST.getlist("run") if n.isascii() and n.isdigit()]
    runs = list(
        Run.objects.in_project(project)
        .filter(number__in=numbers[:200])
        .select_related("configuration", "workload")
        .order_by("number")
    )
    try:
        baselines, candidates = sides_of(runs)
        made = services.comparison_create(
            project=project,
            user=request.user,
            title=f"{candidates[0].configuration.name} against {baselines[0].configuration.name}",
            baselines=baselines,
            candidates=candidates,
            workload=runs[0].workload,
        )
    except BadInput as error:
        messages.error(request, str(error))
        return redirect("runs", project.slug)
    return redirect("comparison", project.slug, made.number)


def sides_of(runs: list[Run]) -> tuple[list[Run], list[Run]]:
    """The runs by their two configurations; the one that was run first is the baseline."""
    configurations = list(dict.fromkeys(r.configuration_id for r in runs))
    if len(configurations) != 2 or None in configurations:
        raise BadInput("Select runs of exactly two configurations; one is the baseline")
    first = [r for r in runs if r.configuration_id == configurations[0]]
    return first, [r for r in runs if r.configuration_id == configurations[1]]
