"""Raw evidence: what files there are, and their verified bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import PurePosixPath
from typing import BinaryIO

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiResponse, OpenApiTypes, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from records.api.filters import Id, ProjectRowsFilter
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import Evidence
from records.services.evidence import evidence_open

_BLOCK = 1 << 20


class EvidenceOut(Owned):
    url = url_of("evidence")
    content_url = serializers.HyperlinkedIdentityField(view_name="api:evidence-content")

    class Meta:
        model = Evidence
        fields = (
            *OWNED, "run", "name", "sha256", "bytes", "verified", "verified_at", "content_url",
        )  # fmt: skip


class EvidenceFilter(ProjectRowsFilter):
    run = Id("run_id")
    name = filters.CharFilter()
    sha256 = filters.CharFilter()
    verified = filters.BooleanFilter()


class EvidenceFiles(ReadOnly):
    """Evidence files, untouched since they were written."""

    queryset = Evidence.objects.select_related("project", "created_by", "run")
    serializer_class = EvidenceOut
    filterset_class = EvidenceFilter
    ordering_fields = ("id", "created_at", "name", "bytes")

    @extend_schema(
        responses={
            (200, "application/octet-stream"): OpenApiResponse(
                OpenApiTypes.BINARY, "The bytes; `ETag` is their SHA-256."
            ),
            304: OpenApiResponse(description="The reader has these bytes (`If-None-Match`)."),
        }
    )
    def content(self, request: Request, pk: str | None = None) -> HttpResponseBase:
        """The bytes of one file, checked against their SHA-256 before the first is sent."""
        evidence: Evidence = self.get_object()
        etag = f'"{evidence.sha256}"'
        response = get_conditional_response(request, etag=etag)
        if response is None:
            handle = evidence_open(evidence)
            response = _streamed(request, handle)
            response["Content-Length"] = str(evidence.bytes)
            response["Content-Disposition"] = content_disposition_header(True, _filename(evidence))
        response["ETag"] = etag
        response["X-Content-Type-Options"] = "nosniff"
        response["Cache-Control"] = "private, no-cache"
        return response


def _filename(evidence: Evidence) -> str:
    run = f"R-{evidence.run.number}-" if evidence.run else ""
    return run + PurePosixPath(evidence.name).name


def _streamed(request: Request, handle: BinaryIO) -> HttpResponseBase:
    # Under ASGI Django would read a plain iterator whole before sending its first byte.
    if isinstance(request._request, ASGIRequest):
        response = StreamingHttpResponse(_blocks(handle), content_type="application/octet-stream")
        response._resource_closers.append(handle.close)
        return response
    return FileResponse(handle, content_type="application/octet-stream")


async def _blocks(handle: BinaryIO) -> AsyncIterator[bytes]:
    while block := await sync_to_async(handle.read, thread_sensitive=False)(_BLOCK):
        yield block
