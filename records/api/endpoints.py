"""Endpoints: where configurations are served; load goes to these only."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework import serializers

from records.api.filters import Id, ProjectRowsFilter
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import Endpoint
from records.models.choices import Api


class EndpointOut(Owned):
    url = url_of("endpoint")

    class Meta:
        model = Endpoint
        # api_key_env names a variable of the server; only that there is a key is told.
        fields = (
            *OWNED, "name", "base_url", "api", "model", "configuration", "needs_key",
            "metrics_url", "max_rate_per_s", "max_concurrency", "simulated",
        )  # fmt: skip

    base_url = serializers.CharField(source="url", help_text="Including /v1, no credentials.")
    needs_key = serializers.SerializerMethodField()

    def get_needs_key(self, endpoint: Endpoint) -> bool:
        return bool(endpoint.api_key_env)


class EndpointFilter(ProjectRowsFilter):
    name = filters.CharFilter()
    api = filters.ChoiceFilter(choices=Api.choices)
    model = filters.CharFilter()
    configuration = Id("configuration_id")
    simulated = filters.BooleanFilter()


class Endpoints(ReadOnly):
    """Registered endpoints."""

    queryset = Endpoint.objects.select_related("project", "created_by")
    serializer_class = EndpointOut
    filterset_class = EndpointFilter
    ordering_fields = ("id", "created_at", "name")
