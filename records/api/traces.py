"""Arrival traces: immutable, content-hashed."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework.response import Response

from records.api.bodies import PARSERS, parameter, received
from records.api.filters import ProjectRowsFilter
from records.api.idempotency import once
from records.api.schema import file_body
from records.api.scope import project_for
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.evidence.canonical import sha256_of
from records.models import Trace
from records.services import trace
from records.services.permissions import require


class TraceOut(Owned):
    url = url_of("trace")

    class Meta:
        model = Trace
        fields = (
            *OWNED, "name", "trace_hash", "demand_hash", "prompt_hash", "requests", "span_s",
            "file_sha256", "file_bytes",
        )  # fmt: skip


class TraceDetail(TraceOut):
    class Meta(TraceOut.Meta):
        fields = (*TraceOut.Meta.fields, "header", "description")


class TraceFilter(ProjectRowsFilter):
    name = filters.CharFilter()
    trace_hash = filters.CharFilter()
    demand_hash = filters.CharFilter()
    prompt_hash = filters.CharFilter()


class Traces(ReadOnly):
    """Arrival traces; the detail has the header and what `impakt trace describe` says."""

    queryset = Trace.objects.select_related("project", "created_by").defer("description")
    parser_classes = PARSERS
    serializer_class = TraceOut
    detail_serializer_class = TraceDetail
    filterset_class = TraceFilter
    ordering_fields = ("id", "created_at", "name", "requests")

    @file_body("impakt.trace/1, plain, gzip or zstd", {201: TraceDetail, 200: TraceDetail})
    def create(self, request) -> Response:
        """Add a trace; 200 with the row there is when the project has these requests."""
        project = project_for(request, parameter(request, "project"))
        # Before a byte of the body is looked at.
        require(request.user, project, "launch")
        with received(request) as body:
            name = parameter(request, "name") or body.filename

            def make() -> Response:
                return self.made_or_found(
                    project,
                    lambda: trace.trace_store(
                        project=project, user=request.user, name=name, source=body.path
                    ),
                )

            said = sha256_of([body.sha256, name])
            return once(request, project, make, body_sha256=said, atomic=False)
