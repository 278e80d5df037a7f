from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.run import Run


class IdempotencyKey(ProjectOwned):
    """The first answer to a create, given again for the same key and body."""

    key = models.CharField(max_length=200)
    route = models.CharField(max_length=200)
    body_sha256 = models.CharField(max_length=64)
    # Null while the first request is still being answered.
    status = models.PositiveSmallIntegerField(null=True)
    response = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "route", "key"], name="idempotency_key_once")
        ]

    def __str__(self) -> str:
        return self.key


class Upload(ProjectOwned):
    """Something a client sent: an evidence folder archive or a record, and what became of it."""

    sha256 = models.CharField(max_length=64)
    bytes = models.PositiveBigIntegerField()
    filename = models.CharField(max_length=200, blank=True)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, null=True, related_name="uploads")

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["project", "sha256"], name="upload_content_once"),
        ]

    def __str__(self) -> str:
        return self.filename or self.sha256[:8]
