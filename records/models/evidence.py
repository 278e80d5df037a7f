from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.run import Run


class Evidence(ProjectOwned):
    """One untouched file: what it is, its SHA-256 and size; the bytes lie in the store."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="evidence")
    # Path inside the evidence folder: requests.parquet, judgments/<sha256>.jsonl …
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.PositiveBigIntegerField()
    # The last check of the stored bytes against the hash.
    verified_at = models.DateTimeField(null=True)
    verified = models.BooleanField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="evidence_name_once"),
        ]

    def __str__(self) -> str:
        return self.name
