"""Comparisons: the list, a new one from selected runs, and what one found."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from records.errors import BadInput, Conflict, OtherSideFailed
from records.models import Comparison, Project, Run
from records.selectors import registry
from records.services import comparison as services
from records.services import run as run_services
from records.web.access import in_project, may, require
from records.web.longer import offer
from records.web.pages.comparison import comparison_page
from records.web.pages.comparison_progress import waiting


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
    found = _get(project, number)
    sides = [
        sorted(side.all(), key=lambda r: r.number) for side in (found.baselines, found.candidates)
    ]
    context = {
        "comparison": found,
        "baselines": sides[0],
        "candidates": sides[1],
        "can_launch": may(request, "launch"),
        "longer": offer(request, project, found.workload),
        "simulated": any(r.simulated for r in (*sides[0], *sides[1])),
    }
    if found.document is None:
        context |= waiting([("baseline", sides[0]), ("candidate", sides[1])])
    else:
        context |= comparison_page(found)
    return render(request, "comparison.html", context)


@in_project
def comparison_json(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """The document as it is stored."""
    found = _get(project, number)
    if found.document is None:
        raise Http404("Not computed yet")
    response = JsonResponse(found.document)
    response["Content-Disposition"] = f'attachment; filename="{found}.json"'
    return response


@require_POST
@in_project
def comparison_stop(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """Stops those of its runs that are queued or running; what was measured is kept."""
    require(request, "launch")
    found = _get(project, number)
    asked = 0
    for run in (*found.baselines.all(), *found.candidates.all()):
        if not run.is_open:
            continue
        try:
            run_services.run_cancel(run=run, user=request.user)
            asked += 1
        except Conflict:
            # It ended between the reader's click and now: nothing is left to stop.
            continue
        except OtherSideFailed as error:
            messages.warning(request, str(error))
    messages.info(request, f"{asked} runs are asked to stop. What was measured so far is kept.")
    return redirect("comparison", project.slug, number)


def _get(project: Project, number: int) -> Comparison:
    try:
        return registry.comparison_get(project, number)
    except Comparison.DoesNotExist as error:
        raise Http404("No such comparison") from error


def _create(request: HttpRequest, project: Project) -> HttpResponse:
    require(request, "compare")
    # As many digits as a run's number can have: beyond them it is not one of ours.
    numbers = [
        int(n) for n in request.POST.getlist("run") if n.isascii() and n.isdigit() and len(n) < 10
    ]
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
            title=services.question(
                baselines[0].configuration.name, candidates[0].configuration.name
            ),
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
