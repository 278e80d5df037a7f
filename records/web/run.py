"""One run: what came out, whether it can be trusted, where the time went, the evidence."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from records.models import MeasurementRecord, Project, Run
from records.models.choices import RunState
from records.selectors import registry
from records.selectors import run as selectors
from records.web import format as fmt
from records.web.access import in_project, may
from records.web.pages import reading, run_trust
from records.web.pages.progress import progress_of
from records.web.pages.reading import scene_of
from records.web.pages.run_charts import charts
from records.web.pages.run_classes import class_table, objectives_text, spreads
from records.web.pages.run_outcomes import outcomes
from records.web.pages.run_story import story
from records.web.pages.run_tiles import tiles
from records.web.pages.run_timing import timing


@in_project
def run(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """The run page, in progress or over."""
    found = run_or_404(request, project, number)
    record = selectors.run_record(found)
    evidence = list(selectors.run_evidence(found))
    happened = registry.audit_list(project).filter(object_type="run", object_id=str(found.pk))
    context: dict[str, Any] = {
        "run": found,
        "record": record,
        "evidence": evidence,
        "evidence_bytes": sum(e.bytes for e in evidence),
        "verified_at": min((e.verified_at for e in evidence if e.verified_at), default=None),
        "all_verified": bool(evidence) and all(e.verified for e in evidence),
        "events": story(happened.order_by("pk")),
        "comparisons": selectors.run_comparisons(found),
        "can_launch": may(request, "launch"),
        "live": found.is_open,
        "progress": progress_of(found),
        "cut_short": found.state in (RunState.STOPPED, RunState.INTERRUPTED, RunState.FAILED),
    }
    if record is not None:
        context |= _figures(found, record, evidence)
    return render(request, "run.html", context)


def _figures(run: Run, record: MeasurementRecord, evidence: list[Any]) -> dict[str, Any]:
    document = record.document
    scene = scene_of(run, document)
    checks = run_trust.checks(run, document, scene, evidence)
    return {
        "document": document,
        "scene": scene,
        "tiles": tiles(document, scene),
        "checks": checks,
        "trust": run_trust.summary(checks),
        "timing": timing(document),
        "table": class_table(document, scene),
        "objectives": objectives_text(scene),
        "spreads": spreads(document, scene),
        "outcomes": outcomes(document, scene),
        "charts": charts(record.series or {}, scene),
        "offered": reading.figure(document, "arrivals", "offered_per_s", unit=fmt.PER_S),
        "offered_per_min": reading.figure(document, "arrivals", "offered_per_s", unit=fmt.PER_MIN),
        "notes": document.get("notes") or [],
    }


@in_project
def record_json(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """The current measurement record as it is stored."""
    record = selectors.run_record(run_or_404(request, project, number))
    if record is None:
        raise Http404("No record")
    response = JsonResponse(record.document)
    response["Content-Disposition"] = f'attachment; filename="R-{number}-record.json"'
    return response


def run_or_404(request: HttpRequest, project: Project, number: int) -> Run:
    """The run of this number in the reader's project."""
    try:
        return selectors.run_get(user=request.user, project=project, number=number)
    except Run.DoesNotExist as error:
        raise Http404("No such run") from error
