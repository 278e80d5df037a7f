from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models

from records.models.choices import Role


class ProjectSet(models.QuerySet):
    def visible_to(self, user) -> Self:
        """Projects the user is a member of."""
        return self.filter(memberships__user=user)


class Project(models.Model):
    """The tenant. Every other object belongs to one, and is read only by its members."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    time_zone = models.CharField(max_length=60, default="UTC")
    created_at = models.DateTimeField(auto_now_add=True)
    # Numbers people say aloud (R-12, C-3, D-4) count up within a project.
    last_run_number = models.PositiveIntegerField(default=0)
    last_campaign_number = models.PositiveIntegerField(default=0)
    last_comparison_number = models.PositiveIntegerField(default=0)
    last_decision_number = models.PositiveIntegerField(default=0)

    objects = ProjectSet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """What one person may do in one project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=12, choices=Role.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.role}"
