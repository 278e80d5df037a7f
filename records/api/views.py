"""What every resource of the API shares: rows of the reader's projects, listed and shown."""

from __future__ import annotations

from collections.abc import Callable

from django.db import models
from rest_framework import mixins, serializers, viewsets
from rest_framework.response import Response

from records.api.bodies import JsonBody
from records.api.filters import Ordering, StrictFilters
from records.api.schema import ProblemSchema
from records.api.scope import visible
from records.models import Project

# The fields every row opens with.
OWNED = ("id", "url", "project", "created_at", "created_by")


class Person(serializers.SlugRelatedField):
    """A person by user name; null for what no person did."""

    def __init__(self, **kwargs) -> None:
        given = {"slug_field": "username", "read_only": True, "allow_null": True}
        super().__init__(**{**given, "help_text": "User name; null: nobody.", **kwargs})


class Owned(serializers.ModelSerializer):
    """A row with its project's slug and the name of who made it."""

    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    created_by = Person()


def url_of(basename: str) -> serializers.HyperlinkedIdentityField:
    """The row's own address in the API."""
    return serializers.HyperlinkedIdentityField(view_name=f"api:{basename}-detail")


class ProjectRows(viewsets.GenericViewSet):
    """Rows of the projects the request may see; others do not exist for it."""

    schema = ProblemSchema()
    parser_classes = (JsonBody,)
    filter_backends = [StrictFilters, Ordering]
    ordering_fields: tuple[str, ...] = ("id", "created_at")
    # Of these, the columns that may be null.
    nullable_ordering_fields: tuple[str, ...] = ()
    # Where a row's project is found.
    project_path = "project"
    detail_serializer_class: type[serializers.BaseSerializer] | None = None

    def get_queryset(self):
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset().none()
        return visible(self.request, super().get_queryset(), self.project_path)

    def get_serializer_class(self):
        if self.action == "retrieve" and self.detail_serializer_class is not None:
            return self.detail_serializer_class
        return super().get_serializer_class()


class ReadOnly(mixins.ListModelMixin, mixins.RetrieveModelMixin, ProjectRows):
    """A resource that is listed and shown."""

    def made_or_found(self, project: Project, create: Callable[[], models.Model]) -> Response:
        """The answer of a create by content: 201 for a new row, 200 for the one there was."""
        newest = self.queryset.model.objects.filter(project=project).order_by("-pk")
        before = newest.values_list("pk", flat=True).first() or 0
        row = create()
        made = row.pk > before
        serializer = self.detail_serializer_class or self.serializer_class
        body = serializer(row, context=self.get_serializer_context()).data
        return Response(body, 201 if made else 200, headers={"Location": str(body["url"])})
