from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from records.models.base import ProjectOwned
from records.models.campaign import Campaign
from records.models.choices import OPEN_STATES, CacheState, RunKind, RunState
from records.models.configuration import Configuration
from records.models.endpoint import Endpoint
from records.models.trace import Trace
from records.models.workload import Workload


class Run(ProjectOwned):
    """One replay of one trace on one configuration, or an uploaded external run.

    State and validity are separate. The headline columns repeat figures of the
    current measurement record so that lists can filter and sort; they are
    written only by `records.services.record`.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=RunKind.choices, default=RunKind.LOAD)
    state = models.CharField(max_length=12, choices=RunState.choices, default=RunState.DRAFT)
    title = models.CharField(max_length=200, blank=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, null=True, related_name="runs")
    # Null only for external runs whose upload does not say.
    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, null=True, related_name="runs")
    configuration = models.ForeignKey(
        Configuration, on_delete=models.PROTECT, null=True, related_name="runs"
    )
    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, null=True, related_name="runs")
    trace = models.ForeignKey(Trace, on_delete=models.PROTECT, null=True, related_name="runs")
    cache_state = models.CharField(max_length=4, choices=CacheState.choices, null=True)  # noqa: DJ001 - null is "not declared", which is not a state
    replicate = models.PositiveIntegerField(null=True)
    # max_concurrency, retries, timeout_s, warmup_s, window_s, drain_s, capture
    policies = models.JSONField(default=dict)
    simulated = models.BooleanField(null=True)
    source = models.CharField(max_length=60, blank=True, help_text="tool of an external run")

    queued_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    # One worker holds the lease; a heartbeat older than RUN_LEASE_S frees it.
    lease = models.UUIDField(null=True)
    worker = models.CharField(max_length=120, blank=True)
    task_id = models.CharField(max_length=64, blank=True)
    heartbeat_at = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(default=False)
    # The latest progress message of the load generator.
    progress = models.JSONField(default=dict)

    valid = models.BooleanField(null=True)
    invalid_reasons = models.JSONField(default=list)
    failure = models.TextField(blank=True)

    attempted = models.PositiveIntegerField(null=True)
    completed = models.PositiveIntegerField(null=True)
    accepted = models.PositiveIntegerField(null=True)
    accepted_per_s = models.FloatField(null=True)
    accepted_per_s_low = models.FloatField(null=True)
    accepted_per_s_high = models.FloatField(null=True)
    slo_attainment = models.FloatField(null=True)
    ttft_p95_s = models.FloatField(null=True)
    e2e_p95_s = models.FloatField(null=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="run_number_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=RunState.values), name="run_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(kind=RunKind.EXTERNAL)
                | models.Q(
                    workload__isnull=False,
                    configuration__isnull=False,
                    endpoint__isnull=False,
                    trace__isnull=False,
                ),
                name="load_run_is_whole",
            ),
            models.CheckConstraint(
                condition=~models.Q(state=RunState.RUNNING) | models.Q(lease__isnull=False),
                name="running_run_has_a_lease",
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-number"], name="run_newest"),
            models.Index(fields=["project", "state", "-number"], name="run_by_state"),
            models.Index(fields=["project", "workload", "-number"], name="run_by_workload"),
            models.Index(fields=["project", "configuration", "-number"], name="run_by_config"),
            models.Index(fields=["state", "heartbeat_at"], name="run_lease_sweep"),
        ]

    def __str__(self) -> str:
        return f"R-{self.number}"

    @property
    def is_open(self) -> bool:
        """Whether it still goes on by itself."""
        return self.state in OPEN_STATES
