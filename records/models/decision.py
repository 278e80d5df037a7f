from __future__ import annotations

from django.conf import settings
from django.db import models

from records.models.base import ProjectOwned
from records.models.choices import Intervention, Verdict
from records.models.comparison import Comparison


class Decision(ProjectOwned):
    """A question, its comparison and gates, the verdict and who signed it, until when."""

    number = models.PositiveIntegerField()
    question = models.CharField(max_length=300)
    intervention = models.CharField(max_length=20, choices=Intervention.choices)
    comparison = models.ForeignKey(Comparison, on_delete=models.PROTECT, related_name="decisions")
    gates = models.JSONField(default=list)
    verdict = models.CharField(max_length=20, choices=Verdict.choices)
    override_verdict = models.CharField(max_length=20, choices=Verdict.choices, blank=True)
    override_reason = models.TextField(blank=True)
    scope = models.TextField(blank=True)
    not_proven = models.TextField(blank=True)
    cost = models.JSONField(null=True)
    signed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    signed_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    # Paths of configuration, workload or rubric fields whose change calls for requalification.
    change_triggers = models.JSONField(default=list)
    replaces = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="decision_number_once"),
            models.CheckConstraint(
                condition=models.Q(verdict__in=Verdict.values)
                & models.Q(override_verdict__in=["", *Verdict.values]),
                name="decision_verdict_known",
            ),
            models.CheckConstraint(
                condition=models.Q(override_verdict="") | ~models.Q(override_reason=""),
                name="override_has_a_reason",
            ),
            models.CheckConstraint(
                condition=models.Q(signed_by__isnull=True, signed_at__isnull=True)
                | models.Q(
                    signed_by__isnull=False, signed_at__isnull=False, expires_at__isnull=False
                ),
                name="signature_is_whole_and_expires",
            ),
        ]

    def __str__(self) -> str:
        return f"D-{self.number}"
