from __future__ import annotations

from django.conf import settings
from django.db import models

from records.models.base import ProjectQuerySet


class AuditEntry(models.Model):
    """Who did what, when, to which object, before and after. Never changed."""

    # Null for what happens outside any project: a sign-in, a new project.
    project = models.ForeignKey(
        "records.Project", on_delete=models.PROTECT, null=True, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    # What acted when no person did: "worker", "supervisor".
    actor_name = models.CharField(max_length=120, blank=True)
    action = models.CharField(max_length=60)
    object_type = models.CharField(max_length=60)
    object_id = models.CharField(max_length=64)
    object_name = models.CharField(max_length=200, blank=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.object_name}"
