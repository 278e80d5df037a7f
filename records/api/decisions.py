"""Decisions: a question, its verdict, who signed it and until when it holds."""

from __future__ import annotations

from django_filters import rest_framework as filters

from records.api.filters import Id, ProjectRowsFilter
from records.api.views import OWNED, Owned, Person, ReadOnly, url_of
from records.models import Decision
from records.models.choices import Intervention, Verdict


class DecisionOut(Owned):
    url = url_of("decision")
    signed_by = Person()

    class Meta:
        model = Decision
        fields = (
            *OWNED, "number", "question", "intervention", "comparison", "gates", "verdict",
            "override_verdict", "override_reason", "scope", "not_proven", "cost", "signed_by",
            "signed_at", "expires_at", "change_triggers", "replaces",
        )  # fmt: skip


class DecisionFilter(ProjectRowsFilter):
    number = Id()
    verdict = filters.ChoiceFilter(choices=Verdict.choices)
    intervention = filters.ChoiceFilter(choices=Intervention.choices)
    comparison = Id("comparison_id")
    signed = filters.BooleanFilter("signed_at", "isnull", exclude=True)


class Decisions(ReadOnly):
    """Decisions."""

    queryset = Decision.objects.select_related("project", "created_by", "signed_by")
    serializer_class = DecisionOut
    filterset_class = DecisionFilter
    ordering_fields = ("id", "created_at", "number")
