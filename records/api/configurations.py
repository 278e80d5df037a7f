"""Configuration tuples, known by the SHA-256 of their canonical JSON."""

from __future__ import annotations

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from records.api.filters import ProjectRowsFilter
from records.api.idempotency import once
from records.api.scope import project_for
from records.api.views import OWNED, Owned, ReadOnly, url_of
from records.models import Configuration
from records.services import configuration


class ConfigurationOut(Owned):
    url = url_of("configuration")
    document = serializers.DictField(help_text="The configuration tuple.")

    class Meta:
        model = Configuration
        fields = (*OWNED, "name", "fingerprint", "simulated", "document")


class ConfigurationIn(serializers.Serializer):
    project = serializers.SlugField(required=False, help_text="Slug; needed by members of several.")
    name = serializers.CharField(max_length=120)
    document = serializers.DictField(help_text="The configuration tuple.")


class ConfigurationFilter(ProjectRowsFilter):
    name = filters.CharFilter()
    fingerprint = filters.CharFilter()
    simulated = filters.BooleanFilter()


class Configurations(ReadOnly):
    """Configurations: what a run was measured on; never changed."""

    queryset = Configuration.objects.select_related("project", "created_by")
    serializer_class = ConfigurationOut
    filterset_class = ConfigurationFilter
    ordering_fields = ("id", "created_at", "name")

    @extend_schema(
        request=ConfigurationIn, responses={201: ConfigurationOut, 200: ConfigurationOut}
    )
    def create(self, request) -> Response:
        """Add a configuration; 200 with the row there is when the project has this tuple."""
        given = ConfigurationIn(data=request.data)
        given.is_valid(raise_exception=True)
        fields = given.validated_data
        project = project_for(request, fields.pop("project", None))

        def make() -> Response:
            return self.made_or_found(
                project,
                lambda: configuration.configuration_create(
                    project=project, user=request.user, **fields
                ),
            )

        return once(request, project, make)
