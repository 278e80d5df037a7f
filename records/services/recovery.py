"""What workers left undone: silent runs, lost tasks, folders nobody took in.

Called every few seconds. Each step may be done twice or by two at once.
"""

from __future__ import annotations

import logging
import shutil
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils import timezone

from records.errors import ImpaktError, NotDecided
from records.evidence import spool
from records.evidence.parts import RUN_FILE, read_json
from records.models import Run
from records.models.choices import OPEN_STATES, RunState
from records.services import record, run, tasks
from records.services.evidence import evidence_ingest

log = logging.getLogger(__name__)

# A queued run is sent again after this long when no load runs anywhere, so that
# its task must be lost; while one does, it may simply be waiting for its turn.
_LOST_IDLE_S = 30
_LOST_BUSY_S = 900
_LOST_ANALYSIS_S = 120
_GIVE_UP_ANALYSIS = timedelta(hours=1)
_AT_ONCE = 50
_told: set[tuple[int, str]] = set()

_END_OF = {
    "completed": RunState.ANALYSING,
    "stopped": RunState.STOPPED,
    "failed": RunState.FAILED,
}


def sweep() -> None:
    """All recovery there is, one failure never keeping the rest from being done."""
    for expired in _expired():
        _guarded(lambda one=expired: interrupt_expired(run=one), expired)
    for left in _left_folders():
        _guarded(lambda pair=left: _take_in(*pair), left[0])
    requeue_lost()
    reanalyse_lost()


def _guarded(step, about: Run) -> None:
    try:
        step()
    except NotDecided:
        log.info("%s: its worker still writes", about)
    except (ImpaktError, OSError) as error:
        # Every few seconds the same: said once by this process, not each time.
        if (about.pk, str(error)) not in _told:
            _told.add((about.pk, str(error)))
            log.warning("%s: not recovered, tried again at each sweep: %s", about, error)


def spool_folder(of: Run) -> Path:
    """Where the worker on this host writes the run's evidence while it goes on."""
    return Path(settings.SPOOL_DIR) / str(of.uid)


def _expired() -> list[Run]:
    oldest = timezone.now() - timedelta(seconds=settings.RUN_LEASE_S)
    silent = Run.objects.filter(state=RunState.RUNNING, heartbeat_at__lt=oldest)
    return list(silent.select_related("project").order_by("pk"))


def interrupt_expired(*, run: Run) -> None:
    """Ends a run whose worker fell silent, with the evidence so far and its record.

    NotDecided while the worker still holds the folder on this host.
    """
    folder = spool_folder(run)
    said = f"The worker ({run.worker or 'unknown'}) fell silent"
    if not folder.exists():
        elsewhere = "what it measured lies on its host and is taken in once a worker runs there"
        _end(run, RunState.INTERRUPTED, f"{said}; {elsewhere}")
        return
    if not (folder / RUN_FILE).exists():
        _end(run, RunState.INTERRUPTED, f"{said} before anything was sent")
        return
    try:
        spool.seal(folder, "interrupted", f"{said}; what it had written is kept")
        state, failure = _sealed_end(folder)
    except NotDecided:
        raise
    except ImpaktError as error:
        # A full disk, a damaged folder: said now, and tried again at each sweep.
        _end(run, RunState.INTERRUPTED, f"{said}; its evidence is not taken in yet: {error}")
        raise
    _end(run, state, failure)
    _take_in(run, folder)


def _end(of: Run, state: str, failure: str) -> None:
    run.run_end(run_id=of.pk, lease=of.lease, state=state, failure=failure)
    of.refresh_from_db()


def _sealed_end(folder: Path) -> tuple[str, str]:
    """The state and failure that a sealed folder speaks of."""
    sealed = read_json(folder / RUN_FILE)
    state = _END_OF.get(sealed.get("state"), RunState.INTERRUPTED)
    text = (sealed.get("end") or {}).get("text") or ""
    return state, "" if state == RunState.ANALYSING else text


def _left_folders() -> list[tuple[Run, Path]]:
    """Folders on this host whose run is over."""
    folders = {f.name: f for f in Path(settings.SPOOL_DIR).glob("*") if _is_uuid(f.name)}
    over = Run.objects.filter(uid__in=list(folders)).exclude(state__in=OPEN_STATES)
    # A worker that just ended its run is taking the folder in itself.
    settled = timezone.now() - timedelta(seconds=settings.RUN_LEASE_S)
    rows = over.filter(ended_at__lt=settled).select_related("project")
    return [(one, folders[str(one.uid)]) for one in rows]


def _is_uuid(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


def _take_in(of: Run, folder: Path) -> None:
    """Evidence into the store, the record from it, and the folder away."""
    if (folder / RUN_FILE).exists():
        evidence_ingest(run=of, folder=folder)
        if not of.measurement_records.exists():
            record.run_analyse(run=of)
    shutil.rmtree(folder, ignore_errors=True)


def requeue_lost() -> int:
    """Sends queued runs again whose task seems lost; how many.

    Harmless when it was not: `run_claim` lets one of two tasks win.
    """
    busy = Run.objects.filter(state=RunState.RUNNING).exists()
    wait_s = _LOST_BUSY_S if busy else _LOST_IDLE_S
    lost = _not_heard_of(RunState.QUEUED, "queued_at", wait_s)
    return _send(lost, tasks.RUN_LOAD, with_id=True)


def reanalyse_lost() -> int:
    """Sends the analysis again of runs that wait for it too long; how many.

    A run that has waited an hour fails: its analysis dies each time.
    """
    for one in Run.objects.filter(
        state=RunState.ANALYSING, ended_at__lt=timezone.now() - _GIVE_UP_ANALYSIS
    ).select_related("project"):
        record.analysis_failed(run=one, reason="the analysis did not end within an hour")
    lost = _not_heard_of(RunState.ANALYSING, "ended_at", _LOST_ANALYSIS_S)
    return _send(lost, tasks.ANALYSE_RUN, with_id=False)


def _not_heard_of(state: str, since: str, wait_s: float) -> list[Run]:
    # In these states nobody beats; heartbeat_at is when the task was last sent.
    before = timezone.now() - timedelta(seconds=wait_s)
    rows = Run.objects.filter(state=state).annotate(sent_at=Coalesce("heartbeat_at", F(since)))
    return list(rows.filter(sent_at__lt=before).order_by("queued_at", "pk")[:_AT_ONCE])


def _send(lost: list[Run], task: str, with_id: bool) -> int:
    for i, one in enumerate(lost):
        try:
            tasks.enqueue(task, one.pk, task_id=one.task_id if with_id and one.task_id else None)
        except ImpaktError as error:
            log.warning("%s: %s", one, error)
            return i
        Run.objects.filter(pk=one.pk, state=one.state).update(heartbeat_at=timezone.now())
    return len(lost)
