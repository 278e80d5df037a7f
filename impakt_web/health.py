"""Is the process up (`/healthz`), and can it do its work (`/readyz`)?"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from kombu.exceptions import OperationalError

from impakt_web.celery import app


def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, broker and evidence store answer; 503 naming those that do not."""
    checks: dict[str, Callable[[], None]] = {
        "database": _database,
        "broker": _broker,
        "evidence_store": _evidence_store,
    }
    failed = {}
    for name, check in checks.items():
        try:
            check()
        except (DatabaseError, OSError, OperationalError) as error:
            # The class only: a message may carry a host, a path or a password.
            failed[name] = type(error).__name__
    body = {"status": "not ready" if failed else "ok", "failed": failed}
    return JsonResponse(body, status=503 if failed else 200)


def _database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def _broker() -> None:
    with app.connection_for_write(connect_timeout=2) as broker:
        broker.ensure_connection(max_retries=1, interval_start=0, timeout=2)


def _evidence_store() -> None:
    root = Path(settings.EVIDENCE_DIR)
    root.mkdir(parents=True, exist_ok=True)
    if not os.access(root, os.W_OK):
        raise PermissionError(str(root))
