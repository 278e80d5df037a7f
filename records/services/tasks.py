"""Handing work to the workers: by name, and only once the database has what they will read."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from records.errors import OtherSideFailed

# Half a second of trying: the caller is a person at a page.
_RETRY = {"max_retries": 3, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.3}

RUN_LOAD = "runners.tasks.run_load"
ANALYSE_RUN = "records.tasks.analyse_run"


def enqueue(name: str, *args: Any, task_id: str | None = None) -> None:
    """Sends a task now. OtherSideFailed when the broker does not answer."""
    try:
        current_app.send_task(name, args=args, task_id=task_id, retry=True, retry_policy=_RETRY)
    except (OperationalError, OSError) as error:
        raise OtherSideFailed(
            "The task broker does not answer; what was queued is kept and starts once it does"
        ) from error


def enqueue_on_commit(name: str, *args: Any, task_id: str | None = None) -> None:
    """Sends a task when the transaction around this commits; never when it does not."""
    transaction.on_commit(lambda: enqueue(name, *args, task_id=task_id))


def revoke_on_commit(task_id: str) -> None:
    """Ends a running task by SIGTERM once the transaction around this commits.

    A broker that is down loses nothing: the flag in the database is also read
    at each heartbeat.
    """
    transaction.on_commit(lambda: _revoke(task_id))


def _revoke(task_id: str) -> None:
    with suppress(OperationalError, OSError):
        current_app.control.revoke(task_id, terminate=True, signal="SIGTERM")
