from __future__ import annotations

from django.conf import settings
from django.db import models

from records.models.base import ProjectOwned
from records.models.choices import AlertKind
from records.models.decision import Decision
from records.models.run import Run


class Alert(ProjectOwned):
    """Something needs a person."""

    kind = models.CharField(max_length=20, choices=AlertKind.choices)
    title = models.CharField(max_length=200)
    detail = models.TextField(blank=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, null=True, related_name="alerts")
    decision = models.ForeignKey(
        Decision, on_delete=models.CASCADE, null=True, related_name="alerts"
    )
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(kind__in=AlertKind.values), name="alert_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return self.title
