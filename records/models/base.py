"""What every object of the registry shares: a project, a time, and how it is found."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models


class ProjectQuerySet(models.QuerySet):
    """Rows are read through their project: start with `in_project` or `visible_to`."""

    def in_project(self, project) -> Self:
        """Rows of one project."""
        return self.filter(project=project)

    def visible_to(self, user) -> Self:
        """Rows of every project the user is a member of."""
        return self.filter(project__memberships__user=user)


class ProjectOwned(models.Model):
    """Belongs to exactly one project and cannot move to another."""

    project = models.ForeignKey("records.Project", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    objects = ProjectQuerySet.as_manager()

    class Meta:
        abstract = True


class VersionedDocument(ProjectOwned):
    """A named document in versions; each version is immutable and known by its hash."""

    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField(default=1)
    document = models.JSONField()
    sha256 = models.CharField(max_length=64)
    replaces = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(
                fields=["project", "name", "version"], name="%(class)s_version_once"
            ),
            models.UniqueConstraint(
                fields=["project", "name", "sha256"], name="%(class)s_content_once"
            ),
        ]
        ordering = ["name", "-version"]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"
