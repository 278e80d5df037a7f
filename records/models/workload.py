from __future__ import annotations

from django.db import models

from records.models.base import VersionedDocument


class Rubric(VersionedDocument):
    """What an output must be to be accepted: criteria, severe failures, authority."""

    class Meta(VersionedDocument.Meta):
        pass


class CaseSet(VersionedDocument):
    """Difficult cases with the outcome the rubric expects of each."""

    class Meta(VersionedDocument.Meta):
        pass


class EvidencePacket(VersionedDocument):
    """The evidence given in the prompts, which citations must resolve to."""

    class Meta(VersionedDocument.Meta):
        pass


class Workload(VersionedDocument):
    """A named job; `document` is impakt.workload/1, `sha256` its workload hash."""

    title = models.CharField(max_length=200, blank=True)
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, null=True, related_name="+")
    case_set = models.ForeignKey(CaseSet, on_delete=models.PROTECT, null=True, related_name="+")
    evidence_packet = models.ForeignKey(
        EvidencePacket, on_delete=models.PROTECT, null=True, related_name="+"
    )

    class Meta(VersionedDocument.Meta):
        pass

    @property
    def class_names(self) -> list[str]:
        """Its service classes in their order; `document` alone does not tell it, because
        PostgreSQL keeps no order of an object's keys."""
        return [found.name for found in self.classes.all()]

    @property
    def is_example(self) -> bool:
        """Whether its objectives are an example's, derived by calibration."""
        return "example" in (self.document.get("labels") or [])


class ServiceClass(models.Model):
    """One class of a workload with its own objective, timeout, priority and share."""

    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="classes")
    name = models.CharField(max_length=60)
    position = models.PositiveSmallIntegerField(default=0)
    objective = models.JSONField(default=dict)
    timeout_s = models.FloatField(null=True)
    priority = models.IntegerField(null=True)
    share = models.FloatField(null=True)

    class Meta:
        ordering = ["position", "name"]
        constraints = [
            models.UniqueConstraint(fields=["workload", "name"], name="service_class_once"),
            models.CheckConstraint(
                condition=models.Q(share__isnull=True) | models.Q(share__gte=0, share__lte=1),
                name="service_class_share_is_fraction",
            ),
        ]

    def __str__(self) -> str:
        return self.name
