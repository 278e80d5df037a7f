"""Where configurations are served: what may be sent there, and what ran."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from records.models import Endpoint, Project
from records.selectors import registry
from records.web.access import in_project
from records.web.run_rows import run_rows


@in_project
def endpoints(request: HttpRequest, project: Project) -> HttpResponse:
    """Every registered endpoint; load goes to no other host."""
    return render(request, "endpoints.html", {"endpoints": registry.endpoint_list(project)})


@in_project
def endpoint(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """One endpoint."""
    try:
        found = registry.endpoint_get(project, pk)
    except Endpoint.DoesNotExist as error:
        raise Http404("No such endpoint") from error
    return render(
        request, "endpoint.html", {"endpoint": found, **run_rows(project, endpoint=found.pk)}
    )
