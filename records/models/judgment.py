from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.choices import JudgmentMethod
from records.models.evidence import Evidence
from records.models.run import Run


class JudgmentSet(ProjectOwned):
    """An append-only set of judgments of one run by one method under one rubric."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="judgment_sets")
    evidence = models.OneToOneField(Evidence, on_delete=models.PROTECT, related_name="+")
    method = models.CharField(max_length=10, choices=JudgmentMethod.choices)
    author = models.CharField(max_length=120)
    rubric_hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(method__in=JudgmentMethod.values), name="judgment_method_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.method} judgments of {self.run}"


class Judgment(models.Model):
    """What one completion was judged to be; a row of its set's file."""

    judgment_set = models.ForeignKey(JudgmentSet, on_delete=models.PROTECT, related_name="rows")
    workflow_id = models.CharField(max_length=200)
    request_id = models.CharField(max_length=200)
    rubric_passed = models.BooleanField()
    # criterion id -> {"passed", "reason"}
    criteria = models.JSONField(default=dict)
    severe_failure = models.BooleanField(default=False)
    authority_violation = models.BooleanField(default=False)
    review_minutes = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgment_set", "request_id"], name="judgment_once_in_its_set"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.request_id}: {'passed' if self.rubric_passed else 'failed'}"
