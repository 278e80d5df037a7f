"""Where configurations are served: what may be sent there, what ran, and a new one."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from records.errors import BadConfiguration, BadInput, Conflict, FieldError
from records.models import Endpoint, Project
from records.selectors import registry
from records.services.configuration import configuration_create
from records.services.endpoint import endpoint_register
from records.web.access import in_project, may, require
from records.web.endpoint_form import EndpointForm, said
from records.web.run_rows import run_rows

_PLAIN = ("name", "url", "api", "model", "api_key_env", "metrics_url")
_LIMITS = ("max_rate_per_s", "max_concurrency")


@in_project
def endpoints(request: HttpRequest, project: Project) -> HttpResponse:
    """Every registered endpoint; load goes to no other host. A POST registers one."""
    form = EndpointForm(project=project)
    if request.method == "POST":
        require(request, "launch")
        form = EndpointForm(request.POST, project=project)
        made = _register(request, project, form) if form.is_valid() else None
        if made is not None:
            messages.success(request, f"{made.name} is registered; campaigns can use it now.")
            return redirect("endpoint", project.slug, made.pk)
    context = {
        "endpoints": registry.endpoint_list(project),
        "form": form,
        "can_launch": may(request, "launch"),
    }
    return render(request, "endpoints.html", context, status=422 if form.errors else 200)


def _register(request: HttpRequest, project: Project, form: EndpointForm) -> Endpoint | None:
    """The new endpoint and, where one is described, its configuration: both or neither.

    None when the service refuses something; the form then says what, at its field.
    """
    data = form.cleaned_data
    try:
        with transaction.atomic():
            configuration = data["configuration"]
            if data["configuration_tuple"] is not None:
                configuration = configuration_create(
                    project=project, user=request.user, name=data["configuration_name"],
                    document=data["configuration_tuple"],
                )  # fmt: skip
            return endpoint_register(
                project=project, user=request.user, configuration=configuration,
                simulated=bool(configuration and configuration.simulated),
                **{key: data[key] for key in (*_PLAIN, *_LIMITS)},
            )  # fmt: skip
    except BadConfiguration as error:
        inside = f"{error.field}: " if error.field else ""
        form.add_error("configuration_tuple", inside + said(error))
    except FieldError as error:
        form.add_error(error.field if error.field in form.fields else None, said(error))
    except Conflict:
        form.add_error("name", "Another endpoint of this project has this name")
    except BadInput as error:
        form.add_error(None, str(error))
    return None


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
