"""Alerts: something needs a person."""

from __future__ import annotations

from django_filters import rest_framework as filters

from records.api.filters import Id, ProjectRowsFilter
from records.api.views import OWNED, Owned, Person, ReadOnly, url_of
from records.models import Alert
from records.models.choices import AlertKind


class AlertOut(Owned):
    url = url_of("alert")
    resolved_by = Person()

    class Meta:
        model = Alert
        fields = (
            *OWNED, "kind", "title", "detail", "run", "decision", "resolved_at", "resolved_by",
        )  # fmt: skip


class AlertFilter(ProjectRowsFilter):
    kind = filters.ChoiceFilter(choices=AlertKind.choices)
    run = Id("run_id")
    decision = Id("decision_id")
    resolved = filters.BooleanFilter("resolved_at", "isnull", exclude=True)


class Alerts(ReadOnly):
    """Alerts."""

    queryset = Alert.objects.select_related("project", "created_by", "resolved_by")
    serializer_class = AlertOut
    filterset_class = AlertFilter
