from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.workload import Workload


class Campaign(ProjectOwned):
    """Runs launched together to answer one question, in an order drawn at random."""

    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="campaigns")
    # Seconds of measurement window and replicates asked for, with the seed of the order.
    plan = models.JSONField(default=dict)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="campaign_number_once"),
        ]

    def __str__(self) -> str:
        return f"C-{self.number}"
