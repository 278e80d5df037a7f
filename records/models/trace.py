from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned


class Trace(ProjectOwned):
    """An immutable arrival trace; its bytes lie in the evidence store under `file_sha256`."""

    name = models.CharField(max_length=200)
    trace_hash = models.CharField(max_length=64)
    demand_hash = models.CharField(max_length=64, db_index=True)
    prompt_hash = models.CharField(max_length=64)
    requests = models.PositiveIntegerField()
    span_s = models.FloatField(null=True)
    # The header line of impakt.trace/1: source, lineage, attribution, what was changed.
    header = models.JSONField(default=dict)
    # What `impakt trace describe` says, with the series of the preview charts.
    description = models.JSONField(default=dict)
    file_sha256 = models.CharField(max_length=64)
    file_bytes = models.PositiveBigIntegerField()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["project", "trace_hash"], name="trace_hash_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def short(self) -> str:
        """The first eight digits of the trace hash."""
        return self.trace_hash[:8]
