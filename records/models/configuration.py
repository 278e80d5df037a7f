from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned


class Configuration(ProjectOwned):
    """An immutable configuration tuple, known by the SHA-256 of its canonical JSON."""

    name = models.CharField(max_length=120)
    fingerprint = models.CharField(max_length=64)
    document = models.JSONField()
    simulated = models.BooleanField(default=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "fingerprint"], name="configuration_fingerprint_once"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def short(self) -> str:
        """The first eight digits of the fingerprint, as pages show it."""
        return self.fingerprint[:8]
