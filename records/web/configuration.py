"""One configuration tuple: its fields, its runs, and what differs from another."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from records.models import Configuration, Project
from records.selectors import registry
from records.selectors.configuration import configuration_diff, flattened
from records.web.access import in_project
from records.web.run_rows import run_rows


@in_project
def configuration(request: HttpRequest, project: Project, pk: int) -> HttpResponse:
    """The tuple as a table; with `against`, the fields that differ first."""
    found = _get(project, pk)
    others = [c for c in registry.configuration_list(project) if c.pk != found.pk]
    against = next((c for c in others if str(c.pk) == request.GET.get("against", "")), None)
    rows = configuration_diff(against, found) if against else []
    context = {
        "configuration": found,
        "fields": flattened(found.document).items(),
        "others": others,
        "against": against,
        "differing": [r for r in rows if r.differs],
        "same": len([r for r in rows if not r.differs]),
        "simulated": found.simulated or bool(found.document.get("simulated")),
        **run_rows(project, configuration=found.pk),
    }
    return render(request, "configuration.html", context)


def _get(project: Project, pk: int) -> Configuration:
    try:
        return registry.configuration_get(project, pk)
    except Configuration.DoesNotExist as error:
        raise Http404("No such configuration") from error
