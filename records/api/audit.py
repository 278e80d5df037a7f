"""The audit trail: who did what, when, to which object."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework import serializers

from records.api.filters import Moment
from records.api.views import ReadOnly, url_of
from records.models import AuditEntry


class AuditOut(serializers.ModelSerializer):
    url = url_of("audit")
    project = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    actor = serializers.SerializerMethodField(help_text="A person's name, or what acted for none.")

    class Meta:
        model = AuditEntry
        fields = (
            "id", "url", "project", "at", "actor", "action", "object_type", "object_id",
            "object_name", "before", "after",
        )  # fmt: skip

    def get_actor(self, entry: AuditEntry) -> str:
        return entry.actor.get_username() if entry.actor else entry.actor_name


class AuditFilter(filters.FilterSet):
    project = filters.CharFilter("project__slug", label="Slug of the project.")
    at_after = Moment("at", "gte", label="RFC 3339; included.")
    at_before = Moment("at", "lt", label="RFC 3339; left out.")
    actor = filters.CharFilter("actor__username")
    action = filters.CharFilter()
    object_type = filters.CharFilter()
    object_id = filters.CharFilter()


class Audit(ReadOnly):
    """Audit entries of the reader's projects; never changed."""

    queryset = AuditEntry.objects.select_related("project", "actor")
    serializer_class = AuditOut
    filterset_class = AuditFilter
    ordering_fields = ("id", "at")
