"""Measurement records: every figure of a run by one analysis version."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework import serializers

from records.api.filters import Id, ProjectRowsFilter
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import MeasurementRecord


class RecordOut(Owned):
    url = url_of("record")

    class Meta:
        model = MeasurementRecord
        fields = (*OWNED, "run", "analysis_version", "sha256", "evidence", "replaces")


class RecordDetail(RecordOut):
    document = serializers.DictField(help_text="impakt.record/1")

    class Meta(RecordOut.Meta):
        fields = (*RecordOut.Meta.fields, "document")


class RecordFilter(ProjectRowsFilter):
    run = Id("run_id")
    sha256 = filters.CharFilter()
    analysis_version = filters.CharFilter()


class Records(ReadOnly):
    """Records; the detail has the whole impakt.record/1 document."""

    queryset = MeasurementRecord.objects.select_related("project", "created_by").defer("series")
    serializer_class = RecordOut
    detail_serializer_class = RecordDetail
    filterset_class = RecordFilter
