"""The audit trail, written in the same transaction as what it tells of."""

from __future__ import annotations

from typing import Any

from django.db import models

from records.models import AuditEntry, Project


def record(
    *,
    project: Project | None,
    action: str,
    target: models.Model,
    actor=None,
    actor_name: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """One entry; never give it a secret in `before` or `after`."""
    return AuditEntry.objects.create(
        project=project,
        actor=actor,
        actor_name=actor_name,
        action=action,
        object_type=target._meta.model_name,
        object_id=str(target.pk),
        object_name=str(target)[:200],
        before=before,
        after=after,
    )
