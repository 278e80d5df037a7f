"""Uploads: an evidence folder archive or a record becomes an external run."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework import serializers
from rest_framework.response import Response

from records.api.bodies import PARSERS, Body, parameter, received
from records.api.filters import Id, ProjectRowsFilter
from records.api.idempotency import once
from records.api.links import record_url, run_page
from records.api.problems import problem
from records.api.receiving import RELATED, receive
from records.api.schema import file_body
from records.api.scope import project_for
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import Project, Run, Upload
from records.services.permissions import require


class UploadedRun(serializers.ModelSerializer):
    url = serializers.SerializerMethodField(help_text="The run's page for people.")
    api_url = serializers.HyperlinkedIdentityField(view_name="api:run-detail")

    class Meta:
        model = Run
        fields = ("id", "number", "url", "api_url")

    def get_url(self, run: Run) -> str:
        return run_page(self.context["request"], run)


class UploadOut(Owned):
    url = url_of("upload")
    run = UploadedRun()
    record_url = serializers.SerializerMethodField(help_text="null until it is analysed.")

    class Meta:
        model = Upload
        fields = (*OWNED, "sha256", "bytes", "filename", "run", "record_url")

    def get_record_url(self, row: Upload) -> str | None:
        return None if row.run is None else record_url(self.context["request"], row.run)


class UploadFilter(ProjectRowsFilter):
    sha256 = filters.CharFilter()
    run = Id("run_id")


class Uploads(ReadOnly):
    """What clients sent, and the run it became."""

    # Without the claims of uploads still being taken in.
    queryset = Upload.objects.filter(run__isnull=False).select_related(*RELATED)
    parser_classes = PARSERS
    serializer_class = UploadOut
    filterset_class = UploadFilter
    ordering_fields = ("id", "created_at", "bytes")

    @file_body(
        "An evidence folder as tar.zst, tar.gz, tar or zip, or an impakt.record/1 document.",
        {201: UploadOut, 200: UploadOut},
    )
    def create(self, request) -> Response:
        """Upload a run; the same content again answers 200 with the run it became."""
        project = project_for(request, parameter(request, "project"))
        # Before a byte of the body is looked at.
        require(request.user, project, "upload")
        with received(request) as body:
            return once(
                request, project, lambda: self._taken(project, body),
                body_sha256=body.sha256, atomic=False,
            )  # fmt: skip

    def _taken(self, project: Project, body: Body) -> Response:
        found = receive(project=project, user=self.request.user, body=body)
        if found is None:
            detail = "These bytes are being taken in by another request; ask again"
            return problem(409, detail, headers={"Retry-After": "2"})
        data = UploadOut(found.upload, context=self.get_serializer_context()).data
        return Response(data, 201 if found.made else 200, headers={"Location": str(data["url"])})
