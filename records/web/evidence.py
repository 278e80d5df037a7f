"""Evidence of a run: downloaded byte for byte, and checked on demand."""

from __future__ import annotations

from django.contrib import messages
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from records.errors import EvidenceDiffers, StorageFailed
from records.models import Evidence, Project
from records.selectors import run as selectors
from records.services import evidence as services
from records.web.access import in_project
from records.web.run import run_or_404


@in_project
def download(request: HttpRequest, project: Project, number: int, pk: int) -> HttpResponse:
    """One file, its hash checked before the first byte leaves; always as an attachment."""
    run = run_or_404(request, project, number)
    try:
        row = selectors.run_evidence_get(run, pk)
    except Evidence.DoesNotExist as error:
        raise Http404("No such file") from error
    try:
        data = services.evidence_open(row)
    except (EvidenceDiffers, StorageFailed) as error:
        messages.error(request, f"{row.name} cannot be handed out: {error}")
        return redirect("run", project.slug, number)
    response = FileResponse(
        data,
        as_attachment=True,
        filename=row.name.rsplit("/", 1)[-1],
        content_type="application/octet-stream",
    )
    # The digest lets a downloader check what arrived (RFC 9530 gives base64; this is the hex).
    response["X-Content-SHA256"] = row.sha256
    response["Content-Length"] = row.bytes
    return response


@require_POST
@in_project
def run_verify(request: HttpRequest, project: Project, number: int) -> HttpResponse:
    """Reads every file again and holds it against its hash."""
    run = run_or_404(request, project, number)
    differences = services.evidence_verify(run=run, user=request.user)
    if differences:
        named = ", ".join(f"{d.name} ({d.kind})" for d in differences)
        messages.error(request, f"Evidence differs: {named}. An alert was raised.")
    else:
        messages.success(request, "Every file is as it was written.")
    return redirect("run", project.slug, number)
