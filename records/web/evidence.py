"""Evidence of a run: downloaded byte for byte, and checked on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.handlers.asgi import ASGIRequest
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    StreamingHttpResponse,
)
from django.shortcuts import redirect
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_POST

from records.errors import EvidenceDiffers, StorageFailed
from records.models import Evidence, Project
from records.selectors import run as selectors
from records.services import evidence as services
from records.web.access import in_project
from records.web.run import run_or_404

PIECE_BYTES = 256 * 1024


@in_project
def download(request: HttpRequest, project: Project, number: int, pk: int) -> HttpResponseBase:
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
    response = _streamed(request, data)
    name = row.name.rsplit("/", 1)[-1]
    response["Content-Disposition"] = content_disposition_header(True, name)
    response["Content-Length"] = row.bytes
    # So that a downloader can check what arrived.
    response["X-Content-SHA256"] = row.sha256
    return response


def _streamed(request: HttpRequest, data: BinaryIO) -> HttpResponseBase:
    """The bytes in pieces: Django would read a plain file whole into memory under ASGI."""
    kind = "application/octet-stream"
    if isinstance(request, ASGIRequest):
        return StreamingHttpResponse(_pieces(data), content_type=kind)
    return FileResponse(data, content_type=kind)


async def _pieces(data: BinaryIO) -> AsyncIterator[bytes]:
    try:
        while piece := await sync_to_async(data.read, thread_sensitive=False)(PIECE_BYTES):
            yield piece
    finally:
        data.close()


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
