from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.evidence import Evidence
from records.models.run import Run


class MeasurementRecord(ProjectOwned):
    """impakt.record/1 of one run by one analysis version, reproducible from its evidence."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="measurement_records")
    analysis_version = models.CharField(max_length=20)
    sha256 = models.CharField(max_length=64)
    document = models.JSONField()
    # Downsampled series behind the run page's charts, computed with the record.
    series = models.JSONField(default=dict)
    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, null=True, related_name="+")
    replaces = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        ordering = ["-created_at", "-pk"]
        get_latest_by = "pk"
        constraints = [
            models.UniqueConstraint(fields=["run", "sha256"], name="record_once"),
        ]

    def __str__(self) -> str:
        return f"record of {self.run}, analysis {self.analysis_version}"
