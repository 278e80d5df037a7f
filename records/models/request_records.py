from __future__ import annotations

from functools import reduce
from operator import add

from django.db import models

from records.models.base import ProjectOwned
from records.models.evidence import Evidence
from records.models.run import Run

OUTCOME_FIELDS = (
    "completed", "failed", "timed_out", "cancelled", "rejected", "shed", "deferred",
    "interrupted", "censored",
)  # fmt: skip


class RequestRecords(ProjectOwned):
    """The request records of one run: where the rows lie, and how they add up.

    The rows themselves are `requests.parquet` and `attempts.parquet`: the one
    place every figure is computed from (docs/decisions/0003).
    """

    run = models.OneToOneField(Run, on_delete=models.PROTECT, related_name="request_records")
    requests = models.ForeignKey(Evidence, on_delete=models.PROTECT, related_name="+")
    attempts = models.ForeignKey(Evidence, on_delete=models.PROTECT, related_name="+")
    attempted = models.PositiveIntegerField()
    completed = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()
    timed_out = models.PositiveIntegerField()
    cancelled = models.PositiveIntegerField()
    rejected = models.PositiveIntegerField()
    shed = models.PositiveIntegerField()
    deferred = models.PositiveIntegerField()
    interrupted = models.PositiveIntegerField()
    censored = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(attempted=reduce(add, map(models.F, OUTCOME_FIELDS))),
                name="outcomes_add_up_to_attempted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.attempted} requests of {self.run}"
