"""Alerts: something needs a person."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from records.models import Alert, Project, Run
from records.models.choices import AlertKind, RunState
from records.services import audit
from records.services.permissions import require

_OF_STATE = {
    RunState.FAILED: AlertKind.RUN_FAILED,
    RunState.INTERRUPTED: AlertKind.RUN_INTERRUPTED,
}


def alert_raise(
    *, project: Project, kind: str, title: str, detail: str = "", run: Run | None = None
) -> Alert:
    """An open alert of this kind for this run: a new one, or the one that stands already."""
    standing = Alert.objects.filter(project=project, kind=kind, run=run, resolved_at=None).first()
    return standing or Alert.objects.create(
        project=project, kind=kind, run=run, title=title[:200], detail=detail
    )


def alert_resolve(*, alert: Alert, user) -> None:
    """A person has seen to it; the second one to say so changes nothing."""
    require(user, alert.project, "launch")
    with transaction.atomic():
        is_open = Alert.objects.filter(pk=alert.pk, resolved_at=None)
        if is_open.update(resolved_at=timezone.now(), resolved_by=user):
            audit.record(project=alert.project, actor=user, action="alert.resolve", target=alert)
    alert.refresh_from_db()


def raise_for_run(run: Run) -> Alert | None:
    """The alert that a run's end calls for; None when it needs nobody."""
    kind = _OF_STATE.get(run.state)
    if kind is None:
        return None
    title = f"{run} {run.get_state_display().lower()}"
    return alert_raise(project=run.project, kind=kind, title=title, detail=run.failure, run=run)
