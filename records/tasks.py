"""Doors to the registry's background work: load, call a service, record the state."""

from __future__ import annotations

from celery import shared_task

from records.errors import ImpaktError
from records.models import Run
from records.services import record, recovery


@shared_task(name="records.tasks.analyse_run")
def analyse_run(run_id: int) -> None:
    """Judges and analyses a run's evidence; a run that cannot be fails with the reason."""
    run = Run.objects.select_related("project").get(pk=run_id)
    try:
        record.run_analyse(run=run)
    except ImpaktError as error:
        record.analysis_failed(run=run, reason=str(error))
    except Exception as error:
        # Said on the page too: a run must not stay "analysing" because of our mistake.
        record.analysis_failed(run=run, reason=f"unexpected {type(error).__name__}")
        raise


@shared_task(name="records.tasks.sweep_leases", expires=30)
def sweep_leases() -> None:
    """Recovers what workers left undone; see services.recovery."""
    recovery.sweep()
