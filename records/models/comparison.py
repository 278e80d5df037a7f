from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.choices import Verdict
from records.models.run import Run
from records.models.workload import Workload


class Comparison(ProjectOwned):
    """Baseline runs and candidate runs over one denominator; impakt.comparison/1."""

    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, null=True, related_name="+")
    baselines = models.ManyToManyField(Run, related_name="baseline_of")
    candidates = models.ManyToManyField(Run, related_name="candidate_of")
    # Null until every run has a record.
    document = models.JSONField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)
    verdict = models.CharField(max_length=20, choices=Verdict.choices, blank=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="comparison_number_once"),
            models.CheckConstraint(
                condition=models.Q(verdict__in=["", *Verdict.values]),
                name="comparison_verdict_known",
            ),
        ]

    def __str__(self) -> str:
        return f"CMP-{self.number}"
