"""Projects the reader is a member of; a token sees its one."""

from __future__ import annotations

from django_filters import rest_framework as filters
from rest_framework import serializers
from rest_framework.viewsets import mixins

from records.api.scope import projects
from records.api.views import ProjectRows, url_of
from records.models import Project


class ProjectOut(serializers.ModelSerializer):
    url = url_of("project")
    role = serializers.SerializerMethodField(help_text="The reader's role in it.")

    class Meta:
        model = Project
        fields = ("id", "url", "slug", "name", "time_zone", "created_at", "role")

    def get_role(self, project: Project) -> str | None:
        user = self.context["request"].user
        return next((m.role for m in project.memberships.all() if m.user_id == user.pk), None)


class ProjectFilter(filters.FilterSet):
    class Meta:
        model = Project
        fields = ("slug", "name")


class Projects(mixins.ListModelMixin, mixins.RetrieveModelMixin, ProjectRows):
    """Projects: the tenants every other object belongs to."""

    queryset = Project.objects.prefetch_related("memberships")
    serializer_class = ProjectOut
    filterset_class = ProjectFilter
    ordering_fields = ("id", "created_at", "slug", "name")

    def get_queryset(self):
        if getattr(self, "swagger_fake_view", False):
            return self.queryset.none()
        return projects(self.request).prefetch_related("memberships")
