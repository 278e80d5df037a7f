"""Workloads: named jobs with their service classes, objectives and rubric, in versions."""

from __future__ import annotations

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from records.api.filters import ProjectRowsFilter
from records.api.idempotency import once
from records.api.scope import project_for
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import ServiceClass, Workload
from records.services import workload


class ServiceClassOut(serializers.ModelSerializer):
    class Meta:
        model = ServiceClass
        fields = ("name", "objective", "timeout_s", "priority", "share")


class WorkloadOut(Owned):
    url = url_of("workload")
    classes = ServiceClassOut(many=True)

    class Meta:
        model = Workload
        fields = (*OWNED, "name", "version", "title", "sha256", "is_example", "replaces", "classes")


class WorkloadDetail(WorkloadOut):
    document = serializers.DictField(help_text="impakt.workload/1")

    class Meta(WorkloadOut.Meta):
        fields = (*WorkloadOut.Meta.fields, "document")


class WorkloadIn(serializers.Serializer):
    project = serializers.SlugField(required=False, help_text="Slug; needed by members of several.")
    title = serializers.CharField(max_length=200, required=False, default="")
    document = serializers.DictField(help_text="impakt.workload/1")


class WorkloadFilter(ProjectRowsFilter):
    name = filters.CharFilter()
    sha256 = filters.CharFilter(label="Workload hash.")


class Workloads(ReadOnly):
    """Workloads, each version a row; the detail has the whole impakt.workload/1 document."""

    queryset = Workload.objects.select_related("project", "created_by").prefetch_related("classes")
    serializer_class = WorkloadOut
    detail_serializer_class = WorkloadDetail
    filterset_class = WorkloadFilter
    ordering_fields = ("id", "created_at", "name", "version")

    @extend_schema(request=WorkloadIn, responses={201: WorkloadDetail, 200: WorkloadDetail})
    def create(self, request) -> Response:
        """Add a workload; changed content under a known name is its next version."""
        given = WorkloadIn(data=request.data)
        given.is_valid(raise_exception=True)
        fields = given.validated_data
        project = project_for(request, fields.pop("project", None))

        def make() -> Response:
            return self.made_or_found(
                project,
                lambda: workload.workload_create(project=project, user=request.user, **fields),
            )

        return once(request, project, make)
