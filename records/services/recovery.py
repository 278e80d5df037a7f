"""What workers left undone: silent runs, lost tasks, folders nobody took in.

Called every few seconds. Each step may be done twice or by two at once.
"""

from __future__ import annotations

import logging
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from records.errors import ImpaktError, NotDecided
from records.evidence import spool
from records.evidence.parts import RUN_FILE, read_json
from records.models import Run
from records.models.choices import OPEN_STATES, RunKind, RunState
from records.services import record, run, tasks
from records.services.evidence import evidence_ingest

log = logging.getLogger(__name__)

# A queued run is sent again after this long when no load runs anywhere, so that
# its task must be lost; while one does, it may simply be waiting for its turn.
_LOST_IDLE_S = 30
_LOST_BUSY_S = 900
_LOST_ANALYSIS_S = 120
_ANALYSES = 5
_ANALYSIS_WITHIN = timedelta(days=7)
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
    except Exception as error:
        # Every few seconds the same: said once by this process, not each time.
        if (about.pk, str(error)) not in _told:
            _told.add((about.pk, str(error)))
            log.warning("%s: not recovered, tried again at each sweep", about, exc_info=error)


def spool_folder(of: Run) -> Path:
    """Where the worker on this host writes the run's evidence while it goes on."""
    return Path(settings.SPOOL_DIR) / str(of.uid)


def _expired() -> list[Run]:
    oldest = Now() - timedelta(seconds=settings.RUN_LEASE_S)
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
        evidence_ingest(run=run, folder=folder)
    except NotDecided:
        raise
    except Exception as error:
        # A full disk, a damaged folder: said now, and tried again at each sweep.
        text = str(error) if isinstance(error, ImpaktError) else type(error).__name__
        _end(run, RunState.INTERRUPTED, f"{said}; its evidence is not taken in yet: {text}")
        raise
    _end(run, state, failure)
    _analyse(run, folder)


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
        _analyse(of, folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _analyse(of: Run, folder: Path) -> None:
    """The record of evidence that is in the store, whose folder is not needed any more."""
    shutil.rmtree(folder, ignore_errors=True)
    if not of.measurement_records.exists():
        record.run_analyse(run=of)


def requeue_lost() -> int:
    """Sends queued runs again whose task seems lost; how many.

    Harmless when it was not: `run_claim` lets one of two tasks win.
    """
    busy = Run.objects.filter(state=RunState.RUNNING).exists()
    before = timezone.now() - timedelta(seconds=_LOST_BUSY_S if busy else _LOST_IDLE_S)
    queued = _sent_before(Run.objects.filter(state=RunState.QUEUED), "queued_at", before)
    sent = 0
    for one in queued.order_by("queued_at", "pk")[:_AT_ONCE]:
        if not _send(one, tasks.RUN_LOAD, one.task_id or None, one.progress):
            break
        sent += 1
    return sent


def reanalyse_lost() -> int:
    """Sends analyses again that seem lost; how many.

    Each time after twice as long. A run whose analysis did not end in five
    times fails; one that had ended otherwise goes without a record.
    """
    sent = 0
    for one in _unanalysed():
        times = one.progress.get("analysis_sent", 0)
        if times >= _ANALYSES:
            record.analysis_failed(run=one, reason=f"the analysis did not end in {times} attempts")
        elif one.sent_at < timezone.now() - timedelta(seconds=_LOST_ANALYSIS_S * 2**times):
            progress = one.progress | {"analysis_sent": times + 1}
            sent += _send(one, tasks.ANALYSE_RUN, None, progress)
    return sent


def _unanalysed() -> list[Run]:
    """Runs with evidence and without the record that should follow, for too long already."""
    now = timezone.now()
    ended = Run.objects.filter(kind=RunKind.LOAD, ended_at__gt=now - _ANALYSIS_WITHIN)
    waiting = ended.filter(state=RunState.ANALYSING) | ended.filter(
        state__in=(RunState.STOPPED, RunState.INTERRUPTED, RunState.FAILED),
        request_records__isnull=False,
        measurement_records=None,
    )
    before = now - timedelta(seconds=_LOST_ANALYSIS_S)
    rows = _sent_before(waiting, "ended_at", before).select_related("project")
    # Those that had their chances are looked at no more, but for what still has to fail.
    return [
        one
        for one in rows.order_by("pk")[:_AT_ONCE]
        if one.state == RunState.ANALYSING or one.progress.get("analysis_sent", 0) < _ANALYSES
    ]


def _sent_before(rows, since: str, before):
    # In these states nobody beats; heartbeat_at is when the task was last sent.
    return rows.annotate(sent_at=Coalesce("heartbeat_at", since)).filter(sent_at__lt=before)


def _send(one: Run, task: str, task_id: str | None, progress: dict[str, Any]) -> bool:
    try:
        tasks.enqueue(task, one.pk, task_id=task_id)
    except ImpaktError as error:
        log.warning("%s: %s", one, error)
        return False
    same = Run.objects.filter(pk=one.pk, state=one.state)
    same.update(heartbeat_at=timezone.now(), progress=progress)
    return True
