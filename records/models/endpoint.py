from __future__ import annotations

from django.db import models

from records.models.base import ProjectOwned
from records.models.choices import Api
from records.models.configuration import Configuration


class Endpoint(ProjectOwned):
    """Where a configuration is served. Load goes to registered endpoints only."""

    name = models.CharField(max_length=120)
    url = models.CharField(max_length=500, help_text="including /v1, without credentials")
    api = models.CharField(max_length=12, choices=Api.choices, default=Api.CHAT)
    model = models.CharField(max_length=200)
    configuration = models.ForeignKey(
        Configuration, on_delete=models.PROTECT, null=True, related_name="endpoints"
    )
    # The name of the environment variable that holds the key; never the key.
    api_key_env = models.CharField(max_length=120, blank=True)
    metrics_url = models.CharField(max_length=500, blank=True)
    max_rate_per_s = models.FloatField(null=True, blank=True)
    max_concurrency = models.PositiveIntegerField(null=True, blank=True)
    simulated = models.BooleanField(default=False)
    # Set for the bundled reference endpoint: the profile the supervisor starts for it.
    reference_profile = models.CharField(max_length=60, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="endpoint_name_once"),
            models.CheckConstraint(
                condition=models.Q(api__in=Api.values), name="endpoint_api_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name
