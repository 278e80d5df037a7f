"""The figures of a run as data: for the browser, and as CSV for everyone else."""

from __future__ import annotations

import csv

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse

from records.charts.catalog import CHARTS
from records.charts.figure import Figure
from records.models import Project
from records.selectors import run as selectors
from records.web.access import in_project
from records.web.pages.reading import scene_of
from records.web.run import run_or_404


def _figure(request: HttpRequest, project: Project, number: int, name: str) -> Figure:
    run = run_or_404(request, project, number)
    record = selectors.run_record(run)
    build = CHARTS.get(name)
    if record is None or build is None:
        raise Http404("No such chart")
    figure = build(record.series or {}, scene_of(run, record.document))
    if figure is None:
        raise Http404("Nothing to draw")
    return figure


@in_project
def chart_json(request: HttpRequest, project: Project, number: int, name: str) -> HttpResponse:
    """Plotly data and layout, with the table behind them."""
    return JsonResponse(_figure(request, project, number, name).plotly())


@in_project
def chart_csv(request: HttpRequest, project: Project, number: int, name: str) -> HttpResponse:
    """The numbers behind the chart, unrounded; what was not observed is an empty cell."""
    figure = _figure(request, project, number, name)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="R-{number}-{name}.csv"'
    writer = csv.writer(response)
    writer.writerow(figure.columns)
    writer.writerows(figure.rows)
    return response
