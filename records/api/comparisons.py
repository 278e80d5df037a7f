"""Comparisons of baseline runs and candidate runs."""

from __future__ import annotations

from django_filters import rest_framework as filters

from records.api.filters import Id, ProjectRowsFilter
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import Comparison
from records.models.choices import Verdict


class ComparisonOut(Owned):
    url = url_of("comparison")

    class Meta:
        model = Comparison
        fields = (
            *OWNED, "number", "title", "workload", "baselines", "candidates", "sha256", "verdict",
        )  # fmt: skip


class ComparisonDetail(ComparisonOut):
    class Meta(ComparisonOut.Meta):
        fields = (*ComparisonOut.Meta.fields, "document")


class ComparisonFilter(ProjectRowsFilter):
    number = Id()
    workload = Id("workload_id")
    verdict = filters.ChoiceFilter(choices=Verdict.choices)
    run = Id(method="with_run", label="Among its baselines or candidates.")

    def with_run(self, queryset, name, value):
        return (queryset.filter(baselines=value) | queryset.filter(candidates=value)).distinct()


class Comparisons(ReadOnly):
    """Comparisons; the detail has the impakt.comparison/1 document.

    It is null until every run has a record.
    """

    queryset = (
        Comparison.objects.select_related("project", "created_by")
        .prefetch_related("baselines", "candidates")
        .defer("document")
    )
    serializer_class = ComparisonOut
    detail_serializer_class = ComparisonDetail
    filterset_class = ComparisonFilter
    ordering_fields = ("id", "created_at", "number")
